#include "request_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "number.h"

namespace ttlkv {

namespace {

/// Returns where `bytes` have `wanted`, which Redis does not find behind a NUL.
size_t findBeforeNul(std::string_view bytes, char wanted) {
  const size_t found = bytes.find(wanted);
  return bytes.substr(0, found).find('\0') == std::string_view::npos ? found : std::string_view::npos;
}

}  // namespace

std::span<char> RequestReader::space() {
  if (m_begin == m_end) {
    m_begin = m_end = 0;
    if (m_capacity > kLargeBuffer) m_buffer.reset(), m_capacity = 0;
    if (m_pieces.capacity() > kSmallBuffer) m_pieces = {}, m_args = {};
  }
  if (m_capacity == 0) grow(kSmallBuffer);
  // The arguments of a request that is not complete yet stay at their distance from its beginning.
  if (m_begin > 0) {
    std::memmove(m_buffer.get(), m_buffer.get() + m_begin, m_end - m_begin);
    m_end -= m_begin;
    m_begin = 0;
  }
  if (m_capacity - m_end < kSmallBuffer / 4) grow(2 * m_capacity);
  return {m_buffer.get() + m_end, m_capacity - m_end};
}

void RequestReader::grow(size_t capacity) {
  std::unique_ptr<char[]> larger(new char[capacity]);  // not make_unique, which would touch memory that may stay unused
  if (m_end > 0) std::memcpy(larger.get(), m_buffer.get(), m_end);
  m_buffer = std::move(larger);
  m_capacity = capacity;
}

RequestReader::Result RequestReader::next() {
  if (!m_error.empty()) return kBroken;
  if (m_in_array) return readArguments();
  if (m_begin == m_end) return kIncomplete;
  m_args.clear();
  return m_buffer[m_begin] == '*' ? readArray() : readInline();
}

RequestReader::Result RequestReader::broken(std::string text) {
  m_error = "ERR Protocol error: " + std::move(text);
  return kBroken;
}

/// Leaves the request behind, which had `size` bytes.
RequestReader::Result RequestReader::finished(size_t size) {
  m_begin += size;
  m_at = 0;
  m_in_array = false;
  m_bulk_length = -1;
  return kRequest;
}

/// Reads a line with a number behind one character, and offers the number to `accept`.
RequestReader::Result RequestReader::takeLength(char type, const char* too_big, bool (RequestReader::*accept)(int64_t),
                                                const char* invalid) {
  const std::string_view bytes = rest();
  const size_t end = findBeforeNul(bytes, '\r');
  if (end == std::string_view::npos && bytes.size() > kMaxLine) return broken(too_big);
  if (end == std::string_view::npos || end + 1 >= bytes.size()) return kIncomplete;
  if (bytes[0] != type) return broken(std::string("expected '$', got '") + bytes[0] + "'");
  const auto number = parseInteger(bytes.substr(1, end == 0 ? 0 : end - 1));
  if (!number || !(this->*accept)(*number)) return broken(invalid);
  m_at += end + 2;
  return kRequest;
}

bool RequestReader::acceptCount(int64_t count) {
  m_missing = count;
  return count <= std::numeric_limits<int32_t>::max();
}

bool RequestReader::acceptBulkLength(int64_t length) {
  m_bulk_length = length;
  return length >= 0 && length <= m_max_bulk_bytes;
}

RequestReader::Result RequestReader::readArray() {
  const Result result = takeLength('*', "too big mbulk count string", &RequestReader::acceptCount, "invalid multibulk length");
  if (result != kRequest) return result;
  m_pieces.clear();
  m_in_array = true;
  return readArguments();
}

RequestReader::Result RequestReader::readArguments() {
  for (; m_missing > 0; --m_missing) {
    if (m_bulk_length < 0) {
      const Result result = takeLength('$', "too big bulk count string", &RequestReader::acceptBulkLength, "invalid bulk length");
      if (result != kRequest) return result;
    }
    const auto size = static_cast<size_t>(m_bulk_length);
    if (rest().size() < size + 2) return kIncomplete;
    m_pieces.push_back({m_at, size});
    m_at += size + 2;  // Redis does not look at the two bytes behind a bulk string either
    m_bulk_length = -1;
  }
  m_args.clear();
  for (const Piece& piece : m_pieces) m_args.emplace_back(m_buffer.get() + m_begin + piece.begin, piece.size);
  return finished(m_at);
}

RequestReader::Result RequestReader::readInline() {
  const std::string_view bytes = rest();
  const size_t end = findBeforeNul(bytes, '\n');
  if (end == std::string_view::npos) return bytes.size() > kMaxLine ? broken("too big inline request") : kIncomplete;
  const bool has_return = end > 0 && bytes[end - 1] == '\r';
  m_words.clear();
  if (!splitWords(bytes.substr(0, has_return ? end - 1 : end), m_words)) return broken("unbalanced quotes in request");
  m_args.assign(m_words.begin(), m_words.end());
  return finished(end + 1);
}

}  // namespace ttlkv
