#include "redis_store.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "plain_text.h"
#include "sylar/fiber.h"
#include "sylar/log.h"

namespace jobs {

static auto g_logger = SYLAR_LOG_NAME("jobs");

namespace {

std::string textOf(Micros time) { return std::to_string(time.count()); }
std::string textOf(const redisReply* reply) { return {reply->str, reply->len}; }
int64_t numberOf(const redisReply* reply) {
  return reply->type == REDIS_REPLY_INTEGER ? reply->integer : std::strtoll(reply->str, nullptr, 10);
}
Time timeOf(const redisReply* reply) { return Time(numberOf(reply)); }

/// Says so if Redis may throw jobs away when its memory is full.
void warnOfEviction(RedisConnection& connection) {
  try {
    const auto info = connection.command({"INFO", "memory"});
    std::string_view policy{info->str, info->len};
    policy.remove_prefix(std::min(policy.find("maxmemory_policy:"), policy.size()));
    policy = policy.substr(0, policy.find('\r'));
    if (policy.empty() || policy == "maxmemory_policy:noeviction") return;
    SYLAR_LOG_WARN(g_logger) << "redis: " << policy << ": when its memory is full, it may throw jobs away; set noeviction";
  } catch (const StoreError&) {  // there are users who may not ask
  }
}

}  // namespace

RedisStore::Result RedisStore::call(const char* function, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"FCALL", std::string("jobs_2_") + function, "1", m_prefix};
  words.insert(words.end(), arguments.begin(), arguments.end());
  Result result{m_pool.with([&words](RedisConnection& connection) { return connection.command(words); })};
  note(static_cast<uint64_t>(result.reply->element[1]->integer), *result.reply->element[2]);
  return result;
}

/// Counts and logs what a function has found damaged.
void RedisStore::note(uint64_t repaired, const redisReply& dropped) {
  m_repaired += repaired;
  m_dropped += dropped.elements;
  if (repaired > 0) SYLAR_LOG_WARN(g_logger) << "redis: " << repaired << " repaired, which had lost their place in the order";
  if (dropped.elements == 0) return;
  std::string names;
  for (size_t i = 0; i < dropped.elements; ++i) names += ' ' + textOf(dropped.element[i]);
  SYLAR_LOG_WARN(g_logger) << "redis: dropped " << dropped.elements
                           << " jobs, whose data are lost or damaged:" << plainText(names);
}

void RedisStore::put(const std::vector<Job>& jobs) {
  std::vector<std::string> words;
  for (const Job& each : jobs) {
    words.insert(words.end(),
                 {each.id, each.payload, textOf(each.when.time), each.when.from_now ? "1" : "0", textOf(each.period)});
  }
  call("put", words);
}

Cancelled RedisStore::cancel(const std::string& id) {
  const auto reply = call("cancel", {id});
  return reply->integer == 0 ? Cancelled::kGone : reply->integer == 1 ? Cancelled::kWaiting : Cancelled::kClaimed;
}

Claims RedisStore::claim(const ClaimOptions& options) {
  const auto reply = call("claim", {std::to_string(options.limit), textOf(options.ahead), textOf(options.visibility),
                                    std::to_string(options.max_attempts)});
  Claims claims{.taken = {}, .now = timeOf(reply->element[0])};
  if (reply->element[1]->len > 0) claims.next = timeOf(reply->element[1]);
  for (size_t i = 2; i < reply->elements; ++i) {
    redisReply* const* const fields = reply->element[i]->element;
    claims.taken.push_back({.id = textOf(fields[0]),
                            .payload = textOf(fields[1]),
                            .due = timeOf(fields[2]),
                            .at = timeOf(fields[3]),
                            .run = static_cast<uint64_t>(numberOf(fields[4])),
                            .token = static_cast<uint64_t>(numberOf(fields[5])),
                            .attempt = static_cast<uint32_t>(numberOf(fields[6]))});
  }
  return claims;
}

size_t RedisStore::settle(const std::vector<Outcome>& outcomes) {
  std::vector<std::string> words;
  for (const Outcome& each : outcomes) {
    words.insert(words.end(), {each.id, std::to_string(each.token), toText(each.verdict), textOf(each.delay), each.error});
  }
  return static_cast<size_t>(call("settle", words)->integer);
}

std::vector<DeadLetter> RedisStore::deadLetters(size_t limit) {
  const auto reply = call("dead", {std::to_string(limit)});
  std::vector<DeadLetter> letters;
  for (size_t i = 0; i < reply->elements; ++i) {
    redisReply* const* const fields = reply->element[i]->element;
    letters.push_back(
        {textOf(fields[0]), textOf(fields[1]), timeOf(fields[2]), static_cast<uint32_t>(numberOf(fields[3])), textOf(fields[4])});
  }
  return letters;
}

bool RedisStore::retry(const std::string& id) { return call("retry", {id})->integer == 1; }

std::optional<size_t> RedisStore::sweepDead(uint64_t fence, Micros keep, size_t limit) {
  const int64_t deleted = call("sweep_dead", {std::to_string(fence), textOf(keep), std::to_string(limit)})->integer;
  if (deleted < 0) return std::nullopt;
  return static_cast<size_t>(deleted);
}

StoreCounts RedisStore::counts() {
  const auto reply = call("counts", {});
  const auto count = [&reply](size_t i) { return static_cast<uint64_t>(numberOf(reply->element[i])); };
  return {.jobs = count(0), .late = count(1), .dead = count(2)};
}

void RedisStore::mend(Micros visibility) {
  static constexpr const char* kKeysAtATime = "250";  // so that no call keeps Redis from others for long
  std::string cursor = "0";
  do {
    const auto reply = call("mend", {cursor, kKeysAtATime, textOf(visibility)});
    cursor = {reply->str, reply->len};
  } while (cursor != "0" && !sylar::this_fiber::cancelled());
}

void RedisStore::listen(const std::function<void(Time)>& earlier) {
  try {
    const auto connection = m_pool.connect();
    warnOfEviction(*connection);
    connection->command({"SUBSCRIBE", m_prefix + ":earlier"});
    for (Time at{0};; at = timeOf(connection->next()->element[2])) earlier(at);
  } catch (const ConnectionLost&) {
    if (!sylar::this_fiber::cancelled()) throw;
  }
}

}  // namespace jobs
