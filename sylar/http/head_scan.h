// Internal. A strict scanner for the head of a request. It finds where the head and its parts end, and refuses at the first byte
// that HTTP/1.1 does not allow there. It works on the bytes that have arrived so far, and goes on where it stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sylar/base/internal.h"
#include "sylar/http/field_list.h"
#include "sylar/http/limits.h"
#include "sylar/http/verdict.h"

namespace sylar::http::detail {

enum class Scan : uint8_t { kMore, kDone, kBad, kTooLong };

/// Scans the field lines of a head or of trailers, up to and including the empty line that ends them. A refusal depends only on
/// the bytes up to it, never on how they were split into reads.
class FieldScan {
 public:
  FieldScan(size_t max_line, size_t max_total, size_t max_count)
      : m_max_line(max_line), m_max_total(max_total), m_max_count(max_count) {}

  /// Begins at `position` of the text that feed() will get.
  void start(size_t position) {
    m_line = m_at = position;
    m_colon = 0;
    m_total_end = position + m_max_total;
  }
  /// Scans `text`, which is the text of the call before and perhaps more after it. Adds the places of its fields to `fields`, which
  /// was empty before the first call and is given the text by the caller (FieldListControl::text()). After kDone, position() is
  /// just after the empty line.
  Scan feed(std::string_view text, FieldList& fields);
  size_t position() const { return m_at; }

 private:
  size_t m_max_line, m_max_total, m_max_count;
  size_t m_line = 0;   // where the current line begins
  size_t m_at = 0;     // the next byte to look at
  size_t m_colon = 0;  // of the current line; 0 before it was found
  size_t m_total_end = 0;
};

/// Scans one request line and its fields, with at most one empty line before them.
class HeadScan {
 public:
  explicit HeadScan(const HttpLimits& limits)
      : m_fields(limits.max_header_line, limits.max_header_bytes, limits.max_headers), m_max_line(limits.max_request_line) {}

  /// Scans `text` as FieldScan::feed() does. The places of the fields are counted from begin(). After kBad and kTooLong,
  /// refusal() says what to answer.
  Scan feed(std::string_view text, FieldList& fields);

  // After kDone the head is [begin(), end()) of the text. The places of its parts are counted from begin().
  size_t begin() const { return m_begin; }
  size_t end() const { return m_begin + m_fields.position(); }
  size_t methodEnd() const { return m_method_end; }
  size_t targetEnd() const { return m_target_end; }
  const Verdict& refusal() const { return m_refusal; }

 private:
  Scan feedLine(std::string_view text);
  template <uint8_t kMask>
  Scan findEnd(std::string_view text, size_t part, size_t& end);
  Scan refuse(Scan scan, HttpStatus status, const char* why);
  Scan checkVersion(std::string_view version);

  FieldScan m_fields;
  size_t m_max_line;
  size_t m_begin = 0;  // of the request line in the text; all other places are counted from here
  size_t m_at = 0;     // the next byte to look at
  // These are 0 before they were found.
  size_t m_method_end = 0;
  size_t m_target_end = 0;
  size_t m_line_end = 0;
  Verdict m_refusal;
};

}  // namespace sylar::http::detail
