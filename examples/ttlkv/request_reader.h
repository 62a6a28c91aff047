// A RequestReader finds the requests in the bytes of a connection: arrays of bulk strings, or lines for people with telnet.
//
//   while ((n = socket->recv(reader.space())) > 0) {
//     reader.received(n);
//     while (reader.next() == RequestReader::kRequest) execute(reader.args());
//   }
//
// It allocates for bytes that have arrived, and never for those that a client announces. A request that arrives in pieces is
// not read again from its beginning.
//
// Thread safety: none. A reader belongs to the fiber of its connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ttlkv {

class RequestReader {
 public:
  enum Result {
    kRequest,     ///< args() has a request
    kIncomplete,  ///< more bytes are needed
    kBroken,      ///< the client has broken the protocol, error() says how; the connection must end
  };

  static constexpr size_t kSmallBuffer = size_t{4} << 10;   ///< kept while a client sends small requests
  static constexpr size_t kLargeBuffer = size_t{64} << 10;  ///< larger buffers are freed after their request
  static constexpr size_t kMaxLine = size_t{64} << 10;      ///< of an inline request, or of an announced length

  explicit RequestReader(int64_t max_bulk_bytes = int64_t{512} << 20) : m_max_bulk_bytes(max_bulk_bytes) {}

  /// Returns room for the next bytes, at least 1 KiB. The buffer is enlarged only if it is full of bytes that have arrived.
  std::span<char> space();
  /// Takes the first `size` bytes of the last space().
  void received(size_t size) { m_end += size; }

  /// Reads one request, which may be empty, as a blank line is.
  Result next();
  /// The arguments of the request that next() has read. They point into the buffer until the next call of next() or space().
  std::span<const std::string_view> args() const { return m_args; }
  /// Returns the text of Redis' protocol error.
  const std::string& error() const { return m_error; }

  /// Returns the bytes of the buffer.
  size_t capacity() const { return m_capacity; }

 private:
  struct Piece {
    size_t begin;  // counted from the beginning of the request, because the buffer may move
    size_t size;
  };

  Result readArray();
  Result readArguments();
  Result readInline();
  Result takeLength(char type, const char* too_big, bool (RequestReader::*accept)(int64_t), const char* invalid);
  bool acceptCount(int64_t count);
  bool acceptBulkLength(int64_t length);
  Result broken(std::string text);
  Result finished(size_t size);
  void grow(size_t capacity);
  std::string_view rest() const { return {m_buffer.get() + m_begin + m_at, m_end - m_begin - m_at}; }

  const int64_t m_max_bulk_bytes;
  std::unique_ptr<char[]> m_buffer;
  size_t m_capacity = 0;
  size_t m_begin = 0;          // of the request that is being read
  size_t m_end = 0;            // of the bytes that have arrived
  size_t m_at = 0;             // how far the request was read, counted from m_begin
  bool m_in_array = false;     // its count was read
  int64_t m_missing = 0;       // arguments that the array still lacks
  int64_t m_bulk_length = -1;  // of the argument that comes next, or -1 if its length was not read yet
  std::vector<Piece> m_pieces;
  std::vector<std::string_view> m_args;
  std::vector<std::string> m_words;  // the arguments of an inline request, which may contain escapes
  std::string m_error;
};

/// Splits a line as a shell would, with double quotes, in which \n \r \t \b \a \xHH are escapes, and single quotes. Returns false
/// if the quotes are not balanced.
bool splitWords(std::string_view line, std::vector<std::string>& words);

}  // namespace ttlkv
