#include <fmt/format.h>
#include <pthread.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <new>
#include <set>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/log_sink.h"
#include "sylar/base/os_mutex.h"
#include "sylar/log/log_writer.h"
#include "sylar/log/log_yaml.h"
#include "sylar/log/logger.h"

namespace sylar {
namespace {

constinit std::atomic<Logger*> g_system{nullptr};

LogLevel::Level toLogLevel(log::Level level) {
  switch (level) {
    case log::Level::kDebug: return LogLevel::DEBUG;
    case log::Level::kInfo: return LogLevel::INFO;
    case log::Level::kWarn: return LogLevel::WARN;
    case log::Level::kError: return LogLevel::ERROR;
  }
  return LogLevel::ERROR;
}

// Sends the library's own lines to the logger "system".
constexpr log::Sink kToSystem{
    [](log::Level level) noexcept { return g_system.load(std::memory_order_relaxed)->getLevel() <= toLogLevel(level); },
    [](log::Level level, std::string_view line) noexcept {
      try {
        Logger& system = *g_system.load(std::memory_order_relaxed);
        const LogEvent::ptr event = LogEvent::make(system.shared_from_this(), toLogLevel(level), "", 0);
        event->getSS() << line;
        system.log(toLogLevel(level), event);
      } catch (...) {  // out of memory
        log::noMemory();
      }
    }};

using Texts = std::vector<std::string>;

void checkLevel(const std::string& text, const std::string& place, Texts& errors) {
  if (text.empty() || LogLevel::FromString(text) != LogLevel::UNKNOW) return;
  errors.push_back(fmt::format("{}.level: \"{}\" is no level; debug, info, warn, error and fatal are", place, text));
}

void checkFormatter(const std::string& pattern, const std::string& place, Texts& errors) {
  if (!LogFormatter(pattern).isError()) return;
  errors.push_back(fmt::format("{}.formatter: \"{}\" is no pattern; see log_formatter.h", place, pattern));
}

std::string cannotOpen(const LogAppenderDefine& define, const std::string& place, int error) {
  return fmt::format("{}.file: cannot open {}: {}", place, define.file, std::strerror(error));
}

void checkAppender(const LogAppenderDefine& define, const std::string& place, Texts& errors) {
  if (define.type != "StdoutLogAppender" && define.type != "FileLogAppender") {
    errors.push_back(fmt::format("{}.type: \"{}\" is no type; StdoutLogAppender and FileLogAppender are", place, define.type));
  } else if (define.type == "FileLogAppender" && define.file.empty()) {
    errors.push_back(fmt::format("{}.file: is missing; a FileLogAppender needs one", place));
  } else if (define.type == "FileLogAppender") {
    const int error = LogFile::mayOpen(LogFile::absolute(define.file));
    if (error != 0) errors.push_back(cannotOpen(define, place, -error));
  }
  checkLevel(define.level, place, errors);
  checkFormatter(define.formatter, place, errors);
}

// Makes an appender from a checked definition. Adds errors to `errors` that only opening the file can show.
LogAppender::ptr makeAppender(const LogAppenderDefine& define, const std::string& place, Texts& errors) {
  LogAppender::ptr appender;
  if (define.type == "FileLogAppender") {
    auto file = std::make_shared<FileLogAppender>(define.file, define.rotation);
    if (!file->reopen()) errors.push_back(cannotOpen(define, place, errno));
    appender = std::move(file);
  } else {
    appender = std::make_shared<StdoutLogAppender>();
  }
  if (!define.level.empty()) appender->setLevel(LogLevel::FromString(define.level));
  if (!define.formatter.empty()) appender->setFormatter(std::make_shared<LogFormatter>(define.formatter));
  return appender;
}

/// The parts that apply() gives to a logger.
struct Made {
  LogLevel::Level level;
  LogFormatter::ptr formatter;
  std::vector<LogAppender::ptr> appenders;
};

std::string placeOf(size_t logger) { return fmt::format("logs[{}]", logger); }
std::string placeOf(size_t logger, size_t appender) { return fmt::format("logs[{}].appenders[{}]", logger, appender); }

}  // namespace

struct LoggerManager::State {
  Logger::ptr& loggerOf(const std::string& name) SYLAR_REQUIRES(mutex) {
    Logger::ptr& logger = loggers[name];
    if (logger == nullptr) logger = std::make_shared<Logger>(name);
    return logger;
  }

