#include "sylar/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "sylar/base/log_sink.h"
#include "sylar/base/sys.h"

namespace sylar::log {
namespace {

constinit std::atomic<Level> g_level{Level::kInfo};
constinit std::atomic<const Sink*> g_sink{nullptr};

// Never destroyed: a static's destructor may still log.
spdlog::logger& logger() {
  static auto* const instance = [] {
    auto made = std::make_unique<spdlog::logger>("sylar", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_level(spdlog::level::trace);  // g_level decides
    made->set_pattern("%Y-%m-%d %H:%M:%S.%e %l sylar: %v");
    return made.release();
  }();
  return *instance;
}

constexpr spdlog::level::level_enum toSpdlog(Level level) {
  switch (level) {
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarn: return spdlog::level::warn;
    case Level::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

void setLevel(Level level) { g_level.store(level, std::memory_order_relaxed); }
void setSink(const Sink& sink) { g_sink.store(&sink, std::memory_order_release); }

bool enabled(Level level) {
  const Sink* const sink = g_sink.load(std::memory_order_acquire);
  return sink != nullptr ? sink->enabled(level) : level >= g_level.load(std::memory_order_relaxed);
}

void write(Level level, std::string_view line) noexcept {
  const Sink* const sink = g_sink.load(std::memory_order_acquire);
  sink != nullptr ? sink->write(level, line) : writeToStderr(level, line);
}

void appendEscaped(std::string& line, std::string_view text) {
  const auto is_control = [](unsigned char byte) { return (byte < 0x20 && byte != '\t') || byte == 0x7f; };
  for (;;) {
    const auto control = std::find_if(text.begin(), text.end(), is_control);
    line.append(text.begin(), control);
    if (control == text.end()) return;
    if (*control == '\n') {
      line += "\n\t";
    } else {
      line += {'\\', 'x', "0123456789abcdef"[*control >> 4], "0123456789abcdef"[*control & 15]};
    }
    text.remove_prefix(static_cast<size_t>(control - text.begin()) + 1);
  }
}

void writeToStderr(Level level, std::string_view line) noexcept {
  try {
    std::string escaped;
    appendEscaped(escaped, line);
    logger().log(toSpdlog(level), spdlog::string_view_t(escaped.data(), escaped.size()));
    logger().flush();
  } catch (...) {  // the logger could not be made; later it reports its own errors
    noMemory();
  }
}

void noMemory() noexcept {
  constexpr std::string_view kLine = "sylar: no memory for a log line\n";
  sys::writeAll(STDERR_FILENO, kLine.data(), kLine.size());
}

}  // namespace sylar::log
