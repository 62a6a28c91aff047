#include "sylar/web/pattern.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sylar/http/char_class.h"
#include "sylar/http/percent.h"
#include "sylar/web/path.h"

namespace sylar::http::detail {

namespace {

using Kind = Segment::Kind;

bool isName(std::string_view text) {
  const auto letter = [](char c) { return c == '_' || (toLower(c) >= 'a' && toLower(c) <= 'z'); };
  return !text.empty() && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || isChar(c, kDigit); });
}

/// Collects in which of two sets of requests there are requests that the other does not have.
struct Wider {
  bool first = false, second = false;

  Relation relation() const {
    if (first && second) return Relation::kOverlap;
    if (first) return Relation::kMoreGeneral;
    return second ? Relation::kMoreSpecific : Relation::kSame;
  }
};

// Each of these returns false if no request is matched by both.

bool compare(std::optional<HttpMethod> a, std::optional<HttpMethod> b, Wider& wider) {
  if (a == b) return true;
  if (!a || (a == HttpMethod::GET && b == HttpMethod::HEAD)) return wider.first = true;
  if (!b || (b == HttpMethod::GET && a == HttpMethod::HEAD)) return wider.second = true;
  return false;
}

bool compare(const Segment& a, const Segment& b, Wider& wider) {
  if (a.kind == b.kind) return a.kind != Kind::kLiteral || a.text == b.text;
  if (a.kind > b.kind) {
    wider.first = true;
    return a.kind != Kind::kName || !b.text.empty();
  }
  wider.second = true;
  return b.kind != Kind::kName || !a.text.empty();
}

bool compare(const std::vector<Segment>& a, const std::vector<Segment>& b, Wider& wider) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (!compare(a[i], b[i], wider)) return false;
    if (a[i].kind == Kind::kTail || b[i].kind == Kind::kTail) return true;
  }
  return a.size() == b.size();
}

}  // namespace

void Pattern::refuse(const std::string& why) const { throw std::invalid_argument("pattern \"" + m_text + "\": " + why); }

Pattern::Pattern(std::string_view text) : m_text(text) {
  if (const size_t blank = text.find_first_of(" \t"); blank < text.find('/')) {
    const std::string_view method = text.substr(0, blank);
    m_method = toHttpMethod(method);
    if (m_method == HttpMethod::INVALID_METHOD) refuse('"' + std::string(method) + "\" is not a method");
    if (m_method == HttpMethod::TRACE || m_method == HttpMethod::CONNECT) refuse("no route answers this method");
    text = trimmed(text.substr(blank));
  }
  const size_t path = text.find('/');
  if (path == std::string_view::npos) refuse("it has no path, which begins with '/'");
  m_host = text.substr(0, path);
  std::transform(m_host.begin(), m_host.end(), m_host.begin(), toLower);
  const bool is_ip6 = m_host.starts_with('[') && m_host.ends_with(']');
  if (!m_host.empty() && !is_ip6 && !allChars(m_host, kHostChar)) refuse("the host is a name or address, without a port");
  parsePath(text.substr(path));
}

void Pattern::parsePath(std::string_view path) {
  for (PathSegments rest(path); !rest.atEnd();) {
    if (m_segments.size() == kMostSegments) refuse("it has more than " + std::to_string(kMostSegments) + " segments");
    const std::string_view segment = rest.next();
    m_segments.push_back(parseSegment(segment, rest.atEnd()));
    m_has_names = m_has_names || (m_segments.back().kind != Kind::kLiteral && !m_segments.back().text.empty());
  }
}

Segment Pattern::parseSegment(std::string_view text, bool last) const {
  if (text.empty()) {
    if (!last) refuse("it has an empty segment");
    return {Kind::kTail, ""};
  }
  if (text.front() == '{' && text.find('}') == text.size() - 1) return parseWildcard(text.substr(1, text.size() - 2), last);
  if (text.find_first_of("{}") != std::string_view::npos) refuse("a brace begins or ends a segment, and they come in pairs");
  if (text.find_first_of("?#") != std::string_view::npos) refuse("it has a query or fragment; a path has neither");
  const CanonicalPath literal(text);
  if (literal.isMalformed()) refuse("a '%' begins no escape");
  return {Kind::kLiteral, std::string(literal.text())};
}

/// Parses what stands between braces.
Segment Pattern::parseWildcard(std::string_view text, bool last) const {
  if (text == "$") {
    if (!last) refuse("{$} must be at the end");
    return {Kind::kLiteral, ""};
  }
  const bool is_tail = text.ends_with("...");
  if (is_tail) text.remove_suffix(3);
  if (text.empty()) refuse("a wildcard has no name");
  if (!isName(text)) refuse("\"" + std::string(text) + "\" is not a name, which has letters, digits and '_' only");
  if (is_tail && !last) refuse("{" + std::string(text) + "...} must be at the end");
  const auto same = [&](const Segment& other) { return other.kind != Kind::kLiteral && other.text == text; };
  if (std::any_of(m_segments.begin(), m_segments.end(), same)) refuse("it has the name \"" + std::string(text) + "\" twice");
  return {is_tail ? Kind::kTail : Kind::kName, std::string(text)};
}

// A host decides before all else: a pattern with one is more specific than all without.
Relation Pattern::relationTo(const Pattern& other) const {
  Wider wider;
  if (!m_host.empty() && !other.m_host.empty() && m_host != other.m_host) return Relation::kDisjoint;
  if (!compare(m_method, other.m_method, wider) || !compare(m_segments, other.m_segments, wider)) return Relation::kDisjoint;
  if (m_host == other.m_host) return wider.relation();
  return m_host.empty() ? Relation::kMoreGeneral : Relation::kMoreSpecific;
}

std::string Pattern::exampleWith(const Pattern& other) const {
  std::string request;
  const auto method = !m_method || other.m_method == HttpMethod::HEAD ? other.m_method : m_method;
  if (method) request.append(HttpMethodToString(*method)).append(" ");
  request.append(m_host.empty() ? other.m_host : m_host);
  for (size_t i = 0; i < std::max(m_segments.size(), other.m_segments.size()); ++i) {
    const Segment& mine = m_segments[std::min(i, m_segments.size() - 1)];
    const Segment& its = other.m_segments[std::min(i, other.m_segments.size() - 1)];
    const Segment& narrower = mine.kind <= its.kind ? mine : its;
    request.push_back('/');
    if (narrower.kind == Kind::kLiteral) request.append(percentEncode(*percentDecode(narrower.text)));
    if (narrower.kind == Kind::kName) request.push_back('x');
  }
  return request;
}

void Pattern::bind(std::string_view path, HttpRequest& request) const {
  if (!m_has_names) return;
  PathSegments parts(path);
  for (const Segment& segment : m_segments) {
    if (segment.kind == Kind::kTail) {
      if (!segment.text.empty()) request.setPathParam(segment.text, *percentDecode(parts.rest()));
      return;
    }
    const std::string_view part = parts.next();
    if (segment.kind == Kind::kName) request.setPathParam(segment.text, *percentDecode(part));
  }
}

}  // namespace sylar::http::detail
