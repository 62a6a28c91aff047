// What a peer may cost: every size, count and time that HTTP/1.1 leaves open, with its default. No limit can be switched off.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sylar::http {

/// Limits of one connection. A plain value: set the fields before the connection starts; later changes are not seen everywhere.
///
/// Thread safety: none of its own; a connection only reads it.
struct HttpLimits {
  /// Bytes of the request line without its CRLF. Excess: 414.
  size_t max_request_line = 8 * 1024;
  /// Bytes of one header line without its CRLF; bytes of all header lines with theirs; number of header lines. Excess: 431.
  size_t max_header_line = 8 * 1024;
  size_t max_header_bytes = 32 * 1024;
  size_t max_headers = 100;
  /// Bytes of a body; a route may set another (RequestReader::setMaxBody). Excess: 413.
  uint64_t max_body = 1024 * 1024;
  /// Bytes of one chunk line without its CRLF; of all chunk extensions of a body; of all its trailer lines. Excess: 400.
  size_t max_chunk_line = 256;
  size_t max_chunk_extensions = 4 * 1024;
  size_t max_trailer_bytes = 8 * 1024;
  /// Parameters of a query or form, and cookies. Excess: HttpError 400 when they are asked for.
  size_t max_params = 256;
  size_t max_cookies = 64;

  /// How long a new connection may stay silent; how long a head may take from its first byte on; how long a connection may stay
  /// silent between two requests.
  std::chrono::nanoseconds first_byte_timeout = std::chrono::seconds(10);
  std::chrono::nanoseconds head_timeout = std::chrono::seconds(15);
  std::chrono::nanoseconds idle_timeout = std::chrono::seconds(60);
  /// A body must come in at this rate on average, once the grace has passed; only time spent waiting for the peer counts.
  uint64_t min_body_rate = 256;
  std::chrono::nanoseconds body_grace = std::chrono::seconds(10);
  /// How long a write may wait for a peer that takes less than min_write_rate bytes a second meanwhile: then the connection is
  /// cut.
  std::chrono::nanoseconds write_timeout = std::chrono::seconds(30);
  uint64_t min_write_rate = 256;
  /// Requests of one connection; the answer to the last one ends it.
  uint64_t max_requests = 10'000;
  /// What is still read of a body that nobody wants: so many bytes or so long, whatever comes first.
  size_t max_linger_bytes = 64 * 1024;
  std::chrono::nanoseconds linger_timeout = std::chrono::seconds(1);
};

}  // namespace sylar::http
