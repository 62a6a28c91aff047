// An event to be logged: where, when and by which thread it was made, and the text that the user streams into it. The macros of
// log.h make events.
//
// Thread safety: an event belongs to one thread until it is logged; then any thread may read it.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

#include "sylar/api.h"
#include "sylar/log/log_level.h"

namespace sylar {

class Logger;

class SYLAR_API LogEvent {
  static void acceptList(va_list arguments);  // accepts what converts to a va_list; never called

 public:
  using ptr = std::shared_ptr<LogEvent>;

  /// Keeps `file` as a pointer; an empty one means that the event has no place. `elapse` is in ms, `time` in seconds since 1970,
  /// and `nanoseconds` are those of that second.
  LogEvent(std::shared_ptr<Logger> logger, LogLevel::Level level, const char* file, int32_t line, uint32_t elapse,
           uint32_t thread_id, uint64_t fiber_id, uint64_t time, const std::string& thread_name, uint32_t nanoseconds = 0);

  /// Makes an event of the calling thread and fiber, with the present time. Throws std::bad_alloc.
  static ptr make(const std::shared_ptr<Logger>& logger, LogLevel::Level level, const char* file, int32_t line);

  const char* getFile() const { return m_file; }
  int32_t getLine() const { return m_line; }
  /// Returns the milliseconds since the first use of logging.
  uint32_t getElapse() const { return m_elapse; }
  uint32_t getThreadId() const { return m_thread_id; }
  /// Returns the id of the fiber, or 0 outside fibers. Fiber ids have 64 bits here.
  uint64_t getFiberId() const { return m_fiber_id; }
  uint64_t getTime() const { return m_time; }
  uint32_t getNanoseconds() const { return m_nanoseconds; }
  /// Returns the thread's name, which is the kernel's unless Thread has given it one.
  const std::string& getThreadName() const { return m_thread_name; }
  std::string getContent() const { return m_ss.str(); }
  std::shared_ptr<Logger> getLogger() const { return m_logger; }
  LogLevel::Level getLevel() const { return m_level; }
  std::stringstream& getSS() { return m_ss; }

  /// Appends text as printf() does. If printf() refuses the format, nothing is appended.
  [[gnu::format(printf, 2, 3)]] void format(const char* format, ...);
  /// Appends text as vprintf() does. It takes only a va_list, so a literal 0 is an argument of the overload above.
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
class SYLAR_API LogEventWrap {
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
