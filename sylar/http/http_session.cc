#include "sylar/http/http_session.h"

#include <cerrno>
#include <utility>

#include "sylar/fiber/fiber.h"
#include "sylar/http/recycled.h"
#include "sylar/sched/park.h"

namespace sylar::http {

const HttpLimits& HttpSession::defaultLimits() {
  static const HttpLimits limits;
  return limits;
}

HttpSession::HttpSession(Socket::ptr sock, bool owner, const HttpLimits& limits)
    : HttpSession(std::move(sock), owner, limits, mayPark() ? waitClock() : steadyClock()) {}

HttpSession::HttpSession(Socket::ptr sock, bool owner, const HttpLimits& limits, const Clock& clock)
    : SocketStream(std::move(sock), owner),
      m_limits(limits),
      m_bytes(*m_socket, limits),
      m_reader(m_bytes, m_bytes, limits, clock),
      m_writer(m_bytes),
      m_request(Recycled<HttpRequest>::take()) {}

HttpSession::~HttpSession() = default;

HttpRequest::ptr HttpSession::recvRequest() {
  HttpRequest::ptr request = recvHead();
  if (request == nullptr || collectBody()) return request;
  recvHead();
  return nullptr;
}

HttpRequest::ptr HttpSession::recvHead() {
  if (m_over) return nullptr;
  // A request that has been read already costs no call: others have their turn in between. (The calls see to that themselves.)
  constexpr uint64_t kTurn = 16;
  if (m_reader.requests() % kTurn == kTurn - 1 && !m_reader.buffered().empty()) Fiber::YieldToReady();
  if (mayGoOn()) {
    m_request = nullptr;
    m_writer.startRequest();
    if (m_reader.buffered().empty()) m_bytes.beginIdle();
    const bool came = m_reader.awaitHead();
    m_bytes.endIdle();
    if (came) {
      HttpRequest::ptr request = Recycled<HttpRequest>::take();
      if (m_reader.acceptHead(*request).ok()) return m_request = std::move(request);
    }
  }
  finish();
  return nullptr;
}

bool HttpSession::mayGoOn() { return !m_failed && m_writer.isKeepAlive() && m_reader.finishBody(); }

bool HttpSession::collectBody() { return m_request != nullptr && m_reader.readBody(*m_request).ok(); }

// The peer may still be sending, whatever it has promised. A close would answer that with a reset, which may overtake the
// response: so the peer is told the end first, and what it sends is read away for a while. Source: RFC 9112 section 9.6.
void HttpSession::finish() {
  m_over = true;
  const Verdict& verdict = m_reader.verdict();
  if (verdict.kind == Verdict::Kind::kGone || m_bytes.isCut()) return;
  if (!verdict.ok() && !isAnswered()) m_writer.writeError(verdict.status);
  m_bytes.shutdownWrite();
  m_reader.linger();
}

// ---- Responses. -------------------------------------------------------------------------------------------------------------

bool HttpSession::answering(HttpResponse& response) {
  if (isAnswered() || m_request == nullptr) {
    errno = EALREADY;
    return false;
  }
  if (m_bytes.isEnding() || m_reader.requests() >= m_limits.max_requests) response.setClose(true);
  return true;
}

bool HttpSession::send(HttpResponse& response) {
  if (!answering(response)) return false;
  m_reader.answerBegun();
  return m_writer.write(*m_request, response);
}

int HttpSession::sendResponse(HttpResponse::ptr response) { return send(*response) ? 1 : -1; }

bool HttpSession::beginResponse(const HttpResponse::ptr& response, std::optional<uint64_t> length) {
  if (!answering(*response)) return false;
  m_open_body = m_reader.openBody() && m_writer.begin(*m_request, *response, length);
  return m_open_body;
}

bool HttpSession::endResponse() {
  const bool open = std::exchange(m_open_body, false);
  if (m_writer.end()) return true;
  if (open) m_bytes.cut();
  return false;
}

void HttpSession::complete(const HttpResponse::ptr& response) {
  const bool ok = m_reader.verdict().ok();
  if (!isAnswered() && ok && !send(*response) && !isAnswered()) fail(HttpStatus::INTERNAL_SERVER_ERROR);
  if (m_open_body && ok) endResponse();
  if (m_open_body) m_bytes.cut();
}

void HttpSession::fail(HttpStatus status) {
  m_failed = true;
  if (m_open_body) m_bytes.cut();
  if (!isAnswered() && m_request != nullptr) m_writer.writeError(status);
}

}  // namespace sylar::http
