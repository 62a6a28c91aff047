// One thing to be logged: where, when and by whom, and the text that the user streams into it. The macros of log.h make them.
//
// Thread safety: belongs to one thread until it is logged; then all may read it.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

#include "sylar/log/log_level.h"

namespace sylar {

class Logger;

class LogEvent {
  static void acceptList(va_list arguments);  // what converts to a list; never called

 public:
  using ptr = std::shared_ptr<LogEvent>;

  /// `file` is kept as a pointer; `elapse` in ms, `time` in seconds since 1970, and `nanoseconds` of that second.
  LogEvent(std::shared_ptr<Logger> logger, LogLevel::Level level, const char* file, int32_t line, uint32_t elapse,
           uint32_t thread_id, uint64_t fiber_id, uint64_t time, const std::string& thread_name, uint32_t nanoseconds = 0);

  /// An event of the calling thread and fiber, now. Throws std::bad_alloc.
  static ptr make(const std::shared_ptr<Logger>& logger, LogLevel::Level level, const char* file, int32_t line);

  const char* getFile() const { return m_file; }
  int32_t getLine() const { return m_line; }
  /// Milliseconds since the first use of logging.
  uint32_t getElapse() const { return m_elapse; }
  uint32_t getThreadId() const { return m_thread_id; }
  /// 0 outside of fibers. Fibers are numbered with 64 bits here.
  uint64_t getFiberId() const { return m_fiber_id; }
  uint64_t getTime() const { return m_time; }
  uint32_t getNanoseconds() const { return m_nanoseconds; }
  const std::string& getThreadName() const { return m_thread_name; }
  std::string getContent() const { return m_ss.str(); }
  std::shared_ptr<Logger> getLogger() const { return m_logger; }
  LogLevel::Level getLevel() const { return m_level; }
  std::stringstream& getSS() { return m_ss; }

  /// Appends as printf does. What printf refuses is left out.
  [[gnu::format(printf, 2, 3)]] void format(const char* format, ...);
  /// The same for a va_list, and for nothing else: a literal 0 is an argument.
  template <class List>
  requires(!std::is_null_pointer_v<List>) && requires(List list) { acceptList(list); }
  void format(const char* format, List arguments) { append(format, arguments); }

 private:
  [[gnu::format(printf, 2, 0)]] void append(const char* format, va_list arguments);

  const std::shared_ptr<Logger> m_logger;
  const LogLevel::Level m_level;
  const int32_t m_line;
  const char* const m_file;
  const uint32_t m_elapse;
  const uint32_t m_thread_id;
  const uint32_t m_nanoseconds;
  const uint64_t m_fiber_id;
  const uint64_t m_time;
  const std::string m_thread_name;
  std::stringstream m_ss;
};

/// Logs its event when it goes out of scope.
class LogEventWrap {
 public:
  explicit LogEventWrap(LogEvent::ptr event) : m_event(std::move(event)) {}
  ~LogEventWrap();
  LogEventWrap(const LogEventWrap&) = delete;
  LogEventWrap& operator=(const LogEventWrap&) = delete;

  LogEvent::ptr getEvent() const { return m_event; }
  std::stringstream& getSS() { return m_event->getSS(); }

 private:
  const LogEvent::ptr m_event;
};

}  // namespace sylar
