// Turns an event into text, by a pattern.
//
//   %m message   %p level     %c logger      %d{...} time, as strftime says, and %3N %6N %9N for ms, us, ns of the second
//   %f file      %l line      %r ms since the first use of logging
//   %t thread    %N its name  %F fiber       %n newline   %T tab   %% a percent sign
//
// Messages and names are escaped, since peers may have chosen their bytes: a tab follows each newline, so no line but an event's
// first begins as the pattern says, and other control bytes below 0x80, but the tab, become \xNN. A backslash stands as it is.
//
// Everything else in a pattern is taken as it stands. A '%' with another letter behind it (a width: there are none), or a %d{
// that does not end, is an error.
//
// Thread safety: immutable; all calls from any thread.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "sylar/log/log_event.h"

namespace sylar {

class LogFormatter {
 public:
  using ptr = std::shared_ptr<LogFormatter>;

  /// What loggers have at first.
  static constexpr const char* kDefaultPattern = "%d{%Y-%m-%d %H:%M:%S}%T%t%T%N%T%F%T[%p]%T[%c]%T%f:%l%T%m%n";

  /// A wrong pattern is told by isError(), and its wrong parts stand in each line as they are.
  explicit LogFormatter(const std::string& pattern = kDefaultPattern);

  /// Suspends: no. Throws std::bad_alloc.
  std::string format(const std::shared_ptr<Logger>& logger, LogLevel::Level level, const LogEvent::ptr& event) const;
  std::ostream& format(std::ostream& out, const std::shared_ptr<Logger>& logger, LogLevel::Level level,
                       const LogEvent::ptr& event) const;

  bool isError() const { return m_error; }
  const std::string getPattern() const { return m_pattern; }

  /// A part of a pattern: a letter, with the time's pattern if it is 'd'; or text, if the letter is 0.
  struct FormatItem {
    char letter;
    std::string text;
  };

 private:
  void parse();
  size_t parseTime(size_t at);
  void addText(std::string_view text);

  const std::string m_pattern;
  std::vector<FormatItem> m_items;
  bool m_error = false;
};

}  // namespace sylar
