#include "sylar/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink-inl.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "sylar/base/log_sink.h"
#include "sylar/base/sys.h"
#include "sylar/thread_mutex.h"

namespace sylar::log {
namespace {

constinit std::atomic<Level> g_level{Level::kInfo};
constinit std::atomic<const Sink*> g_sink{nullptr};

/// Writes each line by one system call. spdlog's own sink uses stdio and a pthread mutex, and where hooks are linked both suspend
/// fibers.
class StderrSink final : public spdlog::sinks::base_sink<ThreadMutex> {
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    sys::writeAll(STDERR_FILENO, line.data(), line.size());
  }
  void flush_() override {}
};

// Never destroyed, because a static's destructor may still log.
spdlog::logger& logger() {
  static auto* const instance = [] {
    auto made = std::make_unique<spdlog::logger>("sylar", std::make_shared<StderrSink>());
    made->set_level(spdlog::level::trace);  // g_level decides instead
    made->set_pattern("%Y-%m-%d %H:%M:%S.%e %l sylar: %v");
    return made.release();
  }();
  return *instance;
}

struct Utf8 {
  char32_t code;  // 0 if no valid character begins here
  size_t size;    // of the character, or 1 for an invalid byte
};

// Decodes the first character of `text`, which must not be empty. Source: RFC 3629, 4.
Utf8 utf8(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {first, 1};
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return {0, 1};
  char32_t code = first & (0x7f >> size);
  for (size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return {0, 1};
    code = code << 6 | (byte & 0x3f);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool valid = code >= kLeast[size] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return valid ? Utf8{code, size} : Utf8{0, 1};
}

// Returns true for C1 controls, which terminals obey as they do ESC, for line and paragraph separators, and for marks that change
// the direction of text. Source: ECMA-48, 5.3; Unicode UAX #9, 2.
bool commandsDisplay(char32_t code) {
  return code < 0xa0 || code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
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
  const auto is_plain = [](unsigned char byte) { return (byte >= 0x20 && byte < 0x7f) || byte == '\t'; };
  while (!text.empty()) {
    const auto plain = static_cast<size_t>(std::ranges::find_if_not(text, is_plain) - text.begin());
    line += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return;
    const Utf8 next = utf8(text);
    const bool stays = next.code >= 0x80 && !commandsDisplay(next.code);
    if (text[0] == '\n') {
      line += "\n\t";
    } else if (stays) {
      line += text.substr(0, next.size);
    } else {
      for (const unsigned char byte : text.substr(0, next.size)) {
        line += {'\\', 'x', "0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
      }
    }
    text.remove_prefix(next.size);
  }
}

void writeToStderr(Level level, std::string_view line) noexcept {
  try {
    std::string escaped;
    appendEscaped(escaped, line);
    logger().log(toSpdlog(level), spdlog::string_view_t(escaped.data(), escaped.size()));
  } catch (...) {  // the logger could not be made; once made, it reports its own errors
    noMemory();
  }
}

void noMemory() noexcept {
  constexpr std::string_view kLine = "sylar: no memory for a log line\n";
  sys::writeAll(STDERR_FILENO, kLine.data(), kLine.size());
}

}  // namespace sylar::log
