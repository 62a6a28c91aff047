// Internal. Reads requests from bytes: the server's end of HTTP/1.1 framing, with all its limits in size and time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "sylar/base/internal.h"
#include "sylar/clock.h"
#include "sylar/http/byte_stream.h"
#include "sylar/http/chunk_decoder.h"
#include "sylar/http/head_scan.h"
#include "sylar/http/http.h"
#include "sylar/http/http_shared.h"
#include "sylar/http/input_buffer.h"
#include "sylar/http/limits.h"
#include "sylar/http/verdict.h"

namespace sylar::http::detail {

/// Reads the requests of one connection, one after the other. For each:
///
///     Verdict verdict = reader.readHead(request);      // or read(): head and body at once
///     if (verdict.ok()) verdict = reader.readBody(request);       // or readBodySome() for each piece, or no call
///     ... answer it ...
///     if (!reader.finishBody()) close;      // discards what was not read of the body
///
/// After a verdict that is not accepted the connection ends: answer, half-close, linger(), close.
///
/// Thread safety: one caller at a time. May suspend: yes, in all calls that read.
class RequestReader {
 public:
  /// All arguments must outlive the reader. `sink` is only used to send "100 Continue". `clock` is the clock by which `source`
  /// waits.
  RequestReader(ByteSource& source, ByteSink& sink, const HttpLimits& limits, const Clock& clock = steadyClock());

  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  /// Waits for the next head and fills `request` from it (reset first; its body is empty). Must not be called while a body is
  /// unread, so call finishBody() first. After a verdict that is not accepted it only repeats that verdict.
  Verdict readHead(HttpRequest& request);
  /// Does the first step of readHead(), for callers that need no request while they wait: waits for the first byte. Returns false
  /// if none comes, and verdict() says why.
  bool awaitRequest();
  /// Does the second step of readHead(), directly after an awaitRequest() that returned true. `request` must be as new.
  const Verdict& readAwaited(HttpRequest& request);
  /// Collects the rest of the body and its trailers into `request`. Does nothing without a body. Takes room for the body from
  /// `share`, if that is not null, and refuses with 503 if it has none.
  Verdict readBody(HttpRequest& request, BodyShare* share = nullptr);
  /// Reads the head and the body.
  Verdict read(HttpRequest& request);

  /// Sets the maximum size of the body of the current request, in place of that of the limits. Call it between readHead() and the
  /// first read of the body.
  void setMaxBody(uint64_t max_body) { m_max_body = max_body; }
  /// Returns true if the current request has a body of which something is unread.
  bool hasBody() const { return m_body != Body::kNone; }
  /// Does the first step of reading a body, which sends "100 Continue" to a peer that waits for it. It is for callers that answer
  /// before they read, since nothing may be sent in the middle of a response. Returns false if the body is refused, and verdict()
  /// says why. Does nothing without a body.
  bool openBody() { return !hasBody() || m_body_started || startBody(); }
  /// Reads some of the body into `buffer[size]`, size > 0, and returns the number of bytes (> 0). Returns 0 at the end of the
  /// body; the trailers are then in the request of readHead(), which must still live. Returns -1 if the connection must end, and
  /// verdict() says why.
  ssize_t readBodySome(char* buffer, size_t size);
  /// Records that an answer is on its way. A body that is read from now on is not asked for with "100 Continue", which would land
  /// in the answer or be taken for the next one.
  void answerBegun() { m_answer_begun = true; }
  /// Returns the last verdict.
  const Verdict& verdict() const { return m_verdict; }

  /// Discards the rest of the body within the linger limits. Returns true if the connection may serve the next request. Returns
  /// false at once if the peer still waits for a "100 Continue" that will not come. After false the connection ends as after any
  /// other verdict, since a peer that has not gone may still be sending. The request is no longer touched.
  bool finishBody();
  /// Discards what still arrives, within the linger limits, until the peer ends, so that the error answer is not lost in a reset.
  /// Call it after the answer and the half-close.
  void linger();

  /// Returns the bytes that came after the current message. They belong to the next request, or after an upgrade to another
  /// protocol, which then takes them out.
  std::string_view buffered() const { return m_buffer.data(); }
  std::string takeBuffered();
  /// Takes up to `size` of these bytes into `buffer[size]`, and returns how many.
  size_t takeBuffered(char* buffer, size_t size);

  /// Returns the number of requests whose heads were accepted.
  uint64_t requests() const { return m_requests; }

 private:
  enum class Body : uint8_t { kNone, kCounted, kChunked };

  const Verdict& record(const Verdict& verdict);
  bool refuse(HttpStatus status, const char* why);
  bool endWith(const char* why);
  bool scanHead(HeadScan& head, FieldList& fields);

  std::chrono::nanoseconds until(Deadline deadline) const;

  bool startBody();
  bool reachData();
  bool waitForBody(char* buffer, size_t size, ssize_t& count);
  void endBody();

  ByteSource& m_source;
  ByteSink& m_sink;
  const HttpLimits& m_limits;
  const Clock& m_clock;
  InputBuffer m_buffer;
  std::unique_ptr<ChunkDecoder> m_chunks;  // from the first chunked body on
  Verdict m_verdict;
  HttpRequest* m_request = nullptr;  // of readHead(), while its body is unread
  uint64_t m_requests = 0;
  uint64_t m_max_body = 0;
  uint64_t m_length = 0;      // of a counted body
  uint64_t m_received = 0;    // body bytes so far
  uint64_t m_least_rate = 0;  // of the body, in bytes per second
  int64_t m_patience_ns = 0;  // how long to wait for the peer at most; body bytes earn more
  Deadline m_linger_until = Deadline::never();
  Body m_body = Body::kNone;
  bool m_body_started = false;     // a read of the body has begun
  bool m_awaits_continue = false;  // the peer holds the body back until "100 Continue"
  bool m_answer_begun = false;
};

}  // namespace sylar::http::detail
