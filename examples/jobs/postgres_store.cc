#include "postgres_store.h"

#include <algorithm>
#include <cstdlib>

namespace jobs {

namespace {

using Result = PostgresConnection::Result;

std::string textOf(Micros time) { return std::to_string(time.count()); }

/// The array of what `text` returns for each of `all`.
template <class All, class Text>
std::string column(const All& all, Text text) {
  std::vector<std::string> texts;
  for (const auto& each : all) texts.push_back(text(each));
  return arrayOf(texts);
}

/// Tells those who listen if the job of that column, if there is one, is the first.
void tell(PostgresConnection& connection, const Result& result, int at) {
  if (result.rows() > 0 && !result.isNull(0, at)) connection.execute("tell", {result.text(0, at)});
}

}  // namespace

PostgresConnection::Result PostgresStore::execute(const char* statement, const std::vector<std::string>& arguments) {
  return m_pool.with([&](PostgresConnection& connection) { return connection.execute(statement, arguments); });
}

void PostgresStore::put(const std::vector<Job>& jobs) {
  const std::vector<std::string> columns{column(jobs, [](const Job& job) { return job.id; }),
                                         column(jobs, [](const Job& job) { return job.payload; }),
                                         column(jobs, [](const Job& job) { return textOf(job.when.time); }),
                                         column(jobs, [](const Job& job) { return job.when.from_now ? "1" : "0"; }),
                                         column(jobs, [](const Job& job) { return textOf(job.period); })};
  m_pool.with([&columns](PostgresConnection& connection) {
    const Result result = connection.execute("put", columns);
    tell(connection, result, 0);
    return true;
  });
}

Cancelled PostgresStore::cancel(const std::string& id) {
  const Result result = execute("cancel", {id});
  return result.rows() == 0 ? Cancelled::kGone : result.number(0, 0) == 0 ? Cancelled::kWaiting : Cancelled::kClaimed;
}

Claims PostgresStore::claim(const ClaimOptions& options) {
  return m_pool.with([&options](PostgresConnection& connection) {
    Claims claims;
    const Result taken = connection.execute("claim", {std::to_string(options.limit), textOf(options.ahead),
                                                      textOf(options.visibility), std::to_string(options.max_attempts)});
    for (int row = 0; row < taken.rows(); ++row) {
      claims.taken.push_back({.id = taken.text(row, 0),
                              .payload = taken.text(row, 1),
                              .due = taken.time(row, 2),
                              .at = taken.time(row, 3),
                              .run = static_cast<uint64_t>(taken.number(row, 4)),
                              .token = static_cast<uint64_t>(taken.number(row, 5)),
                              .attempt = static_cast<uint32_t>(taken.number(row, 6))});
    }
    const Result first = connection.execute("first", {});
    claims.now = first.time(0, 0);
    if (!first.isNull(0, 1)) claims.next = first.time(0, 1);
    // What is near and was not taken is locked by another replica, which is claiming it.
    if (claims.taken.size() < options.limit) claims.next = std::max(claims.next, claims.now + options.ahead);
    return claims;
  });
}

size_t PostgresStore::settle(const std::vector<Outcome>& outcomes) {
  const std::vector<std::string> columns{column(outcomes, [](const Outcome& each) { return each.id; }),
                                         column(outcomes, [](const Outcome& each) { return std::to_string(each.token); }),
                                         column(outcomes, [](const Outcome& each) { return toText(each.verdict); }),
                                         column(outcomes, [](const Outcome& each) { return textOf(each.delay); }),
                                         column(outcomes, [](const Outcome& each) { return each.error; })};
  return m_pool.with([&columns](PostgresConnection& connection) {
    const Result result = connection.execute("settle", columns);
    tell(connection, result, 1);
    return static_cast<size_t>(result.number(0, 0));
  });
}

std::vector<DeadLetter> PostgresStore::deadLetters(size_t limit) {
  const Result found = execute("dead", {std::to_string(limit)});
  std::vector<DeadLetter> letters;
  for (int row = 0; row < found.rows(); ++row) {
    letters.push_back({found.text(row, 0), found.text(row, 1), found.time(row, 2), static_cast<uint32_t>(found.number(row, 3)),
                       found.text(row, 4)});
  }
  return letters;
}

bool PostgresStore::retry(const std::string& id) {
  return m_pool.with([&id](PostgresConnection& connection) {
    const Result result = connection.execute("retry", {id});
    tell(connection, result, 0);
    return result.rows() > 0;
  });
}

std::optional<size_t> PostgresStore::sweepDead(uint64_t fence, Micros keep, size_t limit) {
  const Result result = execute("sweep_dead", {std::to_string(fence), textOf(keep), std::to_string(limit)});
  if (result.number(0, 0) == 0) return std::nullopt;
  return static_cast<size_t>(result.number(0, 1));
}

StoreCounts PostgresStore::counts() {
  const Result found = execute("counts", {});
  const auto count = [&found](int i) { return static_cast<uint64_t>(found.number(0, i)); };
  return {.jobs = count(0), .late = count(1), .dead = count(2)};
}

void PostgresStore::listen(const std::function<void(Time)>& earlier) {
  // What is no number, as anybody may notify, is a time long past.
  m_pool.connect()->listen("jobs", [&earlier](const std::string& at) { earlier(Time(std::strtoll(at.c_str(), nullptr, 10))); });
}

}  // namespace jobs
