#include "sylar/http/head_scan.h"

#include <algorithm>

#include "sylar/http/char_run.h"
#include "sylar/http/field_list_control.h"

namespace sylar::http::detail {
namespace {

// Returns the first position >= `at` whose byte is not of the class `kMask`, or the end of the text. It does not look beyond
// `limit`, and returns that if all before it are of the class; but at least `at`, which is <= text.size().
template <uint8_t kMask>
size_t skip(std::string_view text, size_t at, size_t limit) {
  const size_t end = std::min(text.size(), std::max(limit, at));
  return static_cast<size_t>(skipRun<kMask>(text.data() + at, text.data() + end) - text.data());
}

}  // namespace

Scan FieldScan::feed(std::string_view text, FieldList& fields) {
  size_t line = m_line, at = m_at, colon = m_colon;
  const auto more = [&] {
    m_line = line;
    m_at = at;
    m_colon = colon;
    return Scan::kMore;
  };
  for (;;) {
    if (at == text.size()) return more();
    if (at == line) {
      if (text[at] == '\r') {
        if (at + 1 == text.size()) return more();
        m_at = at + 2;
        return text[at + 1] == '\n' ? Scan::kDone : Scan::kBad;
      }
      if (!isChar(text[at], kTokenChar)) return Scan::kBad;  // includes a folded line, which begins with a blank
      if (fields.size() == m_max_count) return Scan::kTooLong;
    }
    const size_t limit = std::min(line + m_max_line, m_total_end - std::min<size_t>(m_total_end, 2));  // room for its CRLF
    if (colon == 0) {
      at = skip<kTokenChar>(text, at, limit);
      if (at == text.size()) return more();
      if (text[at] != ':') return isChar(text[at], kTokenChar) ? Scan::kTooLong : Scan::kBad;
      if (at >= limit) return Scan::kTooLong;
      colon = at++;
    }
    at = skip<kValueChar>(text, at, limit);
    if (at == text.size()) return more();
    if (text[at] != '\r') return isChar(text[at], kValueChar) ? Scan::kTooLong : Scan::kBad;
    if (at + 1 == text.size()) return more();
    if (text[at + 1] != '\n') return Scan::kBad;
    FieldListControl::add(fields, text, line, colon, at);
    line = at += 2;
    colon = 0;
  }
}

Scan HeadScan::refuse(Scan scan, HttpStatus status, const char* why) {
  m_refusal = Verdict::refused(status, why);
  return scan;
}

Scan HeadScan::feed(std::string_view text, FieldList& fields) {
  if (m_line_end == 0) {
    // One empty line may stand before the head. Source: RFC 9112 section 2.2.
    if (text.starts_with('\r')) {
      if (text.size() == 1) return Scan::kMore;
      if (text[1] != '\n') return refuse(Scan::kBad, HttpStatus::BAD_REQUEST, "CR without LF");
      m_begin = 2;
    }
    const Scan line = feedLine(text.substr(m_begin));
    if (line != Scan::kDone) return line;
    m_fields.start(m_line_end);
  }
  const Scan scan = m_fields.feed(text.substr(m_begin), fields);
  if (scan == Scan::kBad) return refuse(scan, HttpStatus::BAD_REQUEST, "header line malformed");
  if (scan == Scan::kTooLong) return refuse(scan, HttpStatus::REQUEST_HEADER_FIELDS_TOO_LARGE, "headers too large");
  return scan;
}

// Scans the request line. Returns kDone when the fields begin.
Scan HeadScan::feedLine(std::string_view text) {
  if (m_method_end == 0) {
    if (const Scan scan = findEnd<kTokenChar>(text, 0, m_method_end); scan != Scan::kDone) return scan;
  }
  if (m_target_end == 0) {
    if (const Scan scan = findEnd<kTargetChar>(text, m_method_end + 1, m_target_end); scan != Scan::kDone) return scan;
  }
  const size_t version = m_target_end + 1;
  const size_t end = skip<kTargetChar>(text, version, version + 9);
  if (end == text.size()) return Scan::kMore;
  if (const Scan scan = checkVersion(text.substr(version, end - version)); scan != Scan::kDone) return scan;
  if (text[end] != '\r') return refuse(Scan::kBad, HttpStatus::BAD_REQUEST, "request line malformed");
  if (end > m_max_line) return refuse(Scan::kTooLong, HttpStatus::URI_TOO_LONG, "request line too long");
  if (end + 1 == text.size()) return Scan::kMore;
  if (text[end + 1] != '\n') return refuse(Scan::kBad, HttpStatus::BAD_REQUEST, "CR without LF");
  m_line_end = end + 2;
  return Scan::kDone;
}

// Looks for the blank after the part of the class `kMask` that begins at `part`. After kDone it stands at `end`.
template <uint8_t kMask>
Scan HeadScan::findEnd(std::string_view text, size_t part, size_t& end) {
  const size_t at = m_at = skip<kMask>(text, m_at, m_max_line);
  if (at == text.size()) return Scan::kMore;
  if (at >= m_max_line && (isChar(text[at], kMask) || text[at] == ' ')) {
    return refuse(Scan::kTooLong, HttpStatus::URI_TOO_LONG, "request line too long");
  }
  if (text[at] != ' ' || at == part) return refuse(Scan::kBad, HttpStatus::BAD_REQUEST, "request line malformed");
  end = at;
  m_at = at + 1;
  return Scan::kDone;
}

// Accepts exactly HTTP/1.0 and HTTP/1.1. Another version of HTTP has a refusal of its own.
Scan HeadScan::checkVersion(std::string_view version) {
  if (version == "HTTP/1.1" || version == "HTTP/1.0") return Scan::kDone;
  const bool is_http = version.size() == 8 && version.starts_with("HTTP/") && isChar(version[5], kDigit) && version[6] == '.' &&
                       isChar(version[7], kDigit);
  if (is_http) return refuse(Scan::kBad, HttpStatus::HTTP_VERSION_NOT_SUPPORTED, "another version of HTTP");
  return refuse(Scan::kBad, HttpStatus::BAD_REQUEST, "no HTTP version");
}

}  // namespace sylar::http::detail
