#include "sylar/app/application.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <future>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "sylar/app/command_line.h"
#include "sylar/app/listen_address.h"
#include "sylar/app/log_settings.h"
#include "sylar/app/pid_file.h"
#include "sylar/base/check.h"
#include "sylar/base/log.h"
#include "sylar/http/http_server.h"
#include "sylar/log/log.h"

namespace sylar {
namespace {

std::atomic<Application*> g_instance{nullptr};

/// A place within a setting that is a list: "[2].address[0]".
std::string step(size_t index, const std::string& field = "") {
  return fmt::format("[{}]{}", index, field.empty() ? "" : '.' + field);
}

/// SIGTERM and SIGINT, and SIGHUP if `all`.
sigset_t signalSet(bool all) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigaddset(&set, SIGINT);
  if (all) ::sigaddset(&set, SIGHUP);
  return set;
}

void releaseSignals() {
  const sigset_t set = signalSet(false);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

/// Waits for `ended`. False: SIGTERM or SIGINT came first.
bool endsBeforeASignal(const std::future<void>& ended) {
  const sigset_t set = signalSet(false);
  constexpr timespec kMoment{0, 10'000'000};
  while (ended.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    if (::sigtimedwait(&set, nullptr, &kMoment) > 0) return false;
  }
  return true;
}

void raiseDescriptorLimit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void complain(const std::vector<ConfigError>& errors) {
  for (const ConfigError& error : errors) std::fprintf(stderr, "%s\n", error.toString().c_str());
}

TcpServer::ptr makeHttpServer(const ServerSetting& setting, const Application::Workers& workers) {
  auto server = std::make_shared<http::HttpServer>(setting.keepalive, workers.process, workers.io, workers.accept);
  http::HttpLimits limits = httpLimitsSetting();
  if (setting.timeout > 0) limits.first_byte_timeout = limits.idle_timeout = std::chrono::milliseconds(setting.timeout);
  server->setHttpLimits(limits);
  return server;
}

}  // namespace

/// The IOManagers of one name, and who is next.
struct Application::WorkerGroup {
  std::string name;
  std::vector<std::unique_ptr<IOManager>> managers;
  std::atomic<size_t> next{0};
};

Application::Application() {
  Application* none = nullptr;
  SYLAR_CHECK(g_instance.compare_exchange_strong(none, this));  // one at a time
  addServerType("http", makeHttpServer);
  const sigset_t signals = signalSet(true);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

Application::~Application() { g_instance = nullptr; }

Application* Application::GetInstance() { return g_instance; }

void Application::addServerType(const std::string& type, ServerMaker make) { m_types[type] = std::move(make); }

int Application::main(int argc, char** argv) {
  if (init(argc, argv)) run();
  return m_status;
}

bool Application::init(int argc, char** argv) {
  const std::string program = argc > 0 ? argv[0] : "service";
  const CommandLine line = CommandLine::parse(argc, argv);
  if (!line.error.empty() || line.help) {
    std::fprintf(line.help ? stdout : stderr, "%s%s", line.error.empty() ? "" : (program + ": " + line.error + "\n").c_str(),
                 CommandLine::usage(program).c_str());
    m_status = line.error.empty() ? kEnded : kMisused;
    return false;
  }

  m_config_dir = line.config_dir;
  if (std::error_code none; !std::filesystem::is_directory(m_config_dir, none)) {
    std::fprintf(stderr, "%s: there is no folder '%s' in %s: make it, with a server.yml, or name another one with -c DIR\n",
                 program.c_str(), m_config_dir.c_str(), std::filesystem::current_path(none).c_str());
    m_status = kMisused;
    return false;
  }
  makeLibrarySettings();
  makeLogSettings();
  LoadResult loaded = load(true);
  if (loaded.ok() && !line.check_config) loaded.errors = applyLogSettings();
  complain(loaded.errors);
  m_status = loaded.ok() ? kEnded : kMisused;
  if (line.check_config && loaded.ok()) std::printf("%s: right\n", m_config_dir.c_str());
  return loaded.ok() && !line.check_config;
}

LoadResult Application::load(bool force) const {
  return Config::LoadFromConfDir(m_config_dir, force, UnknownKeys::kRefuse,
                                 [this](const ConfigPreview& next) { return check(next); });
}

/// What no single setting can know to be wrong.
std::vector<ConfigError> Application::check(const ConfigPreview& next) const {
  std::vector<ConfigError> errors = checkLogSettings(next);
  const auto wrong = [&](const std::string& where, const std::string& why) {
    errors.push_back(next.errorAt("servers", where, why));
  };
  const auto names = [](const auto& map) {
    std::string text;
    for (const auto& [name, value] : map) text += (text.empty() ? "" : ", ") + name;
    return text;
  };

  const WorkerSettings workers = next.value(workerSettings());
  std::map<std::string, std::string> taken;
  const ServerSettings servers = next.value(serverSettings());
  for (size_t i = 0; i < servers.size(); ++i) {
    const ServerSetting& server = servers[i];
    if (!m_types.contains(server.type)) wrong(step(i, "type"), "is no type of server; there are " + names(m_types));
    for (const auto& [field, name] : {std::pair("accept_worker", server.accept_worker),
                                      {"io_worker", server.io_worker},
                                      {"process_worker", server.process_worker}}) {
      if (name.empty() || workers.contains(name)) continue;
      wrong(step(i, field),
            workers.empty() ? "is no worker; the setting workers has none" : "is no worker; there are " + names(workers));
    }
    for (size_t j = 0; j < server.address.size(); ++j) {
      const std::string& address = server.address[j];
      const std::string where = step(i, "address" + step(j));
      if (const std::string rule = listenAddressRule(address); !rule.empty()) wrong(where, rule);
      const auto [other, fresh] = taken.emplace(address, where);
      if (!fresh && !address.ends_with(":0")) wrong(where, "is taken by servers" + other->second);
    }
  }
  return errors;
}

bool Application::run() {
  SYLAR_CHECK(!m_config_dir.empty());  // init() comes first
  ::signal(SIGPIPE, SIG_IGN);
  raiseDescriptorLimit();
  m_status = kNotStarted;
  try {
    const bool runs = start();
    m_status = kEnded;
    if (runs) waitForSignals();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
  } catch (...) {
    std::fprintf(stderr, "a callback threw something that is no std::exception\n");
  }
  releaseSignals();  // a second one ends the process at once
  const bool in_time = drain(Deadline::after(drainSetting()));
  if (m_status == kEnded && !in_time) m_status = kCutOff;
  return m_status == kEnded;
}

/// False: the service was told to end meanwhile.
bool Application::start() {
  if (const std::string path = pidFileSetting(); !path.empty()) m_pid_file = std::make_unique<PidFile>(path);
  makeWorkers();
  makeServers();
  if (!inFiber(m_on_ready)) return false;
  for (const Served& each : m_servers) {
    if (!each.server->start()) throw std::runtime_error(fmt::format("server {}: cannot start to accept", each.server->getName()));
    for (const Socket::ptr& socket : each.server->getSocks())
      log::info("{} listens on {}", each.server->getName(), socket->getLocalAddress()->toString());
  }
  warnOfNothing();
  m_up = true;
  if (!inFiber(m_on_up)) return false;
  log::info("the service runs: process {}, {} servers, configured by {}", ::getpid(), m_servers.size(), m_config_dir);
  return true;
}

/// What is no mistake, and yet serves nobody.
void Application::warnOfNothing() const {
  if (m_servers.empty()) log::warn("{}: the setting servers is empty: nobody is served", m_config_dir);
  for (const auto& server : servers<http::HttpServer>()) {
    std::map<std::string, http::IServletCreator::ptr> servlets;
    const auto dispatch = server->getServletDispatch();
    dispatch->listAllServletCreator(servlets);
    dispatch->listAllGlobServletCreator(servlets);
    const bool finds_nothing = std::dynamic_pointer_cast<http::NotFoundServlet>(dispatch->getDefault()) != nullptr;
    if (servlets.empty() && finds_nothing) {
      log::warn("{} has no servlets: every request is answered with 404; add them in onServerReady", server->getName());
    }
  }
}

void Application::makeWorkers() {
  WorkerSettings settings = workerSettings().getValue();
  if (settings.empty()) settings["io"].thread_num = std::max(1u, std::thread::hardware_concurrency());
  for (const auto& [name, setting] : settings) {
    auto group = std::make_unique<WorkerGroup>();
    group->name = name;
    for (uint32_t i = 0; i < setting.worker_num; ++i) {
      group->managers.push_back(std::make_unique<IOManager>(SchedulerOptions{.threads = setting.thread_num,
                                                                             .use_caller = false,
                                                                             .name = name,
                                                                             .max_wait = maxWaitSetting(),
                                                                             .timer_slack = timerSlackSetting(),
                                                                             .spin = spinSetting()},
                                                            timerQueueSetting()));
    }
    m_workers.push_back(std::move(group));
  }
}

void Application::makeServers() {
  const ServerSettings settings = serverSettings().getValue();
  std::vector<ConfigError> errors;
  for (size_t i = 0; i < settings.size(); ++i) {
    const ServerSetting& setting = settings[i];
    const auto server = m_types.at(setting.type)(
        setting, {worker(setting.process_worker), worker(setting.io_worker), worker(setting.accept_worker)});
    if (server == nullptr)
      throw std::runtime_error(fmt::format("servers[{}]: nothing was made for the type {}", i, setting.type));
    server->setName(!setting.name.empty() ? setting.name : setting.type);
    server->setLimits(tcpServerLimitsSetting());
    server->setRecvTimeout(setting.timeout > 0 ? setting.timeout : readTimeoutSetting());
    server->setIdleTimeout(idleTimeoutSetting());
    bind(*server, i, setting, errors);
    m_servers.push_back({setting.type, server});
  }
  if (errors.empty()) return;
  std::string text;
  for (const ConfigError& error : errors) text += (text.empty() ? "" : "\n") + error.toString();
  throw std::runtime_error(text);
}

/// Binds all addresses of a server; adds what fails to `errors`.
void Application::bind(TcpServer& server, size_t index, const ServerSetting& setting, std::vector<ConfigError>& errors) {
  for (size_t i = 0; i < setting.address.size(); ++i) {
    const auto wrong = [&](const std::string& why) {
      errors.push_back(Config::errorAt("servers", step(index, "address" + step(i)), why));
    };
    try {
      std::vector<Address::ptr> fails;
      if (server.bind(resolveListenAddress(setting.address[i]), fails)) continue;
      wrong(fmt::format("cannot listen on {}: {}", fails.front()->toString(), std::system_category().message(errno)));
    } catch (const std::runtime_error& failure) {
      wrong(failure.what());
    }
  }
}

/// Runs `callbacks` in a fiber of the first worker; what the first one that fails throws comes out here. False: the service was
/// told to end meanwhile.
bool Application::inFiber(const std::vector<std::function<void()>>& callbacks) {
  const auto done = std::make_shared<std::promise<void>>();  // the fiber's, too: it is still in set_value() when we go on
  std::future<void> ended = done->get_future();
  worker("")->schedule([&callbacks, done] {
    try {
      for (const auto& callback : callbacks) callback();
      done->set_value();
    } catch (...) {
      done->set_exception(std::current_exception());
    }
  });
  if (!endsBeforeASignal(ended)) return false;
  ended.get();
  return true;
}

void Application::waitForSignals() {
  const sigset_t signals = signalSet(true);
  for (int signal = SIGHUP; signal == SIGHUP;) {
    ::sigwait(&signals, &signal);
    if (signal == SIGHUP) {
      reload();
    } else {
      log::info("signal {}: the service ends", signal);
    }
  }
}

void Application::reload() {
  const WorkerSettings workers = workerSettings().getValue();
  const ServerSettings servers = serverSettings().getValue();
  LoadResult result = load(false);
  const bool taken = result.ok();
  if (taken) result.errors = applyLogSettings();
  log::info("signal {}: {}: {}", SIGHUP, m_config_dir,
            taken ? fmt::format("{} settings changed", result.changed) : "is refused, nothing has changed");
  for (const ConfigError& error : result.errors) log::error("config: {}", error.toString());
  if (workers != workerSettings().getValue() || servers != serverSettings().getValue()) {
    log::warn("workers and servers stay as they are until the service is started anew");
  }
}

/// Runs the callbacks of onStop in a fiber of the first worker, if the service was up.
std::future<void> Application::tellOfStop() {
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> told = done->get_future();
  const auto tell = [callbacks = m_on_stop, done] {
    for (const auto& callback : callbacks) {
      try {
        callback();
      } catch (const std::exception& failure) {
        log::error("a callback of onStop threw: {}", failure.what());
      } catch (...) {
        log::error("a callback of onStop threw something that is no std::exception");
      }
    }
    done->set_value();
  };
  if (!m_up || !worker("")->trySchedule(tell)) done->set_value();
  return told;
}

/// Ends everything: who is idle at once, who is at work by `deadline`. True: all ended by themselves.
bool Application::drain(Deadline deadline) {
  for (const Served& each : m_servers) each.server->stop();
  std::future<void> told = tellOfStop();
  bool in_time = true;
  for (const Served& each : m_servers) {
    if (each.server->join(deadline)) continue;
    in_time = false;
    log::warn("server {}: {} connections were cut off", each.server->getName(), each.server->getCounts().open);
  }
  told.wait_until(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline.ns())));
  bool stuck = false;
  for (const auto& group : m_workers) {
    for (const auto& manager : group->managers) {
      const StopResult result = manager->stop(deadline);
      for (const FiberInfo& left : result.leftovers)
        log::error("worker {}: fiber {} '{}' does not end: {}", group->name, left.id, left.name, left.waits_for);
      stuck = stuck || !result.clean;
    }
  }
  m_pid_file.reset();
  if (stuck) {  // what such a fiber uses must outlive it, and that is everything
    LoggerMgr::GetInstance()->flush(Deadline::after(std::chrono::seconds(1)));
    ::_exit(m_status == kEnded ? kCutOff : m_status);
  }
  m_servers.clear();
  m_workers.clear();
  log::info("the service has ended{}", in_time ? "" : ", not in time");
  return in_time;
}

bool Application::getServer(const std::string& type, std::vector<TcpServer::ptr>& servers) const {
  servers.clear();
  for (const Served& each : m_servers) {
    if (each.type == type) servers.push_back(each.server);
  }
  return !servers.empty();
}

void Application::listAllServer(std::map<std::string, std::vector<TcpServer::ptr>>& servers) const {
  for (const Served& each : m_servers) servers[each.type].push_back(each.server);
}

IOManager* Application::worker(const std::string& name) const {
  for (const auto& group : m_workers) {
    if (name.empty() || name == group->name) return group->managers[group->next++ % group->managers.size()].get();
  }
  return nullptr;
}

}  // namespace sylar
