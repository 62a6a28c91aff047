#include "sylar/http/request_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sylar/check.h"
#include "sylar/http/head_parser.h"

namespace sylar::http::detail {

const Verdict& RequestReader::record(const Verdict& verdict) {
  m_verdict = verdict;
  if (!verdict.ok()) m_body = Body::kNone;
  return m_verdict;
}

bool RequestReader::refuse(HttpStatus status, const char* why) { return record(Verdict::refused(status, why)).ok(); }

bool RequestReader::endWith(const char* why) { return record(Verdict::gone(why)).ok(); }

std::chrono::nanoseconds RequestReader::until(Deadline deadline) const {
  return std::chrono::nanoseconds(std::max<int64_t>(deadline.ns() - m_clock.nowNs(), 0));
}

RequestReader::RequestReader(ByteSource& source, ByteSink& sink, const HttpLimits& limits, const Clock& clock)
    : m_source(source), m_sink(sink), m_limits(limits), m_clock(clock) {
  SYLAR_CHECK(limits.min_body_rate > 0);
}

Verdict RequestReader::readHead(HttpRequest& request) {
  request.reset();
  return awaitRequest() ? readAwaited(request) : m_verdict;
}

bool RequestReader::awaitRequest() {
  SYLAR_CHECK(!hasBody());
  if (!m_verdict.ok()) return false;  // bytes after an error are not a request
  m_buffer.shrink();
  if (!m_buffer.empty()) return true;
  const ssize_t count = m_source.readInto(m_buffer, m_requests == 0 ? m_limits.first_byte_timeout : m_limits.idle_timeout);
  if (count > 0) return true;
  if (count < 0 && errno == EAGAIN) return record(Verdict::silent("no request came")).ok();
  return endWith(count == 0 ? "end of stream" : "connection broken");
}

// Reads until the head is whole. Returns false after a refusal, or if the rest does not come.
bool RequestReader::scanHead(HeadScan& head, FieldList& fields) {
  Scan scan = head.feed(m_buffer.data(), fields);
  if (scan == Scan::kMore) {
    const Deadline deadline = Deadline::after(m_limits.head_timeout, m_clock);
    do {
      const ssize_t count = m_source.readInto(m_buffer, until(deadline));
      if (count == 0) return endWith("end of stream within a head");
      if (count < 0) return errno == EAGAIN ? refuse(HttpStatus::REQUEST_TIMEOUT, "head too slow") : endWith("connection broken");
      scan = head.feed(m_buffer.data(), fields);
    } while (scan == Scan::kMore);
  }
  return scan == Scan::kDone || record(head.refusal()).ok();
}

const Verdict& RequestReader::readAwaited(HttpRequest& request) {
  /// Leaves no fields, whose text is not there, if no head is parsed.
  struct Fields {
    ~Fields() {
      if (!parsed) list.clear();
    }
    FieldList& list;
    bool parsed = false;
  } fields{HeadParser::fields(request)};
  HeadScan scan(m_limits);
  if (!scanHead(scan, fields.list)) return m_verdict;
  BodyFraming framing;
  const Verdict& verdict = record(HeadParser::parse(m_buffer.data(), scan, request, framing));
  fields.parsed = true;
  if (!verdict.ok()) return verdict;
  if (framing.chunked) {
    if (m_chunks == nullptr) m_chunks = std::make_unique<ChunkDecoder>(m_limits);
    m_chunks->start();
  }
  m_buffer.consume(scan.end());
  m_buffer.shrink();
  ++m_requests;
  request.m_max_params = m_limits.max_params;
  request.m_max_cookies = m_limits.max_cookies;
  m_awaits_continue = framing.awaits_continue;
  m_answer_begun = false;
  m_body = framing.chunked ? Body::kChunked : framing.length > 0 ? Body::kCounted : Body::kNone;
  if (hasBody()) {
    m_request = &request;
    m_max_body = m_limits.max_body;
    m_length = framing.length;
    m_received = 0;
    m_body_started = false;
    m_least_rate = m_limits.min_body_rate;
    m_linger_until = Deadline::never();
    m_patience_ns = m_limits.body_grace.count();
  }
  return verdict;
}

Verdict RequestReader::readBody(HttpRequest& request, BodyShare* share) {
  std::string& body = request.body();
  size_t used = body.size();
  while (hasBody()) {
    // The string grows with the bytes that have arrived, so the length that a peer promises costs no memory.
    if (used == body.size()) {
      const uint64_t left = std::max<uint64_t>(1, m_body == Body::kCounted ? m_length - m_received : m_max_body - m_received);
      const uint64_t size = used + std::min<uint64_t>(left, std::max<uint64_t>(4096, used));
      if (share != nullptr && !share->reach(size)) {
        refuse(HttpStatus::SERVICE_UNAVAILABLE, "no room for bodies");
        break;
      }
      body.resize(size);
    }
    if (share != nullptr) m_least_rate = share->leastRate();
    const ssize_t count = readBodySome(body.data() + used, body.size() - used);
    if (count > 0) used += static_cast<size_t>(count);
  }
  body.resize(used);
  return m_verdict;
}

Verdict RequestReader::read(HttpRequest& request) {
  const Verdict head = readHead(request);
  return head.ok() ? readBody(request) : head;
}

ssize_t RequestReader::readBodySome(char* buffer, size_t size) {
  if (!hasBody()) return m_verdict.ok() ? 0 : -1;
  if (!m_body_started && !startBody()) return -1;
  if (m_body == Body::kChunked && !reachData()) return -1;
  if (!hasBody()) return 0;

  const uint64_t left = m_body == Body::kCounted ? m_length - m_received : m_chunks->dataLeft();
  auto count = static_cast<ssize_t>(std::min<uint64_t>(size, left));
  if (m_buffer.empty()) {
    if (!waitForBody(buffer, static_cast<size_t>(count), count)) return -1;
  } else {
    count = std::min(count, static_cast<ssize_t>(m_buffer.data().size()));
    std::memcpy(buffer, m_buffer.data().data(), static_cast<size_t>(count));
    m_buffer.consume(static_cast<size_t>(count));
  }
  const auto bytes = static_cast<uint64_t>(count);
  m_received += bytes;
  const auto earned = static_cast<int64_t>(std::min<uint64_t>(bytes, 1 << 30) * 1'000'000'000 / m_least_rate);
  m_patience_ns = std::min(m_patience_ns + earned, m_limits.body_grace.count());
  if (m_body == Body::kChunked) {
    m_chunks->tookData(bytes);
  } else if (m_received == m_length) {
    endBody();
  }
  return count;
}

// Runs before the first read of a body. Checks that the body is allowed, and sends "100 Continue" if the peer waits for it.
bool RequestReader::startBody() {
  m_body_started = true;
  if (m_body == Body::kCounted && m_length > m_max_body) return refuse(HttpStatus::PAYLOAD_TOO_LARGE, "body too large");
  if (!m_awaits_continue || m_answer_begun || !m_buffer.empty()) return true;
  char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
  iovec part{text, sizeof text - 1};
  return m_sink.writeAll({&part, 1}) || endWith("connection broken");
}

// Goes on to the next data of a chunked body, or to its end, where it also ends the body here.
bool RequestReader::reachData() {
  while (m_chunks->dataLeft() == 0) {
    ssize_t count = 0;
    if (m_buffer.empty()) {
      const std::span<char> room = m_buffer.room();
      if (!waitForBody(room.data(), room.size(), count)) return false;
      m_buffer.filled(static_cast<size_t>(count));
    }
    m_buffer.consume(m_chunks->feed(m_buffer.data()));
    if (m_chunks->isBad()) return refuse(HttpStatus::BAD_REQUEST, "chunked body malformed");
    if (m_chunks->dataLeft() > m_max_body - m_received) return refuse(HttpStatus::PAYLOAD_TOO_LARGE, "body too large");
    if (m_chunks->isDone()) {
      endBody();
      return true;
    }
  }
  return true;
}

// Waits for bytes of the body and reads them. If it returns true, `count` > 0.
bool RequestReader::waitForBody(char* buffer, size_t size, ssize_t& count) {
  const int64_t begun = m_clock.nowNs();
  const int64_t patience_ns = std::clamp<int64_t>(m_linger_until.ns() - begun, 0, std::max<int64_t>(m_patience_ns, 0));
  count = m_source.read(buffer, size, std::chrono::nanoseconds(patience_ns));
  const int error = errno;
  m_patience_ns -= m_clock.nowNs() - begun;
  if (count > 0) return true;
  if (count == 0) return endWith("end of stream within a body");
  if (error != EAGAIN) return endWith("connection broken");
  return refuse(HttpStatus::REQUEST_TIMEOUT, "body too slow");
}

void RequestReader::endBody() {
  if (m_body == Body::kChunked && m_request != nullptr) m_chunks->takeTrailers(m_request->m_trailers);
  m_body = Body::kNone;
}

bool RequestReader::finishBody() {
  if (!m_verdict.ok()) return false;
  if (!hasBody()) return true;
  m_request = nullptr;
  // Usually the answer has been sent already, so a fault in the body has no answer.
  const auto refuseBody = [this] { return refuse(HttpStatus::PAYLOAD_TOO_LARGE, "body refused"); };
  if (m_awaits_continue && !m_body_started) return refuseBody();
  m_linger_until = Deadline::after(m_limits.linger_timeout, m_clock);
  const uint64_t stop_at = m_received + m_limits.max_linger_bytes;
  if (m_body == Body::kCounted && m_length > stop_at) return refuseBody();
  char scratch[1024];
  while (hasBody() && m_received <= stop_at) {
    if (readBodySome(scratch, sizeof scratch) < 0) break;
  }
  if (m_verdict.ok() && hasBody()) refuseBody();
  return m_verdict.ok();
}

void RequestReader::linger() {
  const Deadline deadline = Deadline::after(m_limits.linger_timeout, m_clock);
  char scratch[1024];
  size_t read = takeBuffered().size();
  while (read < m_limits.max_linger_bytes) {
    const ssize_t count = m_source.read(scratch, sizeof scratch, until(deadline));
    if (count <= 0) return;
    read += static_cast<size_t>(count);
  }
}

std::string RequestReader::takeBuffered() {
  std::string bytes(m_buffer.data());
  m_buffer.consume(bytes.size());
  return bytes;
}

size_t RequestReader::takeBuffered(char* buffer, size_t size) {
  const size_t count = m_buffer.data().copy(buffer, size);
  m_buffer.consume(count);
  m_buffer.shrink();
  return count;
}

}  // namespace sylar::http::detail
