#include "sylar/http/chunk_decoder.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "sylar/check.h"
#include "sylar/http/char_class.h"
#include "sylar/http/field_list_control.h"

namespace sylar::http::detail {
namespace {

// Fields that say how a message is framed, routed or handled. In a trailer they would come too late. Source: RFC 9110 section
// 6.5.1.
constexpr std::string_view kForbiddenTrailers[] = {
    "content-length", "transfer-encoding", "host",  "connection",   "upgrade", "expect", "te", "trailer",
    "content-type",   "content-encoding",  "range", "authorization"};

}  // namespace

ChunkDecoder::ChunkDecoder(const HttpLimits& limits)
    : m_limits(limits), m_scan(limits.max_trailer_bytes, limits.max_trailer_bytes, limits.max_headers) {}

void ChunkDecoder::start() {
  m_scan.start(0);
  m_trailers.clear();
  m_data_left = m_size = 0;
  m_line = m_extensions = 0;
  m_digits = 0;
  m_state = State::kSize;
}

ChunkDecoder::State ChunkDecoder::onSize(char c) {
  if (isChar(c, kHexDigit)) {
    if (++m_digits > 16) return State::kBad;
    m_size = m_size << 4 | hexValue(c);
    return State::kSize;
  }
  if (m_digits == 0 || m_size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return State::kBad;
  if (c == '\r') return State::kSizeLf;
  return c == ';' && ++m_extensions <= m_limits.max_chunk_extensions ? State::kExtension : State::kBad;
}

ChunkDecoder::State ChunkDecoder::onByte(char c) {
  switch (m_state) {
    case State::kSize: return ++m_line > m_limits.max_chunk_line && c != '\r' ? State::kBad : onSize(c);
    case State::kExtension:
      if (c == '\r') return State::kSizeLf;
      ++m_line;
      ++m_extensions;
      if (m_line > m_limits.max_chunk_line || m_extensions > m_limits.max_chunk_extensions) return State::kBad;
      return isChar(c, kValueChar) ? State::kExtension : State::kBad;
    case State::kSizeLf:
      if (c != '\n') return State::kBad;
      m_data_left = m_size;
      return m_size > 0 ? State::kData : State::kTrailers;
    case State::kData: return c == '\r' ? State::kDataLf : State::kBad;
    case State::kDataLf:
      m_size = 0;
      m_line = 0;
      m_digits = 0;
      return c == '\n' ? State::kSize : State::kBad;
    case State::kTrailers:
    case State::kDone:
    case State::kBad: break;
  }
  return m_state;
}

size_t ChunkDecoder::feed(std::string_view text) {
  SYLAR_DCHECK(m_data_left == 0);
  size_t used = 0;
  while (used < text.size() && m_data_left == 0 && m_state < State::kTrailers) m_state = onByte(text[used++]);
  if (m_state != State::kTrailers) return used;

  // The last chunk has come. The trailers are stored as they arrive; in most bodies they are only the empty line.
  std::string& trailers = FieldListControl::text(m_trailers);
  const size_t before = trailers.size();
  const size_t most = m_limits.max_trailer_bytes + 2;
  trailers.append(text.substr(used, most - before));
  const Scan scan = m_scan.feed(trailers, m_trailers);
  if (scan == Scan::kDone) {
    trailers.resize(m_scan.position());  // what came with them belongs to the next message
    m_state = hasForbiddenTrailer() ? State::kBad : State::kDone;
  } else if (scan != Scan::kMore || trailers.size() == most) {
    m_state = State::kBad;
  }
  return used + trailers.size() - before;
}

bool ChunkDecoder::hasForbiddenTrailer() const {
  for (size_t i = 0; i < m_trailers.size(); ++i) {
    const auto same = [name = m_trailers[i].name](std::string_view forbidden) { return equalsIgnoreCase(name, forbidden); };
    if (std::any_of(std::begin(kForbiddenTrailers), std::end(kForbiddenTrailers), same)) return true;
  }
  return false;
}

}  // namespace sylar::http::detail
