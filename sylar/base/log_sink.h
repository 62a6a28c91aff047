// Internal. Where the library's own lines (sylar/base/log.h) go: to stderr, until a room above brings loggers that a user steers.
//
// Thread safety: all calls from any thread.
#pragma once

#include <string>
#include <string_view>

#include "sylar/base/log.h"

namespace sylar::log {

/// Both are called from anywhere in the library, on workers' own stacks and in fibers: they must not suspend. With a sink,
/// setLevel() has no say.
struct Sink {
  bool (*enabled)(Level level) noexcept;
  void (*write)(Level level, std::string_view line) noexcept;
};

/// From now on lines go to `sink`, which must live for ever.
void setSink(const Sink& sink);

/// Appends `text` for a line of a log. Peers may have chosen its bytes, so none begins a line or commands a terminal: a tab
/// follows each newline, and other control bytes below 0x80, but the tab, become \xNN. Throws std::bad_alloc.
void appendEscaped(std::string& line, std::string_view text);

/// A line on stderr, past any sink: for what a sink itself has to say. Escaped.
void writeToStderr(Level level, std::string_view line) noexcept;

}  // namespace sylar::log
