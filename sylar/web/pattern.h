// Internal. A pattern of requests, "[METHOD ][host]/path/{name}/{tail...}": what it says, and how it relates to another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/http/http.h"
#include "sylar/http/http_names.h"

namespace sylar::http::detail {

/// A part of a pattern's path.
struct Segment {
  /// From the most specific to the most general.
  enum class Kind : uint8_t {
    kLiteral,  // one segment that equals `text`, which is canonical (path.h); an empty one is what "{$}" stands for
    kName,     // one segment that is not empty; `text` is the name
    kTail,     // all segments from here on, at least one; `text` is the name, or empty if it has none
  };

  Kind kind;
  std::string text;
};

/// How the requests that one pattern matches relate to those of another.
enum class Relation : uint8_t {
  kDisjoint,      // no request is matched by both
  kSame,          // each request is matched by both or by neither
  kMoreSpecific,  // the first matches some of those that the second matches, and no other
  kMoreGeneral,   // the other way round
  kOverlap,       // some requests are matched by both, and each matches others as well
};

/// Thread safety: never changes.
class Pattern {
 public:
  static constexpr size_t kMostSegments = 64;

  /// Throws std::invalid_argument, which says what is wrong with `text`.
  explicit Pattern(std::string_view text);

  const std::string& text() const { return m_text; }
  /// Returns the only method, which with GET includes HEAD, or nothing if there is none.
  std::optional<HttpMethod> method() const { return m_method; }
  /// Returns the host in lower case, or an empty text for any.
  const std::string& host() const { return m_host; }
  const std::vector<Segment>& segments() const { return m_segments; }

  Relation relationTo(const Pattern& other) const;
  /// Returns a request that both match, such as "GET /a/x". They must not be disjoint.
  std::string exampleWith(const Pattern& other) const;

  /// Stores the parts of the canonical `path`, which it must match, as those of the names.
  void bind(std::string_view path, HttpRequest& request) const;

 private:
  void parsePath(std::string_view path);
  Segment parseSegment(std::string_view text, bool last) const;
  Segment parseWildcard(std::string_view text, bool last) const;
  [[noreturn]] void refuse(const std::string& why) const;

  std::string m_text;
  std::optional<HttpMethod> m_method;
  std::string m_host;
  std::vector<Segment> m_segments;
  bool m_has_names = false;
};

}  // namespace sylar::http::detail
