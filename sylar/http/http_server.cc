#include "sylar/http/http_server.h"

#include <cxxabi.h>

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/os_mutex.h"
#include "sylar/check.h"
#include "sylar/hook/thread/identity.h"
#include "sylar/http/http_error.h"
#include "sylar/http/http_shared.h"
#include "sylar/http/object_pool.h"
#include "sylar/http/session_control.h"
#include "sylar/http/session_state.h"
#include "sylar/http/socket_bytes.h"

namespace sylar::http {

struct HttpServer::Impl {
  explicit Impl(bool keeps_alive) : keepalive(keeps_alive) {}

  const bool keepalive;
  std::shared_ptr<const HttpShared> shared = std::make_shared<const HttpShared>();
  OsMutex mutex;
  ServletDispatch::ptr dispatch SYLAR_GUARDED_BY(mutex) = std::make_shared<ServletDispatch>();
};

namespace {

void logFailure(const HttpServer& server, const HttpSession& session, const char* what) {
  const HttpRequest* const request = SessionControl::request(session);
  log::error("sylar: {}: the handler of {:.200} failed: {}", server.getName(),
             request == nullptr ? std::string_view("no request") : request->getPath(), what);
}

// Passes the request on by moving the pointer, since the session keeps it. A copy would cost two atomic counts.
[[gnu::always_inline]] inline void answer(const HttpServer& server, ServletDispatch& dispatch, HttpRequest::ptr request,
                                          const HttpResponse::ptr& response, const HttpSession::ptr& session) {
  HttpStatus failure;
  try {
    const bool concerns_server = request->getMethod() == HttpMethod::OPTIONS && request->getPath() == "*";
    if (!concerns_server) dispatch.handle(std::move(request), response, session);
    SessionControl::complete(*session, *response);
    return;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (const HttpError& error) {
    failure = error.status();
  } catch (const std::bad_alloc&) {
    failure = HttpStatus::SERVICE_UNAVAILABLE;
    logFailure(server, *session, "out of memory");
  } catch (const std::exception& exception) {
    failure = HttpStatus::INTERNAL_SERVER_ERROR;
    logFailure(server, *session, exception.what());
  } catch (...) {
    failure = HttpStatus::INTERNAL_SERVER_ERROR;
    logFailure(server, *session, "an exception of unknown type");
  }
  SessionControl::fail(*session, failure);
}

/// Answers as a thread that the connection borrows for it. Returns false if the handler has ended that thread by pthread_exit.
bool answerAsThread(const HttpServer& server, ServletDispatch& dispatch, HttpRequest::ptr request,
                    const HttpResponse::ptr& response, const HttpSession::ptr& session) {
  bool over = false;
  try {
    sylar::detail::asBorrowedThread([&] {
      answer(server, dispatch, std::move(request), response, session);
      over = true;
    });
    return over;
  } catch (const std::bad_alloc&) {
    logFailure(server, *session, "there is no thread for it");
    SessionControl::fail(*session, HttpStatus::SERVICE_UNAVAILABLE);
    return true;
  }
}

}  // namespace

HttpServer::HttpServer(bool keepalive, IOManager* worker, IOManager* io_worker, IOManager* accept_worker)
    : TcpServer(worker, io_worker, accept_worker), m_impl(std::make_unique<Impl>(keepalive)) {
  setRecvTimeout(0);
  setIdentity(FiberIdentity::kWorker);
  setHttpLimits({});
}

HttpServer::~HttpServer() = default;

bool HttpServer::start() {
  m_impl->shared->totals->limit_loopback.store(getLimits().limit_loopback, std::memory_order_relaxed);
  return TcpServer::start();
}

ServletDispatch::ptr HttpServer::getServletDispatch() const {
  const Lock lock(m_impl->mutex);
  return m_impl->dispatch;
}

void HttpServer::setServletDispatch(ServletDispatch::ptr dispatch) {
  SYLAR_CHECK(dispatch != nullptr);
  const Lock lock(m_impl->mutex);
  m_impl->dispatch.swap(dispatch);
}

void HttpServer::setHttpLimits(const HttpLimits& limits) {
  HttpShared shared{.limits = limits, .totals = m_impl->shared->totals};
  if (!m_impl->keepalive) shared.limits.max_requests = 1;
  m_impl->shared = std::make_shared<const HttpShared>(std::move(shared));
}

const HttpLimits& HttpServer::getHttpLimits() const { return m_impl->shared->limits; }

std::map<HttpStatus, uint64_t> HttpServer::getRefusals() const { return m_impl->shared->totals->refusals(); }

uint64_t HttpServer::getBodyBytes() const { return m_impl->shared->totals->bodyBytes(); }

void HttpServer::endClient(Socket::ptr client) { SocketBytes::end(*client); }

/// The handlers run as threads of their own, and the connection as its worker, so while it waits it has only its own small stack.
void HttpServer::handleClient(Socket::ptr client) {
  ServedSession served(std::move(client), m_impl->shared);
  const HttpSession::ptr& session = served.get();
  const ServletDispatch::ptr dispatch = getServletDispatch();
  while (HttpRequest::ptr request = session->recvHead()) {
    const HttpResponse::ptr response = ObjectPool<HttpResponse>::take();
    response->setVersion(request->getVersion());
    response->setClose(request->isClose());
    if (!sylar::detail::threadsAreLent()) {
      answer(*this, *dispatch, std::move(request), response, session);
    } else if (!answerAsThread(*this, *dispatch, std::move(request), response, session)) {
      return;
    }
  }
}

}  // namespace sylar::http
