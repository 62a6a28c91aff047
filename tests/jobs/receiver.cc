// What jobs are delivered to in the tests: it does the work of each run exactly once, by the rule that README.md gives to handlers,
// and counts what it sees.
//
//   receiver MS        each delivery takes so long; prints its port, and ends with its input
//   POST /run          a delivery
//   GET  /result       {"deliveries", "ids", "effects", "repeated", "stale", "lag_ms": {"p50", "p99", "max"}}
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "sylar/http/http.h"
#include "sylar/http/http_server.h"
#include "sylar/iomanager.h"

using namespace sylar::http;
using Json = nlohmann::json;

namespace {

/// The table of a handler. In a database it is a row for each job, which a delivery changes in the transaction of its work.
class Table {
 public:
  /// Returns false if the delivery comes from a replica that has lost the job to another.
  bool deliver(const Json& delivery) {
    const auto now = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch());
    const auto run = delivery["run"].get<uint64_t>();
    const auto token = delivery["token"].get<uint64_t>();
    const std::lock_guard guard(m_lock);
    ++m_deliveries;
    Row& row = m_rows[delivery["id"].get<std::string>()];
    if (delivery["attempt"] == 1) m_lags.push_back(static_cast<double>(now.count()) / 1000 - delivery["due_ms"].get<double>());
    if (token < row.token) {
      ++m_stale;
      return false;
    }
    row.token = token;
    if (run > row.run) {
      row.run = run;
      ++m_effects;  // the work
    } else {
      ++m_repeated;
    }
    return true;
  }

  Json result() {
    const std::lock_guard guard(m_lock);
    std::sort(m_lags.begin(), m_lags.end());
    const auto lag = [this](double share) {
      return m_lags.empty() ? 0 : m_lags[static_cast<size_t>(share * static_cast<double>(m_lags.size() - 1))];
    };
    return {{"deliveries", m_deliveries}, {"ids", m_rows.size()},
            {"effects", m_effects},       {"repeated", m_repeated},
            {"stale", m_stale},           {"lag_ms", {{"p50", lag(0.5)}, {"p99", lag(0.99)}, {"max", lag(1)}}}};
  }

 private:
  struct Row {
    uint64_t run = 0;
    uint64_t token = 0;
  };
  std::mutex m_lock;
  std::unordered_map<std::string, Row> m_rows;
  std::vector<double> m_lags;
  uint64_t m_deliveries = 0;
  uint64_t m_effects = 0;
  uint64_t m_repeated = 0;
  uint64_t m_stale = 0;
};

}  // namespace

int main(int /*argc*/, char** argv) {
  const auto work_us = static_cast<useconds_t>(std::atoi(argv[1]) * 1000);
  Table table;
  sylar::IOManager iom(1, false, "receiver");
  const auto server = std::make_shared<HttpServer>(true, &iom, &iom, &iom);
  server->getServletDispatch()->addServlet("/run", [&](const auto& request, const auto& response, const auto&) {
    const bool valid = table.deliver(Json::parse(request->getBody()));
    if (work_us > 0) usleep(work_us);
    if (!valid) response->setStatus(HttpStatus::CONFLICT);
    return 0;
  });
  server->getServletDispatch()->addServlet("/result", [&](const auto&, const auto& response, const auto&) {
    response->setBody(table.result().dump());
    return 0;
  });
  HttpLimits limits = server->getHttpLimits();
  limits.max_requests = 1'000'000'000;
  server->setHttpLimits(limits);
  if (!server->bind(sylar::IPAddress::Create("127.0.0.1", 0)) || !server->start()) return 1;
  std::printf("%u\n", std::dynamic_pointer_cast<sylar::IPAddress>(server->getSocks()[0]->getLocalAddress())->getPort());
  std::fflush(stdout);
  while (std::getchar() != EOF) continue;
  server->stop();
  server->join(sylar::Deadline::after(std::chrono::seconds(1)));
  iom.stop(sylar::Deadline::after(std::chrono::seconds(1)));
  return 0;
}
