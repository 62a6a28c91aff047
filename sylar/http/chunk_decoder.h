// Internal. The framing of a chunked body, which is everything between the pieces of data. Source: RFC 9112 section 7.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sylar/base/internal.h"
#include "sylar/http/field_list.h"
#include "sylar/http/head_scan.h"
#include "sylar/http/limits.h"

namespace sylar::http::detail {

/// Decodes chunk lines, the CRLF after data, and trailers; the data itself never passes through it. It is strict: CRLF only, no
/// blank around a size, at most 16 digits, no framing field among the trailers.
///
/// Thread safety: none.
class ChunkDecoder {
 public:
  explicit ChunkDecoder(const HttpLimits& limits);

  void start();

  /// Consumes framing bytes from the front of `text` until data begins, the body ends, something is wrong, or `text` is used up.
  /// Returns how many it has consumed. dataLeft() must be 0.
  size_t feed(std::string_view text);
  /// Returns how many bytes of data come next.
  uint64_t dataLeft() const { return m_data_left; }
  /// Records that `count` bytes of data were taken; count <= dataLeft().
  void tookData(uint64_t count) { m_data_left -= count; }

  bool isDone() const { return m_state == State::kDone; }
  bool isBad() const { return m_state == State::kBad; }
  /// Stores the trailer fields in `trailers`, once isDone() is true.
  void takeTrailers(FieldList& trailers) const { trailers = m_trailers; }

 private:
  enum class State : uint8_t { kSize, kExtension, kSizeLf, kData, kDataLf, kTrailers, kDone, kBad };

  State onSize(char c);
  State onByte(char c);
  bool hasForbiddenTrailer() const;

  const HttpLimits& m_limits;
  FieldScan m_scan;
  FieldList m_trailers;  // their text is as it came
  uint64_t m_size = 0;
  uint64_t m_data_left = 0;
  size_t m_line = 0;        // bytes of the chunk line so far
  size_t m_extensions = 0;  // bytes of extensions so far
  unsigned m_digits = 0;
  State m_state = State::kSize;
};

}  // namespace sylar::http::detail
