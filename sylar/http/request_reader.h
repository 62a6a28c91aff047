// Requests from bytes: the server's end of HTTP/1.1 framing, with all its limits in size and time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "sylar/base/clock.h"
#include "sylar/http/byte_stream.h"
#include "sylar/http/chunk_decoder.h"
#include "sylar/http/head_scan.h"
#include "sylar/http/input_buffer.h"
#include "sylar/http/limits.h"
#include "sylar/http/message.h"
#include "sylar/http/verdict.h"

namespace sylar::http {

/// Reads the requests of one connection, one after the other. For each:
///
///     Verdict verdict = reader.readHead(request);      // or read(): head and body at once
///     if (verdict.ok()) verdict = reader.readBody(request);       // or readBodySome() piece by piece, or nothing
///     ... answer it ...
///     if (!reader.finishBody()) close;      // what nobody read of the body
///
/// After a verdict that is not accepted the connection ends: answer, half-close, linger(), close.
///
/// Thread safety: one caller at a time. All calls that read may suspend.
class RequestReader {
 public:
  /// All arguments outlive the reader. `sink` is only used to send "100 Continue". `clock` is that by which `source` waits.
  RequestReader(ByteSource& source, ByteSink& sink, const HttpLimits& limits, const Clock& clock = steadyClock());

  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  /// Waits for the next head and makes `request` of it (reset first; its body is empty). Must not be called while a body is
  /// unread: finishBody() first. After a verdict that is not accepted it only repeats that.
  Verdict readHead(HttpRequest& request);
  /// The same in two steps, for those who need no request while they wait. False: none comes; verdict() says why.
  bool awaitHead();
  /// Directly after awaitHead() that was true. `request` is as new.
  Verdict acceptHead(HttpRequest& request);
  /// Collects the rest of the body into `request`, and its trailers. Nothing to do without a body.
  Verdict readBody(HttpRequest& request);
  /// Both.
  Verdict read(HttpRequest& request);

  /// How large the body of the current request may be; between readHead() and the first read of the body. The limits' until then.
  void setMaxBody(uint64_t max_body) { m_max_body = max_body; }
  /// Does the current request have a body of which something is unread?
  bool hasBody() const { return m_body != Body::kNone; }
  /// Makes the first step of reading a body: sends "100 Continue" to a peer that waits for it. For those who answer before they
  /// read: nothing may be sent in the midst of a response. False: the body is refused; verdict() says why. Nothing to do without
  /// a body.
  bool openBody() { return !hasBody() || m_body_started || startBody(); }
  /// Reads some of the body into `buffer[size]`, size > 0: bytes (> 0), 0 at its end (the trailers are then in the request of
  /// readHead(), which must still live), -1: verdict() says why, and the connection ends.
  ssize_t readBodySome(char* buffer, size_t size);
  /// An answer is on its way: a body that is read from now on is not asked for with "100 Continue", which would land in the
  /// answer or be taken for the next one.
  void answerBegun() { m_answer_begun = true; }
  /// The last verdict.
  const Verdict& verdict() const { return m_verdict; }

  /// Reads away the rest of the body within the linger limits: true if the connection may serve the next request. False at once
  /// if the peer still waits for a "100 Continue" that will not come. After false the connection ends as after any other verdict:
  /// a peer that has not gone may still be sending. The request is no longer touched.
  bool finishBody();
  /// Reads away what still comes, within the linger limits, until the peer ends: so that the error answer is not lost in a reset.
  /// For after the answer and the half-close.
  void linger();

  /// Bytes that came after the current message. They are the next request's, or another protocol's after an upgrade, which then
  /// takes them out.
  std::string_view buffered() const { return m_buffer.data(); }
  std::string takeBuffered();

  /// Requests whose heads were accepted.
  uint64_t requests() const { return m_requests; }

 private:
  enum class Body : uint8_t { kNone, kCounted, kChunked };

  const Verdict& settle(const Verdict& verdict);
  bool refuse(HttpStatus status, const char* why);
  bool leave(const char* why);

  std::chrono::nanoseconds until(Deadline deadline) const;
  ssize_t fill(std::chrono::nanoseconds timeout);

  bool startBody();
  bool reachData();
  bool waitForBody(char* buffer, size_t size, ssize_t& count);
  void endBody();

  ByteSource& m_source;
  ByteSink& m_sink;
  const HttpLimits& m_limits;
  const Clock& m_clock;
  InputBuffer m_buffer;
  HeadScan m_scan;
  ChunkDecoder m_chunks;
  Verdict m_verdict;
  HttpRequest* m_request = nullptr;  // of readHead(), while its body is unread
  uint64_t m_requests = 0;
  uint64_t m_max_body = 0;
  uint64_t m_length = 0;      // of a counted body
  uint64_t m_received = 0;    // body bytes so far
  int64_t m_patience_ns = 0;  // how long the peer may still be waited for; body bytes earn more
  Deadline m_linger_until = Deadline::never();
  Body m_body = Body::kNone;
  bool m_body_started = false;     // has anybody asked for the body?
  bool m_awaits_continue = false;  // the peer holds the body back
  bool m_answer_begun = false;
};

}  // namespace sylar::http
