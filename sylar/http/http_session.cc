#include "sylar/http/http_session.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/check.h"
#include "sylar/fiber.h"
#include "sylar/http/http_shared.h"
#include "sylar/http/object_pool.h"
#include "sylar/http/session_control.h"
#include "sylar/http/session_state.h"
#include "sylar/sched/park.h"

namespace sylar::http {

namespace {

std::shared_ptr<const HttpShared> sharedByDefault() {
  static const auto shared = std::make_shared<const HttpShared>();
  return shared;
}

}  // namespace

HttpSession::State::State(Socket& socket, std::shared_ptr<const HttpShared> of_server)
    : shared(std::move(of_server)),
      bytes(socket, shared->limits),
      reader(bytes, bytes, shared->limits, mayPark() ? waitClock() : steadyClock()),
      writer(bytes),
      request(ObjectPool<HttpRequest>::take()),
      body_share(*shared, socket) {}

// A client that has sent its next requests already is answered as long as they are here, but only for a while.
bool HttpSession::State::isLast() {
  if (reader.requests() >= shared->limits.max_requests) return true;
  if (!bytes.isEnding()) return false;
  const Clock& clock = mayPark() ? waitClock() : steadyClock();
  if (last_by.isNever()) last_by = Deadline::after(shared->limits.kept_grace, clock);
  return (reader.buffered().empty() && !bytes.hasUnread()) || clock.nowNs() >= last_by.ns();
}

// ---- Making one. ------------------------------------------------------------------------------------------------------------

HttpSession::HttpSession(Socket::ptr sock, bool owner)
    : SocketStream(std::move(sock), owner),
      m_own_state(std::make_unique<State>(*m_socket, sharedByDefault())),
      m_state(m_own_state.get()) {}

HttpSession::HttpSession(Socket::ptr sock, bool owner, const HttpLimits& limits)
    : SocketStream(std::move(sock), owner),
      m_own_state(std::make_unique<State>(*m_socket, std::make_shared<const HttpShared>(HttpShared{.limits = limits}))),
      m_state(m_own_state.get()) {}

HttpSession::HttpSession(Socket::ptr sock, State& of_server) : SocketStream(std::move(sock), false), m_state(&of_server) {}

HttpSession::~HttpSession() = default;

HttpRequest::ptr HttpSession::recvRequest() {
  HttpRequest::ptr request = recvHead();
  if (request == nullptr || collectBody()) return request;
  recvHead();
  return nullptr;
}

HttpRequest::ptr HttpSession::recvHead() {
  if (m_state == nullptr || m_state->over) return nullptr;
  // A request that is already buffered costs no call, so let others run now and then. (The hooked calls do so
  // themselves.)
  constexpr uint64_t kRequestsInARow = 16;
  if (m_state->reader.requests() % kRequestsInARow == kRequestsInARow - 1 && !m_state->reader.buffered().empty())
    Fiber::YieldToReady();
  m_state->request = nullptr;
  m_state->body_share.release();
  if (mayGoOn()) {
    m_state->writer.startRequest();
    const HttpLimits& limits = m_state->shared->limits;
    if (m_state->reader.buffered().empty())
      m_state->bytes.awaitsRequest(m_state->reader.requests() == 0 ? limits.new_grace : limits.kept_grace);
    if (m_state->reader.awaitRequest()) {
      HttpRequest::ptr request = ObjectPool<HttpRequest>::take();
      if (m_state->reader.readAwaited(*request).ok()) return m_state->request = std::move(request);
    }
  }
  finish();
  return nullptr;
}

void HttpSession::setMaxBody(uint64_t bytes) {
  if (m_state != nullptr) m_state->reader.setMaxBody(bytes);
}

ssize_t HttpSession::readBody(void* buffer, size_t size) {
  return m_state != nullptr ? m_state->reader.readBodySome(static_cast<char*>(buffer), size) : -1;
}

bool HttpSession::mayGoOn() { return !m_state->failed && m_state->writer.isKeepAlive() && m_state->reader.finishBody(); }

int HttpSession::read(void* buffer, size_t size) {
  if (size == 0) return 0;
  if (m_state == nullptr) {
    errno = ECONNRESET;
    return -1;
  }
  if (m_state->switched && m_state->reader.verdict().ok()) {
    const size_t count = m_state->reader.takeBuffered(static_cast<char*>(buffer), size);
    return count > 0 ? static_cast<int>(count) : SocketStream::read(buffer, size);
  }
  const ssize_t count = readBody(buffer, std::min<size_t>(size, INT_MAX));
  if (count < 0) errno = m_state->reader.verdict().kind == Verdict::Kind::kRefused ? EPROTO : ECONNRESET;
  return static_cast<int>(count);
}

bool HttpSession::collectBody() {
  return m_state != nullptr && m_state->request != nullptr &&
         m_state->reader.readBody(*m_state->request, &m_state->body_share).ok();
}

void HttpSession::refuse() {
  const Verdict& verdict = m_state->reader.verdict();
  m_state->shared->totals->countRefusal(verdict.status);
  if (log::enabled(log::Level::kDebug)) {
    log::debug("http: a request of {} is refused: {} {}: {}", getRemoteAddressString(), static_cast<unsigned>(verdict.status),
               HttpStatusToString(verdict.status), verdict.why);
  }
  m_state->writer.writeError(verdict.status);
}

// The peer may still be sending, whatever it has promised. A close would answer that with a reset, which may overtake the
// response. So the peer is told the end first, and what it sends is discarded for a while. Source: RFC 9112 section 9.6.
void HttpSession::finish() {
  m_state->over = true;
  const Verdict& verdict = m_state->reader.verdict();
  if (verdict.kind == Verdict::Kind::kGone || m_state->bytes.isCut()) return;
  if (verdict.kind == Verdict::Kind::kRefused && !isAnswered()) refuse();
  m_state->bytes.shutdownWrite();
  m_state->reader.linger();
}

// ---- Responses. -------------------------------------------------------------------------------------------------------------

bool HttpSession::isAnswered() const { return m_state != nullptr && m_state->writer.isStarted(); }

bool HttpSession::answering(HttpResponse& response) {
  if (m_state == nullptr || isAnswered() || m_state->request == nullptr) {
    errno = EALREADY;
    return false;
  }
  if (!ResponseWriter::canSend(response.getStatus())) return refuseStatus(response);
  if (m_state->isLast()) response.setClose(true);
  return true;
}

bool HttpSession::refuseStatus(const HttpResponse& response) {
  log::error("http: the response to {:.200} has the status {}, which is none: 500 is sent", m_state->request->getPath(),
             static_cast<unsigned>(response.getStatus()));
  SessionControl::fail(*this, HttpStatus::INTERNAL_SERVER_ERROR);
  errno = EPROTO;
  return false;
}

bool HttpSession::send(HttpResponse& response) {
  if (!answering(response)) return false;
  m_state->reader.answerBegun();
  if (!m_state->writer.write(*m_state->request, response)) return false;
  if (response.getStatus() == HttpStatus::SWITCHING_PROTOCOLS) switchProtocol();
  return true;
}

// The rest of the body belongs to neither protocol, so it is discarded.
void HttpSession::switchProtocol() {
  m_state->switched = true;
  m_state->reader.finishBody();
  m_socket->setRecvTimeout(std::chrono::ceil<std::chrono::milliseconds>(m_state->shared->limits.idle_timeout).count());
}

int HttpSession::sendResponse(HttpResponse::ptr response) { return send(*response) ? 1 : -1; }

bool HttpSession::beginResponse(const HttpResponse::ptr& response, std::optional<uint64_t> length) {
  if (!answering(*response)) return false;
  m_state->open_body = m_state->reader.openBody() && m_state->writer.begin(*m_state->request, *response, length);
  if (m_state->open_body && response->getStatus() == HttpStatus::SWITCHING_PROTOCOLS) switchProtocol();
  return m_state->open_body;
}

bool HttpSession::writeBody(std::string_view piece) {
  if (m_state != nullptr) return m_state->writer.writePiece(piece);
  errno = EPROTO;
  return false;
}

bool HttpSession::endResponse() {
  if (m_state == nullptr) {
    errno = EPROTO;
    return false;
  }
  const bool open = std::exchange(m_state->open_body, false);
  if (m_state->writer.end()) return true;
  if (open) m_state->bytes.abort();
  return false;
}

// ---- The end. ---------------------------------------------------------------------------------------------------------------

void HttpSession::end() { SocketBytes::end(*m_socket); }

// ---- The server's calls. ----------------------------------------------------------------------------------------------------

ServedSession::ServedSession(Socket::ptr socket, std::shared_ptr<const HttpShared> shared)
    : m_session(make(std::move(socket), m_state)), m_state(*m_session->m_socket, std::move(shared)) {}

/// Makes a session whose `state` is yet to be made.
HttpSession::ptr ServedSession::make(Socket::ptr socket, HttpSession::State& state) {
  struct Made {
    Made(Socket::ptr of, HttpSession::State& its) : session(std::move(of), its) {}
    HttpSession session;
  };
  auto made = std::make_shared<Made>(std::move(socket), state);
  HttpSession* const session = &made->session;
  return {std::move(made), session};
}

const HttpRequest* SessionControl::request(const HttpSession& session) { return session.m_state->request.get(); }

RouteCache SessionControl::takeRoutes(HttpSession& session) {
  return session.m_state == nullptr ? RouteCache{} : std::exchange(session.m_state->routes, {});
}

void SessionControl::keepRoutes(HttpSession& session, RouteCache&& routes) {
  if (session.m_state != nullptr) session.m_state->routes = std::move(routes);
}

// The waits of a cancelled fiber have ended early, so its handler may have filled the response from work that was not done.
void SessionControl::complete(HttpSession& session, HttpResponse& response) {
  const HttpSession::State& state = *session.m_state;
  const bool ok = state.reader.verdict().ok();
  if (ok && this_fiber::cancelled()) return fail(session, HttpStatus::SERVICE_UNAVAILABLE);
  if (!session.isAnswered() && ok && !session.send(response) && !session.isAnswered()) {
    fail(session, HttpStatus::INTERNAL_SERVER_ERROR);
  }
  if (state.open_body && ok) session.endResponse();
  if (state.open_body) session.m_state->bytes.abort();
}

void SessionControl::fail(HttpSession& session, HttpStatus status) {
  HttpSession::State& state = *session.m_state;
  state.failed = true;
  if (state.open_body) state.bytes.abort();
  if (!session.isAnswered() && state.request != nullptr) state.writer.writeError(status);
}

}  // namespace sylar::http
