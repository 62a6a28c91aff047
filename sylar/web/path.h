// Internal. The path of a request in the form in which patterns are matched with it.
#pragma once

#include <string>
#include <string_view>

#include "sylar/base/internal.h"

namespace sylar::http::detail {

/// A path in which all escapes are decoded except those of '/' and '%'. So a slash always separates segments, equal segments are
/// equal texts, and percentDecode() of a segment gives what its sender meant.
class CanonicalPath {
 public:
  /// Allocates nothing if `encoded`, which must outlive it, has no escape.
  explicit CanonicalPath(std::string_view encoded);
  CanonicalPath(const CanonicalPath&) = delete;
  CanonicalPath& operator=(const CanonicalPath&) = delete;

  std::string_view text() const { return m_text; }
  /// Returns true if a '%' begins no escape. It stands for itself then.
  bool isMalformed() const { return m_malformed; }

 private:
  void decode(std::string_view encoded);

  std::string m_decoded;
  std::string_view m_text;
  bool m_malformed = false;
};

/// Goes through the segments of a path, which are what its slashes separate: "/a/" has "a" and an empty one.
class PathSegments {
 public:
  /// `path` begins with a slash.
  explicit PathSegments(std::string_view path) : m_rest(path.substr(1)) {}

  bool atEnd() const { return m_rest.data() == nullptr; }
  /// Returns the next segment. There must be one.
  std::string_view next() {
    const size_t end = m_rest.find('/');
    const std::string_view segment = m_rest.substr(0, end);
    m_rest = end == std::string_view::npos ? std::string_view() : m_rest.substr(end + 1);
    return segment;
  }
  /// Returns all further segments, with the slashes between them.
  std::string_view rest() const { return m_rest; }

 private:
  std::string_view m_rest;  // null: there is no further segment
};

}  // namespace sylar::http::detail
