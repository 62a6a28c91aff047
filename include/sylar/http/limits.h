// Limits on what a peer may cost: every size, count and time that HTTP/1.1 leaves open, with its default. None can be switched
// off.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sylar::http {

/// The limits of one connection, except `max_bodies` and `max_peer_bodies`, which are of the whole server. Set the fields before
/// the connection starts, since a later change is not seen everywhere.
///
/// Thread safety: none of its own; a connection only reads it.
struct HttpLimits {
  /// Maximum size of the request line in bytes, without its CRLF. A longer one is answered with 414.
  size_t max_request_line = 8 * 1024;
  /// Maximum size of one header line in bytes, without its CRLF. A longer one is answered with 431.
  size_t max_header_line = 8 * 1024;
  /// Maximum size of all header lines in bytes, with their CRLFs. More is answered with 431.
  size_t max_header_bytes = 32 * 1024;
  /// Maximum number of header lines. More are answered with 431.
  size_t max_headers = 100;
  /// Maximum size of a body in bytes. A servlet may set another limit (Servlet::setBodyLimit()). A larger body is answered with
  /// 413.
  uint64_t max_body = 1024 * 1024;
  /// Maximum size in bytes of all bodies that a server has collected, or is collecting, for the requests being served. The first
  /// 4 KiB of each body do not count. Excess is answered with 503 and retry-after.
  uint64_t max_bodies = 256 * 1024 * 1024;
  /// Maximum size in bytes of those of one IPv4 address or one IPv6 /64. Excess is answered with 503 and retry-after. Unix sockets
  /// have no such limit, nor has this host unless TcpServerLimits::limit_loopback.
  uint64_t max_peer_bodies = 64 * 1024 * 1024;
  /// Maximum size of one chunk line in bytes, without its CRLF. A longer one is answered with 400.
  size_t max_chunk_line = 256;
  /// Maximum size of all chunk extensions of a body in bytes. More is answered with 400.
  size_t max_chunk_extensions = 4 * 1024;
  /// Maximum size of all trailer lines of a body in bytes. More is answered with 400.
  size_t max_trailer_bytes = 8 * 1024;
  /// Maximum number of parameters of a query or form. Asking for the parameters of a request with more throws HttpError 400.
  size_t max_params = 256;
  /// Maximum number of cookies. Asking for the cookies of a request with more throws HttpError 400.
  size_t max_cookies = 64;

  /// The time that a new connection may stay silent.
  std::chrono::nanoseconds first_byte_timeout = std::chrono::seconds(10);
  /// The time that a head may take, from its first byte on.
  std::chrono::nanoseconds head_timeout = std::chrono::seconds(15);
  /// The time that a connection may stay silent between two requests.
  std::chrono::nanoseconds idle_timeout = std::chrono::seconds(60);
  /// The time, from its beginning, for which a new connection stays open for its first request although the server is stopping.
  std::chrono::nanoseconds new_grace = std::chrono::seconds(5);
  /// The time, from its last answer, for which a connection stays open for its next request although the server is stopping.
  std::chrono::nanoseconds kept_grace = std::chrono::seconds(1);
  /// The average rate, in bytes per second, at which a body must arrive once `body_grace` has passed. Only time spent waiting for
  /// the peer counts.
  uint64_t min_body_rate = 256;
  std::chrono::nanoseconds body_grace = std::chrono::seconds(10);
  /// The rate that takes the place of `min_body_rate`, if it is higher, for a body that counts for `max_bodies` while more than
  /// half of that is taken.
  uint64_t short_body_rate = 16 * 1024;
  /// The time that a write may wait for a peer that takes less than `min_write_rate` bytes per second during that wait. Then the
  /// connection is cut.
  std::chrono::nanoseconds write_timeout = std::chrono::seconds(30);
  uint64_t min_write_rate = 256;
  /// Maximum number of requests on one connection. The answer to the last one ends the connection.
  uint64_t max_requests = 10'000;
  /// How much is still read of an unwanted body, or of a connection whose end the peer was told: this many bytes or for this long,
  /// whichever ends first.
  size_t max_linger_bytes = 64 * 1024;
  std::chrono::nanoseconds linger_timeout = std::chrono::seconds(1);
};

}  // namespace sylar::http
