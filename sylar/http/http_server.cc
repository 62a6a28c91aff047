#include "sylar/http/http_server.h"

#include <cxxabi.h>

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "sylar/base/check.h"
#include "sylar/base/log.h"
#include "sylar/http/http_error.h"
#include "sylar/http/recycled.h"

namespace sylar::http {

/// A session that endClient() finds. One that begins after the server has stopped says so in its answer.
class HttpServer::Listed {
 public:
  Listed(HttpServer& server, const Socket::ptr& client, HttpSession& session) : m_server(server), m_client(client.get()) {
    {
      const Lock lock(m_server.m_mutex);
      m_server.m_sessions[m_client] = &session;
    }
    if (m_server.isStop()) session.end();
  }
  ~Listed() {
    const Lock lock(m_server.m_mutex);
    m_server.m_sessions.erase(m_client);
  }
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;

 private:
  HttpServer& m_server;
  const Socket* const m_client;
};

HttpServer::HttpServer(bool keepalive, IOManager* worker, IOManager* io_worker, IOManager* accept_worker)
    : TcpServer(worker, io_worker, accept_worker), m_keepalive(keepalive), m_dispatch(std::make_shared<ServletDispatch>()) {
  setRecvTimeout(0);
  setHttpLimits({});
}

ServletDispatch::ptr HttpServer::getServletDispatch() const {
  const Lock lock(m_mutex);
  return m_dispatch;
}

void HttpServer::setServletDispatch(ServletDispatch::ptr dispatch) {
  SYLAR_CHECK(dispatch != nullptr);
  const Lock lock(m_mutex);
  m_dispatch.swap(dispatch);
}

void HttpServer::setHttpLimits(const HttpLimits& limits) {
  m_http_limits = limits;
  if (!m_keepalive) m_http_limits.max_requests = 1;
}

void HttpServer::endClient(Socket::ptr client) {
  const Lock lock(m_mutex);
  if (const auto found = m_sessions.find(client.get()); found != m_sessions.end()) {
    found->second->end();
  } else {
    client->shutdown(SHUT_RD);  // its session has not begun, and finds the end, even if the server starts again before
  }
}

void HttpServer::handleClient(Socket::ptr client) {
  const auto session = std::make_shared<HttpSession>(client, false, m_http_limits);
  const Listed listed(*this, client, *session);
  const ServletDispatch::ptr dispatch = getServletDispatch();
  while (HttpRequest::ptr request = session->recvHead()) {
    const HttpResponse::ptr response = Recycled<HttpResponse>::take();
    response->setVersion(request->getVersion());
    response->setClose(request->isClose());
    answer(*dispatch, std::move(request), response, session);
  }
}

// The request is only passed on: the session keeps it, and a copy less is two atomic counts less.
void HttpServer::answer(ServletDispatch& dispatch, HttpRequest::ptr request, const HttpResponse::ptr& response,
                        const HttpSession::ptr& session) const {
  HttpStatus failure;
  try {
    const bool concerns_server = request->getMethod() == HttpMethod::OPTIONS && request->getPath() == "*";
    if (!concerns_server) dispatch.handle(std::move(request), response, session);
    session->complete(response);
    return;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (const HttpError& error) {
    failure = error.status();
  } catch (const std::bad_alloc&) {
    failure = HttpStatus::SERVICE_UNAVAILABLE;
    failed(session->request(), "out of memory");
  } catch (const std::exception& exception) {
    failure = HttpStatus::INTERNAL_SERVER_ERROR;
    failed(session->request(), exception.what());
  } catch (...) {
    failure = HttpStatus::INTERNAL_SERVER_ERROR;
    failed(session->request(), "an exception of unknown type");
  }
  session->fail(failure);
}

void HttpServer::failed(const HttpRequest* request, const char* what) const {
  log::error("sylar: {}: the handler of {:.200} failed: {}", getName(),
             request == nullptr ? std::string_view("no request") : request->getPath(), what);
}

}  // namespace sylar::http
