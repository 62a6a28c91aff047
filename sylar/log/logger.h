// A named source of lines with a level, and the set of all of them. Use the macros of log.h to write; this is for configuring.
//
// Thread safety: all calls from any thread. None suspends.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sylar/base/os_mutex.h"
#include "sylar/log/log_appender.h"
#include "sylar/log/log_define.h"
#include "sylar/log/log_event.h"
#include "sylar/log/log_formatter.h"
#include "sylar/log/log_level.h"

namespace sylar {

/// Held in a shared_ptr. What it lets through goes to each of its appenders; if it has none, to the logger `root`, which applies
/// its own level too.
class Logger : public std::enable_shared_from_this<Logger> {
 public:
  using ptr = std::shared_ptr<Logger>;

  explicit Logger(const std::string& name = "root");
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  /// Passes the event to the appenders if `level` is at least the logger's. What an appender throws is reported on stderr.
  void log(LogLevel::Level level, const LogEvent::ptr& event);
  void debug(const LogEvent::ptr& event) { log(LogLevel::DEBUG, event); }
  void info(const LogEvent::ptr& event) { log(LogLevel::INFO, event); }
  void warn(const LogEvent::ptr& event) { log(LogLevel::WARN, event); }
  void error(const LogEvent::ptr& event) { log(LogLevel::ERROR, event); }
  void fatal(const LogEvent::ptr& event) { log(LogLevel::FATAL, event); }

  /// An appender without a formatter of its own takes over that of the logger.
  void addAppender(const LogAppender::ptr& appender);
  void delAppender(const LogAppender::ptr& appender);
  void clearAppenders();

  /// DEBUG at first.
  LogLevel::Level getLevel() const { return m_level.load(std::memory_order_relaxed); }
  void setLevel(LogLevel::Level level) { m_level.store(level, std::memory_order_relaxed); }

  const std::string& getName() const { return m_name; }

  /// For this logger, and for those of its appenders that have none of their own. Null: the default pattern.
  void setFormatter(LogFormatter::ptr formatter);
  /// A wrong pattern is reported, and the old one stays.
  void setFormatter(const std::string& pattern);
  LogFormatter::ptr getFormatter();

  /// The logger as log.yml has it.
  std::string toYamlString();

 private:
  friend class LoggerManager;
  using Appenders = std::vector<LogAppender::ptr>;

  std::shared_ptr<const Appenders> appenders();
  /// The appenders that it had, for the caller to let go outside of locks.
  std::shared_ptr<const Appenders> replace(LogLevel::Level level, const LogFormatter::ptr& formatter, Appenders appenders);

  const std::string m_name;
  std::atomic<LogLevel::Level> m_level{LogLevel::DEBUG};
  OsMutex m_mutex;
  std::shared_ptr<const Appenders> m_appenders SYLAR_GUARDED_BY(m_mutex);  // changed by replacing it: those who log keep theirs
  LogFormatter::ptr m_formatter SYLAR_GUARDED_BY(m_mutex);
};

/// All loggers by name. Its root writes to stdout at first.
class LoggerManager {
 public:
  LoggerManager(const LoggerManager&) = delete;
  LoggerManager& operator=(const LoggerManager&) = delete;

  /// Makes it, if there is none. A look into a map under a lock: keep the result in a static.
  Logger::ptr getLogger(const std::string& name);
  Logger::ptr getRoot() const { return m_root; }

  /// Makes the loggers what `defines` says, all or nothing. A logger that was defined by the apply() before and is not any more
  /// goes back to what it was at first; others are left alone. What is wrong comes back as one text for each mistake, with its
  /// place ("logs[1].appenders[0].file: ..."), and then no logger has changed. Blocks the thread while files are opened.
  [[nodiscard]] std::vector<std::string> apply(const std::vector<LogDefine>& defines);
  /// The mistakes that apply() would tell, in the same texts; nothing is made or opened. What only opening can tell (a disk
  /// without room for a directory, a FIFO that nobody reads) is left to apply(). Blocks the thread while paths are looked at.
  [[nodiscard]] std::vector<std::string> check(const std::vector<LogDefine>& defines) const;

  /// Waits until all that was logged before has been written; false if that has not happened by `deadline`. Blocks the thread.
  bool flush(Deadline deadline = Deadline::never());

  /// All loggers, as log.yml has them.
  std::string toYamlString();

  /// sylar's. All is done when the manager is made.
  void init() {}

 private:
  friend struct LoggerMgr;
  LoggerManager();

  struct Made;

  Logger::ptr& loggerOf(const std::string& name) SYLAR_REQUIRES(m_mutex);

  void beforeFork();
  void afterForkInParent();
  void afterForkInChild();

  OsMutex m_mutex;  // before those of appenders, and these before those of loggers
  std::map<std::string, Logger::ptr> m_loggers SYLAR_GUARDED_BY(m_mutex);
  std::set<std::string> m_defined SYLAR_GUARDED_BY(m_mutex);
  const Logger::ptr m_root;
};

/// The one LoggerManager. Made when it is first asked for, and never destroyed: constructors and destructors of statics may log.
struct LoggerMgr {
  static LoggerManager* GetInstance();
};

}  // namespace sylar
