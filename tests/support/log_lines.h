// The lines that the library logs, for a test that looks at them.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "sylar/base/log_sink.h"

namespace sylar::test {

/// While it lives, each line of the library's log is a call of `on_line`, where the line is written; afterwards lines go to
/// stderr as before. One at a time. Thread safety: none; lines of other threads reach `on_line`, too.
class LogLines {
 public:
  using OnLine = std::function<void(log::Level level, std::string_view line)>;

  explicit LogLines(OnLine on_line) : m_on_line(std::move(on_line)) {
    s_current = this;
    log::setSink(kSink);
  }
  ~LogLines() { s_current = nullptr; }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

 private:
  static bool enabled(log::Level /*level*/) noexcept { return true; }
  static void write(log::Level level, std::string_view line) noexcept {
    s_current != nullptr ? s_current->m_on_line(level, line) : log::writeToStderr(level, line);
  }
  static constexpr log::Sink kSink{enabled, write};
  static inline LogLines* s_current = nullptr;

  const OnLine m_on_line;
};

}  // namespace sylar::test
