// The destinations of log lines: stdout, a file, or a class that a program derives from LogAppender.
//
// The library's two appenders pass their text to a writer thread, so logging waits neither for a disk nor for a pipe and never
// suspends a fiber. The queue is bounded (4 MiB); text beyond that is dropped, counted and reported. exit(3),
// LoggerManager::flush() and a crash (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, and so abort() and an uncaught exception) write
// the whole queue, within 5 s; _exit and SIGKILL lose it. To do so on a crash, the first line installs handlers of these signals,
// which then call the previous handlers. A program that installs its own handlers later should chain to them. A fork waits up to
// 100 ms for the queue to be written, so that lines of the parent do not stay behind the child's.
//
// Thread safety: all calls from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "sylar/api.h"
#include "sylar/log/log_define.h"
#include "sylar/log/log_event.h"
#include "sylar/log/log_formatter.h"
#include "sylar/log/log_level.h"
#include "sylar/thread_mutex.h"

namespace sylar {

namespace detail {
class LogWriter;
}

/// The base of all appenders. A derived class overrides log() and toYamlString(). The thread or fiber that logs calls log(),
/// which must not suspend: it makes no call that the hooks know and takes no lock that is held over one. An exception that it
/// throws is reported on stderr.
class SYLAR_API LogAppender {
 public:
  using ptr = std::shared_ptr<LogAppender>;
  using MutexType = ThreadMutex;

  LogAppender();
  virtual ~LogAppender();

  /// Logs an event that the logger lets through. The appender applies its own level and formatter.
  virtual void log(std::shared_ptr<Logger> logger, LogLevel::Level level, LogEvent::ptr event) = 0;
  /// Returns a YAML mapping that describes the appender.
  virtual std::string toYamlString() = 0;

  /// Sets the appender's own formatter. With null it takes that of the logger to which it is added next, or whose formatter is
  /// set next.
  void setFormatter(LogFormatter::ptr formatter);
  LogFormatter::ptr getFormatter();

  LogLevel::Level getLevel() const { return m_level.load(std::memory_order_relaxed); }
  void setLevel(LogLevel::Level level) { m_level.store(level, std::memory_order_relaxed); }

 protected:
  /// Returns its own formatter, or that of the logger.
  LogFormatter::ptr formatterFor(Logger& logger);
  /// Returns the YAML of an appender of this type.
  std::string toYaml(const std::string& type, const std::string& file);

  std::atomic<LogLevel::Level> m_level{LogLevel::UNKNOW};
  bool m_hasFormatter = false;  ///< its own, not its logger's; guarded by m_mutex
  MutexType m_mutex;
  LogFormatter::ptr m_formatter;  ///< guarded by m_mutex

 private:
  friend class Logger;
  void inherit(const LogFormatter::ptr& formatter);
};

/// Writes to stdout past stdio's buffer, so text that was printed and not flushed comes later. All instances share one writer.
class SYLAR_API StdoutLogAppender : public LogAppender {
 public:
  using ptr = std::shared_ptr<StdoutLogAppender>;

  StdoutLogAppender();
  void log(std::shared_ptr<Logger> logger, LogLevel::Level level, LogEvent::ptr event) override;
  std::string toYamlString() override;

 private:
  const std::shared_ptr<detail::LogWriter> m_writer;
};

/// Appends to a file and makes missing directories. A file that was moved or deleted is opened again with the next lines.
/// Appenders of the same file share one writer, and so one order of lines.
class SYLAR_API FileLogAppender : public LogAppender {
 public:
  using ptr = std::shared_ptr<FileLogAppender>;

  /// A relative path is resolved now, against the current directory. If the file cannot be opened, that is reported on stderr
  /// with the first line for it, and each further line tries again. If several appenders have the same file, the last one made
  /// decides on the rotation. Blocks the thread while the file is opened.
  explicit FileLogAppender(const std::string& filename, LogRotation rotation = {});
  void log(std::shared_ptr<Logger> logger, LogLevel::Level level, LogEvent::ptr event) override;
  std::string toYamlString() override;

  /// Opens the file again. Returns false with errno if that fails, and lines still go to the file that was open. Blocks the
  /// thread.
  bool reopen();
  /// Returns the number of lines that are not in the file because the queue was full or the device refused them.
  uint64_t lost() const;

 private:
  const std::string m_filename;
  const std::shared_ptr<detail::LogWriter> m_writer;
};

}  // namespace sylar
