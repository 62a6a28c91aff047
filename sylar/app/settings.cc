#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

#include "sylar/app/library_setting.h"
#include "sylar/app/log_settings.h"
#include "sylar/app_settings.h"
#include "sylar/config.h"
#include "sylar/config/config_registry.h"
#include "sylar/fiber.h"
#include "sylar/fiber/stack.h"
#include "sylar/hook.h"
#include "sylar/http/limits.h"
#include "sylar/iomanager.h"
#include "sylar/sync/blocking.h"
#include "sylar/tcp_server.h"
#include "sylar/timer.h"

namespace sylar {
namespace {

using http::HttpLimits;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr uint64_t kDayMs = 86'400'000;
constexpr uint64_t kMost = 1'000'000'000;
constexpr int kConnectTimeoutMs = 5000;

template <class T = uint64_t>
typename ConfigVar<T>::ptr number(const std::string& name, std::type_identity_t<T> value, const std::string& what,
                                  uint64_t lowest, uint64_t highest, SourceLocation location = SourceLocation::here()) {
  return librarySetting<T>(name, value, what, inRange(lowest, highest), location);
}

/// A numeric setting that is a field of a struct of limits.
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
    {"http.request.max_bodies_size", &HttpLimits::max_bodies, 1, "bytes of all bodies that a server has at the same time"},
    {"http.request.max_peer_bodies_size", &HttpLimits::max_peer_bodies, 1, "bytes of those of one address"},
    {"http.request.max_chunk_line_size", &HttpLimits::max_chunk_line, 1, "bytes of the line before a chunk"},
    {"http.request.max_chunk_extensions_size", &HttpLimits::max_chunk_extensions, 0, "bytes of all chunk extensions of a body"},
    {"http.request.max_trailer_size", &HttpLimits::max_trailer_bytes, 0, "bytes of the trailers behind a chunked body"},
    {"http.request.max_params", &HttpLimits::max_params, 1, "parameters of a query or form"},
    {"http.request.max_cookies", &HttpLimits::max_cookies, 1, "cookies of a request"},
    {"http.request.min_body_rate", &HttpLimits::min_body_rate, 1, "bytes a second in which a body must come"},
    {"http.request.short_body_rate", &HttpLimits::short_body_rate, 1,
     "bytes a second in which a body must come while more than half of http.request.max_bodies_size is taken"},
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

constexpr Key<BlockingLimits, size_t> kBlockingSizes[] = {
    {"blocking.max_threads", &BlockingLimits::max_threads, 1, "helper threads for what cannot suspend"},
    {"blocking.max_queued", &BlockingLimits::max_queued, 0, "functions that wait for a helper thread; more are refused"},
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
  for (const auto& key : keys) {
    const auto var = Config::Lookup<uint64_t>(key.name);
    if (var != nullptr) fromNumber(var->getValue(), limits.*key.field);  // else the program has made it with another type
  }
}

void applyBlockingLimits() {
  BlockingLimits limits;
  fill(limits, kBlockingSizes);
  setBlockingLimits(limits);
}

/// One choice of a setting, by name; the first choice is the default.
template <class Value>
struct Choice {
  const char* name;
  Value value;
};

constexpr Choice<TimerQueueKind> kTimerQueues[] = {{"heap", TimerQueueKind::kFourAryHeap},
                                                   {"binary_heap", TimerQueueKind::kBinaryHeap},
                                                   {"set", TimerQueueKind::kOrderedSet},
                                                   {"wheel", TimerQueueKind::kWheel},
                                                   {"wheel_10ms", TimerQueueKind::kWheel10Ms}};
static_assert(kTimerQueues[0].value == kDefaultTimerQueue);
constexpr Choice<FiberIdentity> kIdentities[] = {{"own", FiberIdentity::kOwn}, {"worker", FiberIdentity::kWorker}};
constexpr Choice<HookEintr> kHookEintrs[] = {{"restart", HookEintr::kRestart}, {"posix", HookEintr::kPosix}};
constexpr Choice<IOEngine> kIOEngines[] = {{"auto", IOEngine::kAuto}, {"epoll", IOEngine::kEpoll}, {"uring", IOEngine::kUring}};
constexpr Choice<HookClose> kHookCloses[] = {{"wake", HookClose::kWake}, {"posix", HookClose::kPosix}};

template <class Value, size_t kCount>
std::vector<std::string> namesOf(const Choice<Value> (&choices)[kCount]) {
  std::vector<std::string> names;
  for (const auto& choice : choices) names.emplace_back(choice.name);
  return names;
}

/// `name` is one of the choices.
template <class Value, size_t kCount>
Value chosen(const Choice<Value> (&choices)[kCount], const std::string& name) {
  return std::ranges::find_if(choices, [&name](const auto& choice) { return choice.name == name; })->value;
}

/// The settings that are in none of the tables above.
struct Settings {
  ConfigVar<WorkerSettings>::ptr workers = librarySetting("workers", WorkerSettings{}, "the IOManagers, by name");
  ConfigVar<ServerSettings>::ptr servers = librarySetting("servers", ServerSettings{}, "the servers");
  ConfigVar<uint64_t>::ptr drain =
      number("app.drain_ms", 10'000, "how long the service may take to end after SIGTERM", 0, kDayMs);
  ConfigVar<std::string>::ptr work_path = librarySetting("server.work_path", std::string(), "where server.pid_file counts from");
  ConfigVar<std::string>::ptr pid_file = librarySetting("server.pid_file", std::string(), "tells the process id; empty: none");
  ConfigVar<uint32_t>::ptr stack_size =
      number<uint32_t>("fiber.stack_size", kDefaultStackSize, "bytes of a fiber's stack", kMinStackSize, kMaxStackSize);
  ConfigVar<uint64_t>::ptr trim_after =
      number("fiber.trim_after_ms", 0, "how long a fiber waits before the unused part of its stack is given back; 0: it is kept",
             0, kDayMs);
  ConfigVar<uint64_t>::ptr max_wait = number("io.max_wait_ms", 0, "longest sleep of an idle worker; 0: no limit", 0, kDayMs);
  ConfigVar<uint64_t>::ptr spin =
      number("io.spin_us", 0, "how long an idle worker polls before it sleeps, in us; 0: not at all", 0, 1'000'000);
  ConfigVar<std::string>::ptr io_engine =
      librarySetting("io.engine", std::string(kIOEngines[0].name),
                     "what makes the calls that wait for files, while the fiber is suspended", oneOf(namesOf(kIOEngines)));
  ConfigVar<std::string>::ptr timer_queue =
      librarySetting("timer.queue", std::string(kTimerQueues[0].name), "what keeps the public timers of the workers in order",
                     oneOf(namesOf(kTimerQueues)));
  ConfigVar<uint64_t>::ptr timer_slack =
      number("timer.slack_ns", 1, "by how much the kernel may prolong a worker's sleep; 0: the thread's own", 0, kMost);
  ConfigVar<uint64_t>::ptr watchdog =
      number("hook.watchdog_ms", 0, "a worker held for longer is logged, with what holds it; 0: none is", 0, kDayMs);
  ConfigVar<int>::ptr connect_timeout = number<int>(
      "tcp.connect.timeout", kConnectTimeoutMs, "how long a connect may take, in ms; 0: as long as the kernel allows", 0, kDayMs);
  ConfigVar<std::string>::ptr hook_eintr =
      librarySetting("hook.eintr", std::string(kHookEintrs[0].name), "what a signal handler does to hooked calls that wait",
                     oneOf(namesOf(kHookEintrs)));
  ConfigVar<std::string>::ptr hook_close =
      librarySetting("hook.close", std::string(kHookCloses[0].name), "what a close does to hooked calls that wait for the number",
                     oneOf(namesOf(kHookCloses)));
  ConfigVar<bool>::ptr hook_locks = librarySetting(
      "hook.locks", true, "whether libc's locks suspend the fibers that wait for them, and do not block the thread");
  ConfigVar<bool>::ptr hook_files =
      librarySetting("hook.files", true, "whether calls that wait for files suspend the fiber, and do not block the thread");
  ConfigVar<uint64_t>::ptr read_timeout =
      number("tcp_server.read_timeout", 120'000, "how long a client may be silent, in ms; 0: for ever", 0, kDayMs);
  ConfigVar<uint64_t>::ptr idle_timeout =
      number("tcp_server.idle_timeout", 0, "how long a connection may move no byte either way, in ms; 0: for ever", 0, kDayMs);
  ConfigVar<std::string>::ptr identity =
      librarySetting("fiber.identity", std::string(kIdentities[0].name),
                     "whether a fiber has thread_local variables of its own, or its worker's", oneOf(namesOf(kIdentities)));
  ConfigVar<bool>::ptr limit_loopback =
      librarySetting("tcp_server.limit_loopback", false, "whether tcp_server.max_per_peer holds for this host, too");
  ConfigVar<uint64_t>::ptr backlog = number("tcp_server.backlog", SOMAXCONN, "connections that wait in the kernel", 1, 65'535);
  ConfigVar<uint64_t>::ptr listeners = number(
      "tcp_server.listeners", 1, "listening sockets for an address, among which the kernel spreads the connections", 1, 1024);

  Settings() {
    make(kHttpSizes);
    make(kHttpTimes);
    make(kTcpSizes);
    make(kBlockingSizes);
    drain->setLive(true);
    const auto live = [](const auto& var, auto standard, void (*set)(uint64_t)) {
      var->setLive(true);
      var->addListener([set](auto, auto now) { set(static_cast<uint64_t>(now)); });
      if (var->getValue() != standard) set(static_cast<uint64_t>(var->getValue()));
    };
    live(stack_size, uint32_t{kDefaultStackSize}, [](uint64_t bytes) { Fiber::SetDefaultStackSize(bytes); });
    for (const auto& key : kBlockingSizes) {
      live(Config::Lookup<uint64_t>(key.name), toNumber(BlockingLimits{}.*key.field), [](uint64_t) { applyBlockingLimits(); });
    }
    live(connect_timeout, kConnectTimeoutMs, [](uint64_t ms) { setConnectTimeout(milliseconds(ms)); });
    const auto live_choice = [](const auto& var, const auto& choices, auto set) {
      const auto set_by_name = [&choices, set](const std::string& name) { set(chosen(choices, name)); };
      var->setLive(true);
      var->addListener([set_by_name](const auto&, const auto& now) { set_by_name(now); });
      if (var->getValue() != choices[0].name) set_by_name(var->getValue());
    };
    live_choice(hook_eintr, kHookEintrs, setHookEintr);
    live_choice(hook_close, kHookCloses, setHookClose);
    live_choice(io_engine, kIOEngines, setIOEngine);
    live(hook_locks, true, [](uint64_t on) { setHookLocks(on != 0); });
    live(hook_files, true, [](uint64_t on) { setHookFiles(on != 0); });
  }
};

const Settings* g_settings = nullptr;  // never destroyed, because other static objects may still use it

const Settings& settings() {
  beginUseOfConfig();
  return *g_settings;
}

}  // namespace

// Runs before the constructors of all static objects. The link options of this module (sylar/CMakeLists.txt) require its symbol,
// so that it is linked even if the program uses nothing else in this file.
extern "C" [[gnu::constructor(101)]] void sylar_library_settings() {
  atFirstUseOfConfig([] {
    g_settings = new Settings;
    makeLogSettings();
  });
}

ConfigVar<WorkerSettings>& workerSettings() { return *settings().workers; }
ConfigVar<ServerSettings>& serverSettings() { return *settings().servers; }
milliseconds drainSetting() { return milliseconds(settings().drain->getValue()); }
nanoseconds timerSlackSetting() { return nanoseconds(settings().timer_slack->getValue()); }
std::chrono::microseconds spinSetting() { return std::chrono::microseconds(settings().spin->getValue()); }
milliseconds trimAfterSetting() { return milliseconds(settings().trim_after->getValue()); }
milliseconds maxWaitSetting() { return milliseconds(settings().max_wait->getValue()); }
milliseconds watchdogSetting() { return milliseconds(settings().watchdog->getValue()); }
uint64_t readTimeoutSetting() { return settings().read_timeout->getValue(); }
uint64_t idleTimeoutSetting() { return settings().idle_timeout->getValue(); }

FiberIdentity identitySetting() { return chosen(kIdentities, settings().identity->getValue()); }
TimerQueueKind timerQueueSetting() { return chosen(kTimerQueues, settings().timer_queue->getValue()); }

std::string pidFileSetting() {
  const std::string file = settings().pid_file->getValue();
  const std::string path = settings().work_path->getValue();
  return file.empty() || path.empty() || file.front() == '/' ? file : path + '/' + file;
}

HttpLimits httpLimitsSetting() {
  HttpLimits limits;
  fill(limits, kHttpSizes);
  fill(limits, kHttpTimes);
  return limits;
}

TcpServerLimits tcpServerLimitsSetting() {
  TcpServerLimits limits;
  fill(limits, kTcpSizes);
  limits.limit_loopback = settings().limit_loopback->getValue();
  limits.backlog = static_cast<int>(settings().backlog->getValue());
  limits.listeners = static_cast<int>(settings().listeners->getValue());
  return limits;
}

}  // namespace sylar
