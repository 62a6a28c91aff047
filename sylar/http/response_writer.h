// Responses as bytes: framed so that the peer always knows where one ends.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string_view>

#include "sylar/http/byte_stream.h"
#include "sylar/http/http_date.h"
#include "sylar/http/message.h"
#include "sylar/http/output_buffer.h"
#include "sylar/http/verdict.h"

namespace sylar::http {

/// Writes the responses of one connection, one after the other: whole ones with write(), others with begin(), writePiece(),
/// end().
///
/// Framing belongs to the writer: it says content-length or chunked, connection and date; what a handler set under
/// `content-length` or `transfer-encoding` is not sent, but the length that he gives to HEAD without a body is. No body goes out
/// with 101, 204, 205, 304 or in a response to HEAD. The connection header is the handler's only in 101; elsewhere he may ask for
/// `close` in it. Another 1xx is no response: EPROTO, and nothing is sent.
///
/// Thread safety: one caller at a time. All calls that write may suspend.
class ResponseWriter {
 public:
  /// `sink` outlives the writer. `now` gives the date; time(2) but for tests.
  explicit ResponseWriter(ByteSink& sink, time_t (*now)(time_t*) = &::time) : m_sink(sink), m_now(now) {}

  ResponseWriter(const ResponseWriter&) = delete;
  ResponseWriter& operator=(const ResponseWriter&) = delete;

  /// What is answered: which method decides whether a body may follow, and which version and wish hold for the connection. The
  /// connection lives on only if the request and the response both wish it. The version on the wire is HTTP/1.1 always; to a peer
  /// of 1.0 nothing is said that 1.0 does not know. After 101 it is another protocol's. Source: RFC 9110 section 2.5.
  bool write(const HttpRequest& request, const HttpResponse& response);

  /// Answers a refused verdict: its status, no body, connection: close.
  bool writeError(HttpStatus status);

  /// Begins a response whose body comes in pieces; the body of `response` is not sent. With `length` exactly so many bytes must
  /// follow; without, they are sent chunked to HTTP/1.1, and to HTTP/1.0 until the connection ends.
  bool begin(const HttpRequest& request, const HttpResponse& response, std::optional<uint64_t> length = std::nullopt);
  /// Sends `piece`; an empty one sends nothing. False + EMSGSIZE if it is more than was promised: nothing of it is sent.
  bool writePiece(std::string_view piece);
  /// Ends the body. False + EPROTO if less was written than promised: the connection must be cut, for the peer still waits.
  bool end();

  /// All of the above return true when the bytes went to the sink; false + errno when not. After a false nothing more is written,
  /// unless it was EPROTO of a call that nothing was begun for: that has changed nothing.

  /// May the connection serve another request? False after a response that closes, after any failure, and while a body is open.
  bool isKeepAlive() const { return m_keep_alive && m_state == State::kIdle; }
  /// Has any byte of a response to the current request gone out? Cleared by startRequest().
  bool isStarted() const { return m_started; }
  void startRequest() { m_started = false; }

 private:
  enum class State : uint8_t { kIdle, kCounted, kChunked, kUntilClose, kNoBody, kFailed };

  /// Which body the response has on the wire, and what the head says about it.
  enum class Framing : uint8_t { kLength, kChunked, kUntilClose, kNone };

  void putHead(const HttpRequest& request, const HttpResponse& response, Framing framing, uint64_t length);
  bool flush(std::string_view body, std::string_view tail = {});
  bool refuse();
  bool fail(int error);

  ByteSink& m_sink;
  time_t (*m_now)(time_t*);
  HttpDateCache m_date;
  OutputBuffer m_out;
  uint64_t m_left = 0;
  State m_state = State::kIdle;
  bool m_keep_alive = true;
  bool m_head_only = false;
  bool m_started = false;
};

}  // namespace sylar::http
