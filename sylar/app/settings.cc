#include "sylar/app/settings.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <vector>

#include "sylar/fiber/fiber.h"
#include "sylar/fiber/stack.h"
#include "sylar/hook/hook.h"

namespace sylar {
namespace {

using http::HttpLimits;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr uint64_t kDayMs = 86'400'000;
constexpr uint64_t kMost = 1'000'000'000;

ConfigVar<uint64_t>::ptr number(const std::string& name, uint64_t value, const std::string& what, uint64_t lowest,
                                uint64_t highest) {
  return Config::Lookup<uint64_t>(name, value, what, inRange(lowest, highest));
}

/// A number that is a field of a struct of limits.
template <class Limits, class Value>
struct Key {
  const char* name;
  Value Limits::*field;
  uint64_t lowest;
  const char* what;
};

constexpr Key<HttpLimits, size_t> kHttpSizes[] = {
    {"http.request.max_line_size", &HttpLimits::max_request_line, 16, "bytes of the request line"},
    {"http.request.max_header_size", &HttpLimits::max_header_line, 16, "bytes of one header line"},
    {"http.request.buffer_size", &HttpLimits::max_header_bytes, 16, "bytes of all header lines"},
    {"http.request.max_headers", &HttpLimits::max_headers, 1, "number of header lines"},
    {"http.request.max_body_size", &HttpLimits::max_body, 0, "bytes of a body"},
    {"http.request.max_chunk_line_size", &HttpLimits::max_chunk_line, 1, "bytes of the line before a chunk"},
    {"http.request.max_chunk_extensions_size", &HttpLimits::max_chunk_extensions, 0, "bytes of all chunk extensions of a body"},
    {"http.request.max_trailer_size", &HttpLimits::max_trailer_bytes, 0, "bytes of the trailers behind a chunked body"},
    {"http.request.max_params", &HttpLimits::max_params, 1, "parameters of a query or form"},
    {"http.request.max_cookies", &HttpLimits::max_cookies, 1, "cookies of a request"},
    {"http.request.min_body_rate", &HttpLimits::min_body_rate, 1, "bytes a second in which a body must come"},
    {"http.min_write_rate", &HttpLimits::min_write_rate, 1, "bytes a second that a peer must take of an answer"},
    {"http.max_requests", &HttpLimits::max_requests, 1, "requests of one connection"},
};

constexpr Key<HttpLimits, nanoseconds> kHttpTimes[] = {
    {"http.first_byte_timeout_ms", &HttpLimits::first_byte_timeout, 1, "how long a new connection may be silent"},
    {"http.head_timeout_ms", &HttpLimits::head_timeout, 1, "how long the head of a request may take"},
    {"http.idle_timeout_ms", &HttpLimits::idle_timeout, 1, "how long a connection may be silent between requests"},
    {"http.body_grace_ms", &HttpLimits::body_grace, 1, "how long a body may come in slower than http.request.min_body_rate"},
    {"http.write_timeout_ms", &HttpLimits::write_timeout, 1, "how long a peer may take nothing of an answer"},
};

constexpr Key<TcpServerLimits, size_t> kTcpSizes[] = {
    {"tcp_server.max_connections", &TcpServerLimits::max_connections, 1, "connections of a server"},
    {"tcp_server.max_per_peer", &TcpServerLimits::max_per_peer, 1, "connections of a server from one address"},
};

uint64_t toNumber(size_t value) { return value; }
uint64_t toNumber(nanoseconds value) { return static_cast<uint64_t>(std::chrono::duration_cast<milliseconds>(value).count()); }
void fromNumber(uint64_t number, size_t& value) { value = number; }
void fromNumber(uint64_t number, nanoseconds& value) { value = milliseconds(number); }

template <class Limits, class Value, size_t kCount>
void make(const Key<Limits, Value> (&keys)[kCount]) {
  for (const auto& key : keys) number(key.name, toNumber(Limits{}.*key.field), key.what, key.lowest, kMost);
}

template <class Limits, class Value, size_t kCount>
void fill(Limits& limits, const Key<Limits, Value> (&keys)[kCount]) {
  for (const auto& key : keys) fromNumber(Config::Lookup<uint64_t>(key.name)->getValue(), limits.*key.field);
}

/// A choice by name; the first is the default.
template <class Value>
struct Choice {
  const char* name;
  Value value;
};

constexpr Choice<TimerQueueKind> kTimerQueues[] = {
    {"heap", TimerQueueKind::kHeap}, {"wheel", TimerQueueKind::kWheel}, {"set", TimerQueueKind::kSet}};
static_assert(kTimerQueues[0].value == kDefaultTimerQueue);

template <class Value, size_t kCount>
std::vector<std::string> namesOf(const Choice<Value> (&choices)[kCount]) {
  std::vector<std::string> names;
  for (const auto& choice : choices) names.emplace_back(choice.name);
  return names;
}

/// The settings that stand for themselves.
struct Settings {
  ConfigVar<WorkerSettings>::ptr workers = Config::Lookup("workers", WorkerSettings{}, "the IOManagers, by name");
  ConfigVar<ServerSettings>::ptr servers = Config::Lookup("servers", ServerSettings{}, "the servers");
  ConfigVar<uint64_t>::ptr drain =
      number("app.drain_ms", 10'000, "how long the service may take to end after SIGTERM", 0, kDayMs);
  ConfigVar<std::string>::ptr work_path = Config::Lookup("server.work_path", std::string(), "where server.pid_file counts from");
  ConfigVar<std::string>::ptr pid_file = Config::Lookup("server.pid_file", std::string(), "tells the process id; empty: none");
  ConfigVar<uint64_t>::ptr stack_size =
      number("fiber.stack_size", kDefaultStackSize, "bytes of a fiber's stack", kMinStackSize, kMaxStackSize);
  ConfigVar<uint64_t>::ptr max_wait = number("io.max_wait_ms", 0, "longest sleep of an idle worker; 0: no limit", 0, kDayMs);
  ConfigVar<uint64_t>::ptr spin =
      number("io.spin_us", 0, "how long an idle worker polls before it sleeps, in us; 0: not at all", 0, 1'000'000);
  ConfigVar<std::string>::ptr timer_queue =
      Config::Lookup("timer.queue", std::string(kTimerQueues[0].name), "what keeps the public timers of the workers in order",
                     oneOf(namesOf(kTimerQueues)));
  ConfigVar<uint64_t>::ptr timer_slack =
      number("timer.slack_ns", 1, "by how much the kernel may prolong a worker's sleep; 0: the thread's own", 0, kMost);
  ConfigVar<uint64_t>::ptr connect_timeout =
      number("tcp.connect.timeout", 5000, "how long a connect may take, in ms; 0: as long as the kernel allows", 0, kDayMs);
  ConfigVar<uint64_t>::ptr read_timeout =
      number("tcp_server.read_timeout", 120'000, "how long a client may be silent, in ms; 0: for ever", 0, kDayMs);
  ConfigVar<uint64_t>::ptr idle_timeout =
      number("tcp_server.idle_timeout", 0, "how long a connection may move no byte either way, in ms; 0: for ever", 0, kDayMs);
  ConfigVar<bool>::ptr limit_loopback =
      Config::Lookup("tcp_server.limit_loopback", false, "whether tcp_server.max_per_peer holds for this host, too");
  ConfigVar<uint64_t>::ptr backlog = number("tcp_server.backlog", SOMAXCONN, "connections that wait in the kernel", 1, 65'535);

  Settings() {
    make(kHttpSizes);
    make(kHttpTimes);
    make(kTcpSizes);
    const auto live = [](const ConfigVar<uint64_t>::ptr& var, void (*set)(uint64_t)) {
      var->addListener([set](uint64_t, uint64_t now) { set(now); });
      set(var->getValue());
    };
    live(stack_size, [](uint64_t bytes) { Fiber::SetDefaultStackSize(bytes); });
    live(connect_timeout, [](uint64_t ms) { setConnectTimeout(milliseconds(ms)); });
  }
};

const Settings& settings() {
  static const Settings all;
  return all;
}

}  // namespace

void makeLibrarySettings() { settings(); }
ConfigVar<WorkerSettings>& workerSettings() { return *settings().workers; }
ConfigVar<ServerSettings>& serverSettings() { return *settings().servers; }
milliseconds drainSetting() { return milliseconds(settings().drain->getValue()); }
nanoseconds timerSlackSetting() { return nanoseconds(settings().timer_slack->getValue()); }
std::chrono::microseconds spinSetting() { return std::chrono::microseconds(settings().spin->getValue()); }
milliseconds maxWaitSetting() { return milliseconds(settings().max_wait->getValue()); }
uint64_t readTimeoutSetting() { return settings().read_timeout->getValue(); }
uint64_t idleTimeoutSetting() { return settings().idle_timeout->getValue(); }

TimerQueueKind timerQueueSetting() {
  const std::string name = settings().timer_queue->getValue();
  return std::find_if(std::begin(kTimerQueues), std::end(kTimerQueues), [&](const auto& queue) { return queue.name == name; })
      ->value;
}

std::string pidFileSetting() {
  const std::string file = settings().pid_file->getValue();
  const std::string path = settings().work_path->getValue();
  return file.empty() || path.empty() || file.front() == '/' ? file : path + '/' + file;
}

HttpLimits httpLimitsSetting() {
  makeLibrarySettings();
  HttpLimits limits;
  fill(limits, kHttpSizes);
  fill(limits, kHttpTimes);
  return limits;
}

TcpServerLimits tcpServerLimitsSetting() {
  makeLibrarySettings();
  TcpServerLimits limits;
  fill(limits, kTcpSizes);
  limits.limit_loopback = settings().limit_loopback->getValue();
  limits.backlog = static_cast<int>(settings().backlog->getValue());
  return limits;
}

}  // namespace sylar
