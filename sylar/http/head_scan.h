// Internal. A strict scanner for the head of a request. It finds where the head ends, and refuses at the first byte that HTTP/1.1
// does not allow there. It works on the bytes that have arrived so far, and never looks at a byte twice. A head that passed is so
// plain that it can be split at the first blank, colon or CR.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sylar/base/internal.h"
#include "sylar/check.h"
#include "sylar/http/char_class.h"
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
  void start(size_t position);
  /// Scans `text`, which is the text of the call before and perhaps more after it. After kDone, position() is just after the
  /// empty line.
  Scan feed(std::string_view text);
  size_t position() const { return m_at; }

 private:
  enum class State : uint8_t { kLine, kName, kValue, kLf, kLastLf };

  size_t m_max_line, m_max_total, m_max_count;
  size_t m_at = 0;   // the next byte to look at
  size_t m_end = 0;  // the current line, without its CRLF, must end here at the latest
  size_t m_total_end = 0;
  size_t m_count = 0;
  State m_state = State::kLine;
};

/// Calls `use(name, value)` with each field of `lines`, which a FieldScan has accepted, without the blanks around the value,
/// until `use` returns false. Returns true if it never did.
template <class Use>
bool eachField(std::string_view lines, Use use) {
  while (!lines.starts_with('\r')) {
    const size_t colon = lines.find(':');
    const size_t end = lines.find('\r', colon);
    SYLAR_DCHECK(end != std::string_view::npos);
    if (!use(lines.substr(0, colon), trimmed(lines.substr(colon + 1, end - colon - 1)))) return false;
    lines.remove_prefix(end + 2);
  }
  return true;
}

/// Scans a request line and its fields, with at most one empty line before them.
class HeadScan {
 public:
  explicit HeadScan(const HttpLimits& limits)
      : m_fields(limits.max_header_line, limits.max_header_bytes, limits.max_headers), m_max_line(limits.max_request_line) {}

  void start();
  /// Scans `text` as FieldScan::feed() does. After kDone the head is [begin(), end()). After kBad and kTooLong, refusal() says
  /// what to answer.
  Scan feed(std::string_view text);
  size_t begin() const { return m_begin; }
  size_t end() const { return m_fields.position(); }
  const Verdict& refusal() const { return m_refusal; }

 private:
  enum class State : uint8_t { kStart, kEmptyLf, kMethod, kTarget, kVersion, kLf, kFields };

  Scan feedLine(std::string_view text);
  Scan refuse(Scan scan, HttpStatus status, const char* why);
  Scan checkVersion(std::string_view version);

  FieldScan m_fields;
  size_t m_max_line;
  size_t m_at = 0;
  size_t m_begin = 0;      // start of the request line
  size_t m_part = 0;       // start of the part that is being scanned
  bool m_skipped = false;  // the one empty line was skipped
  State m_state = State::kStart;
  Verdict m_refusal;
};

}  // namespace sylar::http::detail
