// Internal. The library's own log lines: few, one for each event, at the place where it happens. Sink: spdlog on stderr.
// A line is written in one blocking call outside the hooks: logging never suspends a fiber. Nor does it throw: where there is no
// memory for a line, a fixed one says so.
//
// Thread safety: all calls from any thread; they must not be made from a signal handler.
#pragma once

#include <fmt/format.h>

#include <new>
#include <string_view>
#include <utility>

namespace sylar::log {

enum class Level { kDebug, kInfo, kWarn, kError };

/// Lines below `level` are dropped; the start value is kInfo.
void setLevel(Level level);
bool enabled(Level level);
void write(Level level, std::string_view line) noexcept;
/// Says that there was no memory for a line.
void noMemory() noexcept;

template <class... Args>
void print(Level level, fmt::format_string<Args...> format, Args&&... args) {
  if (!enabled(level)) return;
  try {
    write(level, fmt::format(format, std::forward<Args>(args)...));
  } catch (const std::bad_alloc&) {
    noMemory();
  }
}
template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  print(Level::kDebug, format, std::forward<Args>(args)...);
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  print(Level::kInfo, format, std::forward<Args>(args)...);
}
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  print(Level::kWarn, format, std::forward<Args>(args)...);
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  print(Level::kError, format, std::forward<Args>(args)...);
}

}  // namespace sylar::log