  OsMutex mutex;  // taken before those of appenders, which are taken before those of loggers
  std::map<std::string, Logger::ptr> loggers SYLAR_GUARDED_BY(mutex);
  std::set<std::string> defined SYLAR_GUARDED_BY(mutex);
};

LoggerManager* LoggerMgr::GetInstance() {
  static auto* const instance = new LoggerManager;
  return instance;
}

LoggerManager::LoggerManager() : m_state(std::make_unique<State>()), m_root(std::make_shared<Logger>("root")) {
  m_root->addAppender(std::make_shared<StdoutLogAppender>());
  {
    const Lock lock(m_state->mutex);
    m_state->loggers["root"] = m_root;
  }
  g_system.store(getLogger("system").get(), std::memory_order_relaxed);
  // The child of a fork has one thread, so no lock may be held by another one there.
  ::pthread_atfork([]() SYLAR_NO_THREAD_SAFETY_ANALYSIS { LoggerMgr::GetInstance()->m_state->mutex.lock(); },
                   []() SYLAR_NO_THREAD_SAFETY_ANALYSIS { LoggerMgr::GetInstance()->m_state->mutex.unlock(); },
                   [] { new (&LoggerMgr::GetInstance()->m_state->mutex) OsMutex; });
  log::setSink(kToSystem);
}

Logger::ptr LoggerManager::getLogger(const std::string& name) {
  Lock lock(m_state->mutex);
  return m_state->loggerOf(name);
}

Texts LoggerManager::check(const std::vector<LogDefine>& defines) const {
  Texts errors;
  std::set<std::string> names;
  std::map<std::string, LogRotation> rotations;
  for (size_t i = 0; i < defines.size(); ++i) {
    const LogDefine& define = defines[i];
    if (define.name.empty()) errors.push_back(placeOf(i) + ".name: is missing");
    checkLevel(define.level, placeOf(i), errors);
    checkFormatter(define.formatter, placeOf(i), errors);
    for (size_t j = 0; j < define.appenders.size(); ++j) {
      const LogAppenderDefine& appender = define.appenders[j];
      checkAppender(appender, placeOf(i, j), errors);
      if (appender.file.empty()) continue;
      const auto [first, added] = rotations.emplace(LogFile::absolute(appender.file), appender.rotation);
      if (!added && first->second != appender.rotation) {
        errors.push_back(fmt::format("{}.rotation: {} is rotated otherwise above", placeOf(i, j), appender.file));
      }
    }
    if (!names.insert(define.name).second) {
      errors.push_back(fmt::format("{}.name: \"{}\" is defined twice", placeOf(i), define.name));
    }
  }
  return errors;
}

Texts LoggerManager::apply(const std::vector<LogDefine>& defines) {
  Texts errors = check(defines);
  if (!errors.empty()) return errors;

  std::map<std::string, Made> wanted;
  for (size_t i = 0; i < defines.size(); ++i) {
    const LogDefine& define = defines[i];
    Made made{define.level.empty() ? LogLevel::DEBUG : LogLevel::FromString(define.level),
              define.formatter.empty() ? std::make_shared<LogFormatter>() : std::make_shared<LogFormatter>(define.formatter),
              {}};
    for (size_t j = 0; j < define.appenders.size(); ++j) {
      made.appenders.push_back(makeAppender(define.appenders[j], placeOf(i, j), errors));
    }
    wanted.emplace(define.name, std::move(made));
  }
  if (!errors.empty()) return errors;

  std::set<std::string> names;
  for (const auto& [name, made] : wanted) names.insert(name);
  std::vector<std::shared_ptr<const Logger::Appenders>> old;  // destroyed outside the lock
  Lock lock(m_state->mutex);
  for (const std::string& name : m_state->defined) {
    Made initial{LogLevel::DEBUG, std::make_shared<LogFormatter>(), {}};
    if (name == m_root->getName()) initial.appenders.push_back(std::make_shared<StdoutLogAppender>());
    wanted.emplace(name, std::move(initial));  // no effect if `defines` has this name
  }
  m_state->defined = std::move(names);
  old.reserve(wanted.size());
  for (auto& [name, made] : wanted) {
    old.push_back(m_state->loggerOf(name)->replace(made.level, made.formatter, std::move(made.appenders)));
  }
  lock.unlock();
  return errors;
}

bool LoggerManager::flush(Deadline deadline) { return LogWriter::flushAll(deadline); }

std::string LoggerManager::toYamlString() {
  std::map<std::string, Logger::ptr> loggers;
  {
    Lock lock(m_state->mutex);
    loggers = m_state->loggers;
  }
  std::string yaml;
  for (const auto& [name, logger] : loggers) yaml += yamlItem(logger->toYamlString(), 0);
  return yaml;
}

}  // namespace sylar
