#include "sylar/log/logger.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/log_sink.h"
#include "sylar/base/os_mutex.h"
#include "sylar/log/log_locks.h"
#include "sylar/log/log_yaml.h"

namespace sylar {

struct Logger::State {
  State() { LogLocks::get().add(mutex); }
  ~State() { LogLocks::get().remove(mutex); }

  OsMutex mutex;
  // Changed by replacing it, so that a thread that logs keeps the list that it has.
  std::shared_ptr<const Appenders> appenders SYLAR_GUARDED_BY(mutex) = std::make_shared<Appenders>();
  LogFormatter::ptr formatter SYLAR_GUARDED_BY(mutex) = std::make_shared<LogFormatter>();
};

Logger::Logger(const std::string& name) : m_name(name), m_state(std::make_unique<State>()) {}
Logger::~Logger() = default;

std::shared_ptr<const Logger::Appenders> Logger::appenders() {
  Lock lock(m_state->mutex);
  return m_state->appenders;
}

void Logger::log(LogLevel::Level level, const LogEvent::ptr& event) {
  if (level < getLevel()) return;
  const auto appenders = this->appenders();
  if (appenders->empty()) {
    const Logger::ptr root = LoggerMgr::GetInstance()->getRoot();
    if (root.get() != this) root->log(level, event);
    return;
  }
  const Logger::ptr self = shared_from_this();
  const auto threw = [this](const char* what) {
    log::writeToStderr(log::Level::kError, fmt::format("log: an appender of logger {} threw: {}", m_name, what));
  };
  for (const LogAppender::ptr& appender : *appenders) {
    try {
      appender->log(self, level, event);
    } catch (const std::exception& error) {
      threw(error.what());
    } catch (...) {
      threw("no std::exception");
    }
  }
}

void Logger::addAppender(const LogAppender::ptr& appender) {
  appender->inherit(getFormatter());
  Lock lock(m_state->mutex);
  auto changed = std::make_shared<Appenders>(*m_state->appenders);
  changed->push_back(appender);
  m_state->appenders = std::move(changed);
}

void Logger::delAppender(const LogAppender::ptr& appender) {
  std::shared_ptr<const Appenders> old;  // the last handle of an appender is destroyed outside the lock
  Lock lock(m_state->mutex);
  auto changed = std::make_shared<Appenders>(*m_state->appenders);
  std::erase(*changed, appender);
  old = std::exchange(m_state->appenders, std::move(changed));
  lock.unlock();
}

void Logger::clearAppenders() {
  auto none = std::make_shared<const Appenders>();
  Lock lock(m_state->mutex);
  m_state->appenders.swap(none);
  lock.unlock();
}

void Logger::setFormatter(LogFormatter::ptr formatter) {
  if (formatter == nullptr) formatter = std::make_shared<LogFormatter>();
  {
    Lock lock(m_state->mutex);
    m_state->formatter = formatter;
  }
  const auto appenders = this->appenders();
  for (const LogAppender::ptr& appender : *appenders) appender->inherit(formatter);
}

void Logger::setFormatter(const std::string& pattern) {
  auto formatter = std::make_shared<LogFormatter>(pattern);
  if (formatter->isError()) {
    log::error("log: logger {} keeps its formatter, this is no pattern: {}", m_name, pattern);
    return;
  }
  setFormatter(std::move(formatter));
}

LogFormatter::ptr Logger::getFormatter() {
  Lock lock(m_state->mutex);
  return m_state->formatter;
}

std::shared_ptr<const Logger::Appenders> Logger::replace(LogLevel::Level level, const LogFormatter::ptr& formatter,
                                                         Appenders appenders) {
  for (const LogAppender::ptr& appender : appenders) appender->inherit(formatter);
  const auto list = std::make_shared<const Appenders>(std::move(appenders));
  Lock lock(m_state->mutex);
  m_state->formatter = formatter;
  setLevel(level);
  return std::exchange(m_state->appenders, list);
}

std::string Logger::toYamlString() {
  std::string yaml = "name: " + yamlQuoted(m_name) + "\n";
  if (getLevel() != LogLevel::UNKNOW) yaml += std::string("level: ") + LogLevel::ToString(getLevel()) + "\n";
  yaml += "formatter: " + yamlQuoted(getFormatter()->getPattern()) + "\n";
  const auto appenders = this->appenders();
  if (!appenders->empty()) yaml += "appenders:\n";
  for (const LogAppender::ptr& appender : *appenders) yaml += yamlItem(appender->toYamlString(), 2);
  return yaml;
}

}  // namespace sylar
