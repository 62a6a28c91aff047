#include "sylar/log/log_event.h"

#include <sys/prctl.h>
#include <sys/syscall.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/clock.h"
#include "sylar/fiber.h"
#include "sylar/log/logger.h"
#include "sylar/thread.h"

namespace sylar {
namespace {

/// Returns the name that the kernel has for the calling thread. The first thread has that of the program, and one that was given no
/// name has that of the thread that made it.
std::string kernelName() {
  char name[16] = {};
  sys::call(SYS_prctl, PR_GET_NAME, name);
  return name;
}

std::string threadName() {
  const std::string& name = Thread::GetName();
  return name != "UNKNOW" ? name : kernelName();
}

uint32_t elapsedMs() {
  static const int64_t start_ns = steadyClock().nowNs();
  return static_cast<uint32_t>((steadyClock().nowNs() - start_ns) / 1'000'000);
}

}  // namespace

LogEvent::LogEvent(std::shared_ptr<Logger> logger, LogLevel::Level level, const char* file, int32_t line, uint32_t elapse,
                   uint32_t thread_id, uint64_t fiber_id, uint64_t time, const std::string& thread_name, uint32_t nanoseconds)
    : m_logger(std::move(logger)),
      m_level(level),
      m_line(line),
      m_file(file),
      m_elapse(elapse),
      m_thread_id(thread_id),
      m_nanoseconds(nanoseconds),
      m_fiber_id(fiber_id),
      m_time(time),
      m_thread_name(thread_name) {}

LogEvent::ptr LogEvent::make(const std::shared_ptr<Logger>& logger, LogLevel::Level level, const char* file, int32_t line) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  return std::make_shared<LogEvent>(logger, level, file, line, elapsedMs(), static_cast<uint32_t>(sys::threadId()),
                                    Fiber::GetFiberId(), static_cast<uint64_t>(seconds.count()), threadName(),
                                    static_cast<uint32_t>(std::chrono::nanoseconds(now - seconds).count()));
}

void LogEvent::format(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  append(format, arguments);
  va_end(arguments);
}

void LogEvent::append(const char* format, va_list arguments) {
  char* text = nullptr;
  const int size = ::vasprintf(&text, format, arguments);
  if (size < 0) return;
  const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
  m_ss.write(text, size);
}

LogEventWrap::~LogEventWrap() {
  try {
    m_event->getLogger()->log(m_event->getLevel(), m_event);
  } catch (...) {  // out of memory; exceptions of appenders were reported already
    log::noMemory();
  }
}

}  // namespace sylar
