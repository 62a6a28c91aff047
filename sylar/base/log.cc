#include "sylar/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <atomic>
#include <memory>

#include "sylar/base/sys.h"

namespace sylar::log {
namespace {

constinit std::atomic<Level> g_level{Level::kInfo};

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
bool enabled(Level level) { return level >= g_level.load(std::memory_order_relaxed); }

void write(Level level, std::string_view line) noexcept {
  try {
    logger().log(toSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
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
