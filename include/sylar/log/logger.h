// A named source of log lines with a level, and the set of all of them. Use this header to configure logging; to write lines, use
// the macros of log.h.
//
// Thread safety: all calls from any thread. May suspend: no.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "sylar/api.h"
#include "sylar/clock.h"
#include "sylar/log/log_appender.h"
#include "sylar/log/log_define.h"
#include "sylar/log/log_event.h"
#include "sylar/log/log_formatter.h"
#include "sylar/log/log_level.h"

namespace sylar {

/// A logger, which must be held in a shared_ptr. Events that it lets through go to each of its appenders. If it has none, they go
/// to the logger `root`, which also applies its own level.
class SYLAR_API Logger : public std::enable_shared_from_this<Logger> {
 public:
  using ptr = std::shared_ptr<Logger>;

  explicit Logger(const std::string& name = "root");
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  /// Passes the event to the appenders if `level` is at least the logger's. An exception of an appender is reported on stderr.
  void log(LogLevel::Level level, const LogEvent::ptr& event);
  void debug(const LogEvent::ptr& event) { log(LogLevel::DEBUG, event); }
  void info(const LogEvent::ptr& event) { log(LogLevel::INFO, event); }
  void warn(const LogEvent::ptr& event) { log(LogLevel::WARN, event); }
  void error(const LogEvent::ptr& event) { log(LogLevel::ERROR, event); }
  void fatal(const LogEvent::ptr& event) { log(LogLevel::FATAL, event); }

  /// Adds an appender. If it has no formatter of its own, it takes over that of the logger.
  void addAppender(const LogAppender::ptr& appender);
  void delAppender(const LogAppender::ptr& appender);
  void clearAppenders();

  /// Returns the level, which is DEBUG at first.
  LogLevel::Level getLevel() const { return m_level.load(std::memory_order_relaxed); }
  void setLevel(LogLevel::Level level) { m_level.store(level, std::memory_order_relaxed); }

  const std::string& getName() const { return m_name; }

  /// Sets the formatter for this logger, and for those of its appenders that have none of their own. Null stands for the default
  /// pattern.
  void setFormatter(LogFormatter::ptr formatter);
  /// Sets the formatter by its pattern. A wrong pattern is reported, and the old one stays.
  void setFormatter(const std::string& pattern);
  LogFormatter::ptr getFormatter();

  /// Returns the logger as log.yml describes it.
  std::string toYamlString();

 private:
  friend class LoggerManager;
  using Appenders = std::vector<LogAppender::ptr>;
  struct State;
  std::shared_ptr<const Appenders> appenders();
  /// Replaces all three and returns the previous appenders, which the caller must drop outside of locks.
  std::shared_ptr<const Appenders> replace(LogLevel::Level level, const LogFormatter::ptr& formatter, Appenders appenders);

  const std::string m_name;
  std::atomic<LogLevel::Level> m_level{LogLevel::DEBUG};
  const std::unique_ptr<State> m_state;
};

/// Holds all loggers by name. Its root writes to stdout at first.
class SYLAR_API LoggerManager {
 public:
  LoggerManager(const LoggerManager&) = delete;
  LoggerManager& operator=(const LoggerManager&) = delete;

  /// Returns the logger of that name, and makes it if there is none. This is a map lookup under a lock, so keep the result in a
  /// static.
  Logger::ptr getLogger(const std::string& name);
  Logger::ptr getRoot() const { return m_root; }

  /// Configures the loggers as `defines` says, all or nothing. A logger that the previous apply() defined and this one does not
  /// goes back to its first state; others are left alone. Returns one text for each mistake, with its place
  /// ("logs[1].appenders[0].file: ..."), and if there is one, no logger has changed. Blocks the thread while files are opened.
  [[nodiscard]] std::vector<std::string> apply(const std::vector<LogDefine>& defines);
  /// Returns the mistakes that apply() would return, in the same texts, without making or opening anything. Mistakes that only
  /// opening can show (a disk without room for a directory, a FIFO without a reader) are left to apply(). Blocks the thread while
  /// paths are examined.
  [[nodiscard]] std::vector<std::string> check(const std::vector<LogDefine>& defines) const;

  /// Waits until everything that was logged before has been written. Returns false if that has not happened by `deadline`. Blocks
  /// the thread.
  bool flush(Deadline deadline = Deadline::never());

  /// Returns all loggers as log.yml describes them.
  std::string toYamlString();

  /// Does nothing, since everything is done when the manager is made. Source: sylar.
  void init() {}

 private:
  friend struct LoggerMgr;
  LoggerManager();

  struct State;
  const std::unique_ptr<State> m_state;
  const Logger::ptr m_root;
};

/// Holds the one LoggerManager. It is made on first use and never destroyed, so constructors and destructors of statics may log.
struct SYLAR_API LoggerMgr {
  static LoggerManager* GetInstance();
};

}  // namespace sylar
