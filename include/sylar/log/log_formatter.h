// Formats an event as text, by a pattern.
//
//   %m message   %p level     %c logger      %d{...} time, as strftime says, and %3N %6N %9N for ms, us, ns of the second
//   %f file      %l line      %r ms since the first use of logging
//   %t thread    %N its name  %F fiber       %n newline   %T tab   %% a percent sign
//
// An event without a place has "-" for %f and for %l, and for both as %f:%l. The library's own lines have none.
//
// Messages and names are escaped, since peers may have chosen their bytes. A tab follows each newline, so only the first line of
// an event begins as the pattern says. Other control characters except the tab (U+0000 to U+001F, U+007F to U+009F), line
// separators (U+2028, U+2029), marks that change the direction of text (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to
// U+2069) and bytes that are not UTF-8 become `\xNN` for each byte. Other text stays as it is, and so does a backslash.
//
// All other text in a pattern is copied as it is. It is an error if any other letter follows a '%' (there are no widths), or if a
// %d{ does not end.
//
// Thread safety: immutable; all calls from any thread.
#pragma once

#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "sylar/api.h"
#include "sylar/log/log_event.h"

namespace sylar {

class SYLAR_API LogFormatter {
 public:
  using ptr = std::shared_ptr<LogFormatter>;

  /// The pattern that loggers have at first.
  static constexpr const char* kDefaultPattern = "%d{%Y-%m-%d %H:%M:%S}%T%t%T%N%T%F%T[%p]%T[%c]%T%f:%l%T%m%n";

  /// A part of a line that the program formats itself. All threads that log may call it at the same time, and it must not
  /// suspend.
  class FormatItem {
   public:
    using ptr = std::shared_ptr<FormatItem>;

    virtual ~FormatItem() = default;
    /// Writes the part of `event`. It is not escaped.
    virtual void format(std::ostream& os, std::shared_ptr<Logger> logger, LogLevel::Level level, LogEvent::ptr event) = 0;
  };

  /// Parses `pattern`. If it is wrong, isError() returns true, and its wrong parts appear in each line as they are.
  explicit LogFormatter(const std::string& pattern = kDefaultPattern) : LogFormatter(pattern, {}) {}
  /// Also accepts the program's own letters, which take precedence over the library's. No item may be null.
  LogFormatter(const std::string& pattern, const std::map<char, FormatItem::ptr>& items);

  /// Formats an event. May suspend: no. Throws std::bad_alloc.
  std::string format(const std::shared_ptr<Logger>& logger, LogLevel::Level level, const LogEvent::ptr& event) const;
  std::ostream& format(std::ostream& out, const std::shared_ptr<Logger>& logger, LogLevel::Level level,
                       const LogEvent::ptr& event) const;

  bool isError() const { return m_error; }
  const std::string getPattern() const { return m_pattern; }

 private:
  /// A part of a pattern: a letter, with the time's pattern if it is 'd'; or text if the letter is 0; or a program's item.
  struct Part {
    char letter;
    std::string text = {};
    FormatItem::ptr item = {};
  };

  void parse(const std::map<char, FormatItem::ptr>& items);
  size_t parseTime(size_t at);
  void addText(std::string_view text);

  const std::string m_pattern;
  std::vector<Part> m_parts;
  bool m_error = false;
};

}  // namespace sylar
