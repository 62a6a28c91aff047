// Internal. The library's own log lines: few, one for each event, logged where it happens. They go to spdlog on stderr unless a
// sink is set (log_sink.h). A line is written in one blocking call that bypasses the hooks, so logging never suspends a fiber.
// It never throws either; if there is no memory for a line, a fixed line says so.
//
// Thread safety: all calls from any thread, but not from a signal handler.
#pragma once

#include <fmt/format.h>

#include <new>
#include <string_view>
#include <utility>

#include "sylar/base/log_sink.h"

namespace sylar::log {

/// Drops lines below `level`; the initial level is kInfo.
void setLevel(Level level);
bool enabled(Level level);
void write(Level level, std::string_view line) noexcept;
/// Writes to stderr that there was no memory for a line.
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
