// Internal. Writes responses as bytes, framed so that the peer always knows where one ends.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string_view>

#include "sylar/base/internal.h"
#include "sylar/http/byte_stream.h"
#include "sylar/http/http.h"
#include "sylar/http/output_buffer.h"
#include "sylar/http/verdict.h"

namespace sylar::http::detail {

/// Writes the responses of one connection, one after the other: whole ones with write(), others with begin(), writePiece(),
/// end().
///
/// Framing belongs to the writer, which sends content-length or chunked, connection and date. Fields that a handler has set under
/// `content-length` or `transfer-encoding` are not sent, except the length that it gives to a HEAD without a body. No body is
/// sent with 101, 204, 205, 304 or in a response to HEAD. The handler's connection header is sent only with 101; elsewhere it can
/// only ask for `close`. A status other than 101 and 200 to 599 fails with EPROTO, and nothing is sent.
///
/// Thread safety: one caller at a time. May suspend: yes, in all calls that write.
class ResponseWriter {
 public:
  /// `sink` must outlive the writer. `now` gives the time for the date header; it is time(2) except in tests.
  explicit ResponseWriter(ByteSink& sink, time_t (*now)(time_t*) = &::time) : m_sink(sink), m_now(now) {}

  ResponseWriter(const ResponseWriter&) = delete;
  ResponseWriter& operator=(const ResponseWriter&) = delete;

  /// Returns true if write() and begin() send this status: 200 to 599, and 101. After another 1xx the peer would wait for the
  /// real response.
  static constexpr bool canSend(HttpStatus status) {
    const auto code = static_cast<unsigned>(status);
    return code - 200 < 400 || status == HttpStatus::SWITCHING_PROTOCOLS;
  }

  /// Sends a whole response to `request`. The request's method decides whether a body may follow, and its version and wish hold
  /// for the connection. The connection lives on only if both the request and the response wish it. The version on the wire is
  /// always HTTP/1.1, but a peer of 1.0 is told nothing that 1.0 does not know. After 101 the connection belongs to another
  /// protocol. Source: RFC 9110 section 2.5.
  bool write(const HttpRequest& request, const HttpResponse& response);

  /// Answers a refused verdict with its status, no body and `connection: close`, and with 503 also `retry-after: 1`.
  bool writeError(HttpStatus status);

  /// Begins a response whose body comes in pieces; the body of `response` is not sent. With `length`, exactly so many bytes must
  /// follow. Without it, they are sent chunked to HTTP/1.1, and to HTTP/1.0 until the connection ends.
  bool begin(const HttpRequest& request, const HttpResponse& response, std::optional<uint64_t> length = std::nullopt);
  /// Sends `piece`; an empty one sends nothing. Fails with EMSGSIZE if it is more than was promised, and then sends nothing of
  /// it. Fails with EALREADY, which is not an error, if the response has no body and is complete with its head. A loop that
  /// writes until a call fails therefore ends.
  bool writePiece(std::string_view piece);
  /// Ends the body. Fails with EPROTO if less was written than promised. The connection must then be cut, since the peer still
  /// waits.
  bool end();

  // All calls above return true when the bytes went to the sink, and false with errno if not. After a false nothing more is
  // written, except after EALREADY, and after EPROTO of a call for which nothing was begun. These have changed nothing.

  /// Returns true if the connection may serve another request. Returns false after a response that closes, after any failure, and
  /// while a body is open.
  bool isKeepAlive() const { return m_keep_alive && m_state == State::kIdle; }
  /// Returns true if any byte of a response to the current request has been sent. startRequest() clears this.
  bool isStarted() const { return m_started; }
  void startRequest() { m_started = false; }

 private:
  enum class State : uint8_t { kIdle, kCounted, kChunked, kUntilClose, kNoBody, kFailed };

  /// Says which body the response has on the wire, and what the head says about it.
  enum class Framing : uint8_t { kLength, kChunked, kUntilClose, kNone };

  void putHead(const HttpRequest& request, const HttpResponse& response, Framing framing, uint64_t length);
  bool flush(std::string_view body, std::string_view tail = {});
  bool refuse();
  bool fail(int error);

  ByteSink& m_sink;
  time_t (*m_now)(time_t*);
  OutputBuffer m_out;
  uint64_t m_left = 0;
  State m_state = State::kIdle;
  bool m_keep_alive = true;
  bool m_head_only = false;
  bool m_started = false;
};

}  // namespace sylar::http::detail
