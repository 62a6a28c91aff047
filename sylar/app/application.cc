#include "sylar/application.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "sylar/app/command_line.h"
#include "sylar/app/log_settings.h"
#include "sylar/app/pid_file.h"
#include "sylar/app/reloader.h"
#include "sylar/app/replacement.h"
#include "sylar/app/servers.h"
#include "sylar/app/signals.h"
#include "sylar/app/worker_groups.h"
#include "sylar/base/log.h"
#include "sylar/check.h"
#include "sylar/config.h"
#include "sylar/log.h"
#include "sylar/net/socket_control.h"
#include "sylar/tcp_server.h"

namespace sylar {
namespace {

std::atomic<Application*> g_instance{nullptr};

void raiseDescriptorLimit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void complain(const std::vector<ConfigError>& errors) {
  for (const ConfigError& error : errors) std::fprintf(stderr, "%s\n", error.toString().c_str());
}

/// Returns the file of this program, by the name that it was called by if that leads there: it may lead to a newer version later.
std::string programFile(const std::string& called) {
  std::error_code none;
  const std::filesystem::path own = "/proc/self/exe";
  const std::filesystem::path name = std::filesystem::absolute(called, none);
  if (called.find('/') != std::string::npos && std::filesystem::equivalent(name, own, none)) return name;
  return std::filesystem::read_symlink(own, none);
}

/// Returns what this process was called with. The program may have shown less to the Application.
std::vector<std::string> ownArguments() {
  std::ifstream file("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace

class Application::Impl {
  friend class Application;

  bool init(int argc, char** argv);
  bool run();

  ConfigValidator validator() const;
  LoadResult load(bool force) const;
  bool start();
  bool inFiber(const std::vector<std::function<void()>>& callbacks);
  std::future<void> tellOfStop();
  void reload();
  bool drain(Deadline deadline);
  void waitForSignals();

  void takeOver();
  void replace();
  bool isReplaced() const { return m_replacement != nullptr && m_replacement->end(); }

  Predecessor m_predecessor;
  std::string m_program;  // the file
  std::string m_config_dir;
  Status m_status = kEnded;
  bool m_up = false;  // the servers accept, or have accepted
  std::vector<std::function<void()>> m_on_ready, m_on_up, m_on_stop;
  std::unique_ptr<PidFile> m_pid_file;
  WorkerGroups m_workers;  // outlive the servers
  Servers m_servers;
  std::map<std::string, std::string> m_started_with;  // settings that are not live, by name, as text
  std::unique_ptr<Reloader> m_reloader;               // set while the service runs
  std::unique_ptr<Replacement> m_replacement;
};

bool Application::Impl::init(int argc, char** argv) {
  const std::string program = argc > 0 ? argv[0] : "service";
  const CommandLine line = CommandLine::parse(argc, argv);
  if (!line.error.empty() || line.help) {
    std::fprintf(line.help ? stdout : stderr, "%s%s", line.error.empty() ? "" : (program + ": " + line.error + "\n").c_str(),
                 CommandLine::usage(program).c_str());
    m_status = line.error.empty() ? kEnded : kBadConfig;
    return false;
  }

  m_program = programFile(program);
  m_config_dir = line.config_dir;
  if (std::error_code none; !std::filesystem::is_directory(m_config_dir, none)) {
    std::fprintf(stderr, "%s: there is no folder '%s' in %s: make it, with a server.yml, or name another one with -c DIR\n",
                 program.c_str(), m_config_dir.c_str(), std::filesystem::current_path(none).c_str());
    m_status = kBadConfig;
    return false;
  }
  LoadResult loaded = line.check_config ? Config::CheckConfDir(m_config_dir, UnknownKeys::kRefuse, validator()) : load(true);
  if (loaded.ok() && !line.check_config) loaded.errors = logSettingErrors();
  complain(loaded.errors);
  m_status = loaded.ok() ? kEnded : kBadConfig;
  if (line.check_config && loaded.ok()) std::printf("%s: right\n", m_config_dir.c_str());
  return loaded.ok() && !line.check_config;
}

/// Returns what finds the mistakes that no single setting can see.
ConfigValidator Application::Impl::validator() const {
  return [this](const ConfigPreview& next) {
    std::vector<ConfigError> errors = checkLogSettings(next);
    std::ranges::move(m_servers.check(next), std::back_inserter(errors));
    return errors;
  };
}

LoadResult Application::Impl::load(bool force) const {
  return Config::LoadFromConfDir(m_config_dir, force, UnknownKeys::kRefuse, validator());
}

bool Application::Impl::run() {
  SYLAR_CHECK(!m_config_dir.empty());  // init() must be called first
  ::signal(SIGPIPE, SIG_IGN);
  raiseDescriptorLimit();
  Config::Visit([this](const ConfigVarBase::ptr& var) {
    if (!var->isLive()) m_started_with[var->getName()] = var->toString();
  });
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
  if (!isReplaced()) releaseEndSignals();  // a second signal ends the process at once
  const bool in_time = drain(Deadline::after(drainSetting()));
  if (m_status == kEnded && !in_time) m_status = kTimedOut;
  return m_status == kEnded;
}

/// Makes and starts everything. Returns false if the service was told to end before all callbacks had returned.
bool Application::Impl::start() {
  if (const std::string path = pidFileSetting(); !path.empty()) {
    m_pid_file = std::make_unique<PidFile>(path, m_predecessor.takePidFile());
  }
  m_workers.make();
  m_servers.make(m_workers);
  if (!inFiber(m_on_ready)) return false;
  for (const Servers::Served& each : m_servers.all()) {
    if (!each.server->start()) throw std::runtime_error(fmt::format("server {}: cannot start to accept", each.server->getName()));
    for (const Socket::ptr& socket : each.server->getSocks())
      log::info("{} listens on {}", each.server->getName(), socket->getLocalAddress()->toString());
  }
  m_servers.warnOfNothing(m_config_dir);
  m_up = true;
  if (!inFiber(m_on_up)) return false;
  log::info("the service runs: process {}, {} servers, configured by {}", ::getpid(), m_servers.all().size(), m_config_dir);
  takeOver();
  return true;
}

/// Takes over from an old process, if there is one.
void Application::Impl::takeOver() {
  if (m_pid_file != nullptr) m_pid_file->takeOver();
  const std::vector<Address::ptr> files = m_predecessor.relieve();
  for (const Socket::ptr& socket : m_servers.listeners()) {
    const auto is_here = [&](const Address::ptr& each) { return *each == *socket->getLocalAddress(); };
    if (std::ranges::any_of(files, is_here)) SocketControl::takeFile(*socket);
  }
}

/// Runs `callbacks` in a fiber of the first worker, up to the first that throws, and rethrows its exception. Returns false if the
/// service was told to end before they had returned.
bool Application::Impl::inFiber(const std::vector<std::function<void()>>& callbacks) {
  const auto done = std::make_shared<std::promise<void>>();  // shared: the fiber is still in set_value() when we go on
  std::future<void> ended = done->get_future();
  m_workers.get("")->schedule([&callbacks, done] {
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

void Application::Impl::waitForSignals() {
  m_reloader = std::make_unique<Reloader>([this] {
    try {
      reload();
    } catch (const std::exception& failure) {
      log::error("the settings could not be read again: {}", failure.what());
    }
  });
  int signal;
  while ((signal = awaitSignal()) == SIGHUP || signal == SIGUSR2) {
    if (m_replacement != nullptr && m_replacement->serves()) {
      log::info("process {} has taken over: this one ends", m_replacement->process());
      return;
    }
    try {
      signal == SIGHUP ? m_reloader->ask() : replace();
    } catch (const std::system_error& failure) {
      log::error("signal {}: cannot {}: {}", signal, signal == SIGHUP ? "reload" : "start the program anew", failure.what());
    }
  }
  log::info("signal {}: the service ends", signal);
}

/// Starts the program again. When that process serves, another SIGUSR2 ends this one.
void Application::Impl::replace() {
  if (m_replacement != nullptr && !m_replacement->hasFailed()) {
    log::warn("signal {}: process {} was started before, and takes over when it serves", SIGUSR2, m_replacement->process());
    return;
  }
  std::vector<Socket::ptr> sockets = m_servers.listeners();
  const auto others = std::stable_partition(sockets.begin(), sockets.end(),
                                            [](const Socket::ptr& each) { return SocketControl::ownsFile(*each); });
  Legacy legacy;
  legacy.with_files = static_cast<size_t>(others - sockets.begin());
  for (const Socket::ptr& each : sockets) legacy.listeners.push_back(each->getSocket());
  if (m_pid_file != nullptr) legacy.pid_file = m_pid_file->fd();
  m_replacement.reset();
  m_replacement = std::make_unique<Replacement>(m_program, ownArguments(), legacy, [this](bool serves) {
    if (serves) {
      ::kill(::getpid(), SIGUSR2);
    } else if (m_pid_file != nullptr) {
      m_pid_file->takeOver();  // that one may have written its number
    }
  });
  log::info("signal {}: process {} was started, and takes over when it serves", SIGUSR2, m_replacement->process());
}

/// Loads the files again, on the reloader's thread.
void Application::Impl::reload() {
  const LoadResult result = load(false);
  m_servers.reloadTls();  // before the line that says that all is done
  log::info("signal {}: {}: {}", SIGHUP, m_config_dir,
            result.ok() ? fmt::format("{} settings changed", result.changed) : "is refused, nothing has changed");
  for (const ConfigError& error : result.errors) log::error("config: {}", error.toString());
  for (const auto& [name, text] : m_started_with) {
    if (Config::LookupBase(name)->toString() == text) continue;
    log::warn("{} has changed, without an effect until the service is started anew", name);
  }
}

/// Runs the callbacks of onStop in a fiber of the first worker, if the service was up.
std::future<void> Application::Impl::tellOfStop() {
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
  if (!m_up || !m_workers.get("")->trySchedule(tell)) done->set_value();
  return told;
}

/// Ends everything: connections and fibers that are idle at once, those at work by `deadline`. Returns true if all of them ended
/// by themselves.
bool Application::Impl::drain(Deadline deadline) {
  if (isReplaced()) {
    for (const Socket::ptr& socket : m_servers.listeners()) SocketControl::leaveFile(*socket);
  }
  for (const Servers::Served& each : m_servers.all()) each.server->stop();
  std::future<void> told = tellOfStop();
  bool in_time = true;
  for (const Servers::Served& each : m_servers.all()) {
    if (each.server->join(deadline)) continue;
    in_time = false;
    log::warn("server {}: {} connections were cut off", each.server->getName(), each.server->getCounts().open);
  }
  told.wait_until(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline.ns())));
  bool stuck = !m_workers.stop(deadline);
  if (m_reloader != nullptr && !m_reloader->end(deadline)) {
    log::error("a listener of a setting does not end");
    stuck = true;
  }
  if (m_replacement != nullptr && !m_replacement->await(deadline)) {
    log::warn("process {}, which was to take over, is killed", m_replacement->process());
  }
  m_replacement.reset();
  m_pid_file.reset();
  if (stuck) {  // such a fiber or listener may use anything, so nothing may be destroyed before it ends
    LoggerMgr::GetInstance()->flush(Deadline::after(std::chrono::seconds(1)));
    ::_exit(m_status == kEnded ? kTimedOut : m_status);
  }
  m_servers.clear();
  m_workers.clear();
  if (m_status != kNotStarted) log::info("the service has ended{}", in_time ? "" : ", not in time");
  return in_time;
}

Application::Application() : m_impl(std::make_unique<Impl>()) {
  Application* none = nullptr;
  SYLAR_CHECK(g_instance.compare_exchange_strong(none, this));  // only one at a time
  blockSignals();
}

Application::~Application() { g_instance = nullptr; }

Application* Application::GetInstance() { return g_instance; }

void Application::addServerType(const std::string& type, ServerMaker make) { m_impl->m_servers.addType(type, std::move(make)); }

void Application::onServerReady(std::function<void()> callback) { m_impl->m_on_ready.push_back(std::move(callback)); }
void Application::onServerUp(std::function<void()> callback) { m_impl->m_on_up.push_back(std::move(callback)); }
void Application::onStop(std::function<void()> callback) { m_impl->m_on_stop.push_back(std::move(callback)); }

int Application::main(int argc, char** argv) {
  if (init(argc, argv)) run();
  return status();
}

bool Application::init(int argc, char** argv) { return m_impl->init(argc, argv); }
bool Application::run() { return m_impl->run(); }
Application::Status Application::status() const { return m_impl->m_status; }

std::vector<TcpServer::ptr> Application::allServers() const {
  std::vector<TcpServer::ptr> servers;
  for (const Servers::Served& each : m_impl->m_servers.all()) servers.push_back(each.server);
  return servers;
}

bool Application::getServer(const std::string& type, std::vector<TcpServer::ptr>& servers) const {
  servers.clear();
  for (const Servers::Served& each : m_impl->m_servers.all()) {
    if (each.type == type) servers.push_back(each.server);
  }
  return !servers.empty();
}

void Application::listAllServer(std::map<std::string, std::vector<TcpServer::ptr>>& servers) const {
  for (const Servers::Served& each : m_impl->m_servers.all()) servers[each.type].push_back(each.server);
}

IOManager* Application::worker(const std::string& name) const { return m_impl->m_workers.get(name); }

}  // namespace sylar
