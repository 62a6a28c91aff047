// The header (or trailer) fields of one message, in their order, in one block of memory that is kept from message to message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sylar::http {

namespace detail {
/// size bytes of each.
bool sameIgnoringCase(const char* a, const char* b, size_t size);
}  // namespace detail

/// ASCII case does not count. Source: RFC 9110 section 5.1.
inline bool equalsIgnoreCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && detail::sameIgnoringCase(a.data(), b.data(), a.size());
}
struct CaseInsensitiveLess {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const;
};

struct Field {
  std::string_view name, value;
};

/// An ordered list of fields. Names are compared without case and may repeat. A parsed message keeps its head here as it came,
/// with the fields as parts of it: reading a message allocates nothing once the block is large enough.
///
/// All views that it hands out end with the next change of the list.
///
/// Thread safety: as a standard container.
class FieldList {
 public:
  size_t size() const { return m_spans.size(); }
  bool empty() const { return m_spans.empty(); }
  /// index < size().
  Field operator[](size_t index) const;

  /// The value of the first field of that name.
  std::optional<std::string_view> find(std::string_view name) const;
  /// The values of all fields of that name, joined by ", " ("; " for cookies); nothing if there is none. Source: RFC 9110
  /// section 5.3, RFC 9113 section 8.2.3.
  std::optional<std::string> joined(std::string_view name) const;

  /// Appends a field, without the spaces around `value`. Neither may be a view of this list. Throws std::invalid_argument if
  /// `name` is no token, or `value` holds CR, LF or NUL.
  void add(std::string_view name, std::string_view value);
  /// Replaces all fields of that name by one. Throws as add(), and then nothing is changed.
  void set(std::string_view name, std::string_view value);
  /// Removes all fields of that name; false if there was none.
  bool del(std::string_view name);
  /// Empties the list. Memory is kept up to 2 KiB.
  void clear();
  /// Bytes of memory that it holds for the text of fields.
  size_t memory() const { return m_text.capacity(); }

  /// For parsers: makes `text` the block, with no fields yet; the returned view is the copy.
  std::string_view adopt(std::string_view text);
  /// For parsers: `name` and `value` are parts of the view that adopt() returned.
  void addParsed(std::string_view name, std::string_view value);
  /// For parsers: the first field of that name shows `value`, also a part of that view. False if there is none.
  bool replaceParsed(std::string_view name, std::string_view value);

 private:
  struct Span {
    uint32_t name_at, name_size, value_at, value_size;
  };

  std::string_view nameOf(const Span& span) const { return {m_text.data() + span.name_at, span.name_size}; }
  std::string_view valueOf(const Span& span) const { return {m_text.data() + span.value_at, span.value_size}; }
  uint32_t offsetOf(std::string_view part) const;
  Span append(std::string_view name, std::string_view value);
  void compact();

  static constexpr size_t kKept = 2 * 1024;
  static constexpr size_t kCompactAt = 8 * 1024;

  std::string m_text;
  std::vector<Span> m_spans;
  size_t m_compact_at = kCompactAt;
};

/// Throws std::invalid_argument unless `name` is a token. Source: RFC 9110 section 5.6.2.
void requireToken(std::string_view name, const char* what);
/// Throws std::invalid_argument if `text` holds CR, LF or NUL: they would end the line and begin a peer's own.
void requireOneLine(std::string_view text, const char* what);

}  // namespace sylar::http
