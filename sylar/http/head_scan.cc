#include "sylar/http/head_scan.h"

#include <algorithm>

#include "sylar/check.h"
#include "sylar/http/char_class.h"

namespace sylar::http::detail {
namespace {

// Returns the first position in [at, end) whose byte is not of the class `mask`, or `end` if there is none. at <= end.
size_t skip(std::string_view text, size_t at, size_t end, uint8_t mask) {
  SYLAR_DCHECK(at <= end && end <= text.size());
  return static_cast<size_t>(skipChars(text.data() + at, text.data() + end, mask) - text.data());
}

}  // namespace

void FieldScan::start(size_t position) {
  m_at = position;
  m_total_end = position + m_max_total;
  m_count = 0;
  m_state = State::kLine;
}

Scan FieldScan::feed(std::string_view text) {
  while (m_at < text.size()) {
    const char c = text[m_at];
    switch (m_state) {
      case State::kLine:
        if (c == '\r') {
          m_state = State::kLastLf;
          ++m_at;
          break;
        }
        if (!isChar(c, kTokenChar)) return Scan::kBad;  // includes a folded line, which begins with a blank
        if (m_count++ == m_max_count) return Scan::kTooLong;
        m_end = std::min(m_at + m_max_line, m_total_end - std::min<size_t>(m_total_end, 2));  // room for its CRLF
        m_state = State::kName;
        [[fallthrough]];
      case State::kName:
      case State::kValue: {
        const uint8_t mask = m_state == State::kName ? kTokenChar : kValueChar;
        m_at = skip(text, m_at, std::min(text.size(), std::max(m_end, m_at)), mask);
        if (m_at == text.size()) return Scan::kMore;
        if (isChar(text[m_at], mask)) return Scan::kTooLong;
        const bool in_name = m_state == State::kName;
        if (text[m_at] != (in_name ? ':' : '\r')) return Scan::kBad;
        if (in_name && m_at >= m_end) return Scan::kTooLong;
        m_state = in_name ? State::kValue : State::kLf;
        ++m_at;
        break;
      }
      case State::kLf:
      case State::kLastLf:
        if (c != '\n') return Scan::kBad;
        ++m_at;
        if (m_state == State::kLastLf) return Scan::kDone;
        m_state = State::kLine;
        break;
    }
  }
  return Scan::kMore;
}

void HeadScan::start() {
  m_at = m_begin = 0;
  m_skipped = false;
  m_state = State::kStart;
}

Scan HeadScan::refuse(Scan scan, HttpStatus status, const char* why) {
  m_refusal = Verdict::refused(status, why);
  return scan;
}

Scan HeadScan::feed(std::string_view text) {
  if (m_state != State::kFields) {
    const Scan line = feedLine(text);
    if (line != Scan::kDone) return line;
  }
  const Scan fields = m_fields.feed(text);
  if (fields == Scan::kBad) return refuse(fields, HttpStatus::BAD_REQUEST, "header line malformed");
  if (fields == Scan::kTooLong) return refuse(fields, HttpStatus::REQUEST_HEADER_FIELDS_TOO_LARGE, "headers too large");
  return fields;
}

// Scans the request line. Returns kDone when the fields begin.
Scan HeadScan::feedLine(std::string_view text) {
  while (m_at < text.size()) {
    const char c = text[m_at];
    switch (m_state) {
      case State::kStart:
        if (c == '\r' && !m_skipped) {
          m_skipped = true;
          m_state = State::kEmptyLf;
          ++m_at;
          break;
        }
        m_begin = m_part = m_at;
        m_state = State::kMethod;
        [[fallthrough]];
      case State::kMethod:
      case State::kTarget: {
        const bool in_method = m_state == State::kMethod;
        const uint8_t mask = in_method ? kTokenChar : kTargetChar;
        const size_t line_end = m_begin + m_max_line;
        m_at = skip(text, m_at, std::min(text.size(), std::max(line_end, m_at)), mask);
        if (m_at == text.size()) return Scan::kMore;
        if (m_at >= line_end && (isChar(text[m_at], mask) || text[m_at] == ' ')) {
          return refuse(Scan::kTooLong, HttpStatus::URI_TOO_LONG, "request line too long");
        }
        if (text[m_at] != ' ' || m_at == m_part) return refuse(Scan::kBad, HttpStatus::BAD_REQUEST, "request line malformed");
        m_part = ++m_at;
        m_state = in_method ? State::kTarget : State::kVersion;
        break;
      }
      case State::kVersion:
        m_at = skip(text, m_at, std::min(text.size(), m_part + 9), kTargetChar);
        if (m_at == text.size()) return Scan::kMore;
        if (const Scan version = checkVersion(text.substr(m_part, m_at - m_part)); version != Scan::kDone) return version;
        if (text[m_at] != '\r') return refuse(Scan::kBad, HttpStatus::BAD_REQUEST, "request line malformed");
        if (m_at > m_begin + m_max_line) return refuse(Scan::kTooLong, HttpStatus::URI_TOO_LONG, "request line too long");
        m_state = State::kLf;
        ++m_at;
        break;
      case State::kEmptyLf:
      case State::kLf:
        if (c != '\n') return refuse(Scan::kBad, HttpStatus::BAD_REQUEST, "CR without LF");
        ++m_at;
        if (m_state == State::kLf) {
          m_state = State::kFields;
          m_fields.start(m_at);
          return Scan::kDone;
        }
        m_state = State::kStart;
        break;
      case State::kFields: return Scan::kDone;
    }
  }
  return Scan::kMore;
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
