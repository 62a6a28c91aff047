// Where lines go: stdout, a file, or what a program derives from LogAppender.
//
// The two of the library hand their text to a thread that writes: logging waits neither for a disk nor for a pipe, and never
// suspends a fiber. What waits is bounded (4 MiB); more is dropped, counted and told. exit(3) and LoggerManager::flush() write
// all that waits; abort and _exit lose it.
//
// Thread safety: all calls from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "sylar/base/mutex.h"
#include "sylar/log/log_event.h"
#include "sylar/log/log_file.h"
#include "sylar/log/log_formatter.h"
#include "sylar/log/log_level.h"

namespace sylar {

class LogWriter;

/// An appender of one's own overrides log() and toYamlString(). log() is called by the thread that logs, fibers included, and
/// must not suspend: no call that the hooks know, no lock that is held over one. What it throws is reported on stderr.
class LogAppender {
 public:
  using ptr = std::shared_ptr<LogAppender>;
  using MutexType = ThreadMutex;

  LogAppender();
  virtual ~LogAppender();

  /// An event that its logger lets through; the appender looks at its own level and formatter.
  virtual void log(std::shared_ptr<Logger> logger, LogLevel::Level level, LogEvent::ptr event) = 0;
  /// A YAML mapping that describes it.
  virtual std::string toYamlString() = 0;

  /// Null: that of the logger to which it is added next, or whose formatter is set next.
  void setFormatter(LogFormatter::ptr formatter);
  LogFormatter::ptr getFormatter();

  LogLevel::Level getLevel() const { return m_level.load(std::memory_order_relaxed); }
  void setLevel(LogLevel::Level level) { m_level.store(level, std::memory_order_relaxed); }

 protected:
  /// Its own formatter, or that of the logger.
  LogFormatter::ptr formatterFor(Logger& logger);
  /// The YAML of an appender of this type.
  std::string toYaml(const std::string& type, const std::string& file);

  std::atomic<LogLevel::Level> m_level{LogLevel::UNKNOW};
  bool m_hasFormatter = false;  ///< its own, not its logger's; guarded by m_mutex
  MutexType m_mutex;
  LogFormatter::ptr m_formatter;  ///< guarded by m_mutex

 private:
  friend class Logger;
  void inherit(const LogFormatter::ptr& formatter);
};

/// Writes past stdio's buffer: what was printed and not flushed comes later. All of them share one writer.
class StdoutLogAppender : public LogAppender {
 public:
  using ptr = std::shared_ptr<StdoutLogAppender>;

  StdoutLogAppender();
  void log(std::shared_ptr<Logger> logger, LogLevel::Level level, LogEvent::ptr event) override;
  std::string toYamlString() override;

 private:
  const std::shared_ptr<LogWriter> m_writer;
};

/// Appends to a file; makes missing directories. A file that was moved or deleted is opened anew with the next lines. Appenders
/// of the same file share one writer, and so one order of lines.
class FileLogAppender : public LogAppender {
 public:
  using ptr = std::shared_ptr<FileLogAppender>;

  /// A relative path counts from here and now. A file that cannot be opened is reported on stderr with the first line for it, and
  /// tried again with each. Of appenders of one file the last that was made decides on the rotation. Blocks the thread while the
  /// file is opened.
  explicit FileLogAppender(const std::string& filename, LogRotation rotation = {});
  void log(std::shared_ptr<Logger> logger, LogLevel::Level level, LogEvent::ptr event) override;
  std::string toYamlString() override;

  /// Opens the file anew. False, with errno set: it cannot be; lines go on to the one that was open. Blocks the thread.
  bool reopen();
  /// Lines that are not in the file: the queue was full, or the device refused them.
  uint64_t lost() const;

 private:
  const std::string m_filename;
  const std::shared_ptr<LogWriter> m_writer;
};

}  // namespace sylar
