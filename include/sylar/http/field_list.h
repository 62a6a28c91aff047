// The header or trailer fields of one message, in order. They share one block of memory, which is reused for the next message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sylar/api.h"
#include "sylar/check.h"

namespace sylar::http {

namespace detail {
class FieldListControl;
/// Returns true if the first `size` bytes of both are equal, ignoring ASCII case.
SYLAR_API bool sameIgnoringCase(const char* a, const char* b, size_t size);
}  // namespace detail

/// Returns true if two field names are equal, ignoring ASCII case. Source: RFC 9110 section 5.1.
inline bool equalsIgnoreCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && detail::sameIgnoringCase(a.data(), b.data(), a.size());
}
/// Orders names, ignoring ASCII case unless `exact` is set.
struct SYLAR_API NameLess {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const;

  bool exact = false;
};
/// sylar's name for NameLess.
using CaseInsensitiveLess = NameLess;

struct Field {
  std::string_view name, value;
};

/// An ordered list of fields. Names may repeat and are compared without case. A received request keeps its head here as it came,
/// and the fields are parts of that text. Reading a request therefore allocates nothing once the block is large enough.
///
/// The next change to the list invalidates all views that it has returned.
///
/// Thread safety: as a standard container.
class SYLAR_API FieldList {
 public:
  size_t size() const { return m_spans.size(); }
  bool empty() const { return m_spans.empty(); }
  /// Returns the field at `index`, which must be less than size().
  Field operator[](size_t index) const {
    SYLAR_DCHECK(index < m_spans.size());
    return {nameOf(m_spans[index]), valueOf(m_spans[index])};
  }

  /// Returns the value of the first field with that name, or nothing if there is none.
  std::optional<std::string_view> find(std::string_view name) const;
  /// Returns the values of all fields with that name, joined by ", " ("; " for cookies), or nothing if there is none. Source: RFC
  /// 9110 section 5.3, RFC 9113 section 8.2.3.
  std::optional<std::string> joined(std::string_view name) const;

  /// Appends a field, without the blanks around `value`. Neither argument may be a view of this list. Throws
  /// std::invalid_argument if `name` is not a token or `value` contains a control character other than a tab.
  void add(std::string_view name, std::string_view value);
  /// Replaces all fields with that name by one. Throws as add() does, and then changes nothing.
  void set(std::string_view name, std::string_view value);
  /// Removes all fields with that name. Returns false if there was none.
  bool del(std::string_view name);
  /// Empties the list. It keeps up to 2 KiB of memory.
  void clear();
  /// Returns the size of the list's block of memory, in bytes.
  size_t memory() const { return m_text.capacity(); }

 private:
  friend class detail::FieldListControl;
  struct Span {
    uint32_t name_at, name_size, value_at, value_size;
  };

  std::string_view nameOf(const Span& span) const { return {m_text.data() + span.name_at, span.name_size}; }
  std::string_view valueOf(const Span& span) const { return {m_text.data() + span.value_at, span.value_size}; }
  Span append(std::string_view name, std::string_view value);
  void compact();

  static constexpr size_t kKept = 2 * 1024;
  static constexpr size_t kCompactAt = 8 * 1024;

  std::string m_text;
  std::vector<Span> m_spans;
  size_t m_compact_at = kCompactAt;
};

/// Throws std::invalid_argument if `name` is not a token. Source: RFC 9110 section 5.6.2.
SYLAR_API void requireToken(std::string_view name, const char* what);
/// Throws std::invalid_argument if `text` contains a control character other than a tab. CR and LF would end the line and begin
/// another, and the others must not be sent. Source: RFC 9110 section 5.5.
SYLAR_API void requireOneLine(std::string_view text, const char* what);

}  // namespace sylar::http
