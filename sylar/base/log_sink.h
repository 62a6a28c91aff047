// Internal. The destination of the library's own lines (sylar/base/log.h): stderr, until a higher module brings loggers that the
// user configures.
//
// Thread safety: all calls from any thread.
#pragma once

#include <string>
#include <string_view>

namespace sylar::log {

enum class Level { kDebug, kInfo, kWarn, kError };

/// Receives the library's lines. Both functions are called from anywhere in the library, on workers' own stacks and in fibers, so
/// they must not suspend. Once a sink is set, setLevel() has no effect.
struct Sink {
  bool (*enabled)(Level level) noexcept;
  void (*write)(Level level, std::string_view line) noexcept;
};

/// Sends all further lines to `sink`, which must never be destroyed.
void setSink(const Sink& sink);

/// Appends `text` to a log line, escaped because a peer may have chosen its bytes: they can neither pass for a log line of their
/// own nor control a terminal. A tab follows each newline, and control characters (C0 except the tab, DEL, C1), line separators,
/// marks that change the direction of text, and bytes that are not UTF-8 become \xNN. Throws std::bad_alloc.
void appendEscaped(std::string& line, std::string_view text);

/// Writes a line, escaped, to stderr and not to the sink; a sink reports its own errors with it.
void writeToStderr(Level level, std::string_view line) noexcept;

}  // namespace sylar::log
