#include "sylar/http/http_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sylar/client/url.h"
#include "sylar/http/client.h"

namespace sylar::http {
namespace {

using Error = HttpResult::Error;
using Kind = ClientError::Kind;

Error errorOf(Kind kind) {
  switch (kind) {
    case Kind::kInvalid: return Error::INVALID_URL;
    case Kind::kTimeout: return Error::TIMEOUT;
    case Kind::kResolve: return Error::INVALID_HOST;
    case Kind::kConnect:
    case Kind::kTls: return Error::CONNECT_FAIL;
    case Kind::kTooLarge: return Error::SEND_SOCKET_ERROR;
    case Kind::kCancelled:
    case Kind::kProtocol: break;
  }
  return Error::SEND_CLOSE_BY_PEER;
}

HttpResult::ptr resultOf(Error error, HttpResponse::ptr response, const std::string& text) {
  return std::make_shared<HttpResult>(static_cast<int>(error), std::move(response), text);
}

HttpResult::ptr ask(Client& client, HttpMethod method, const std::string& url, uint64_t timeout_ms,
                    const HttpResult::Headers& headers, const std::string& body, const std::string& host = "") {
  constexpr uint64_t kLongestMs = uint64_t{24} * 3600 * 1000;
  ClientRequest request{.method = method, .url = url, .body = body};
  for (const auto& [name, value] : headers) request.headers.set(name, value);
  if (!host.empty()) request.headers.set("host", host);
  if (timeout_ms == 0) return resultOf(Error::TIMEOUT, nullptr, "no time is left");
  request.timeout = std::chrono::milliseconds(std::min(timeout_ms, kLongestMs));
  try {
    ClientResponse answer = client.request(request);
    const auto response = std::make_shared<HttpResponse>();
    response->setStatus(answer.status);
    for (size_t i = 0; i < answer.headers.size(); ++i)
      response->headerList().add(answer.headers[i].name, answer.headers[i].value);
    response->setBody(std::move(answer.body));
    return resultOf(Error::OK, response, "ok");
  } catch (const ClientError& error) {
    return resultOf(errorOf(error.kind()), nullptr, error.what());
  }
}

Client& processClient() {
  static Client& s_client = *new Client;  // for as long as anybody asks
  return s_client;
}

}  // namespace

std::string HttpResult::toString() const {
  return fmt::format("[HttpResult result={} error={} response={}]", result, error,
                     response != nullptr ? response->toString() : "nullptr");
}

HttpResult::ptr HttpConnection::DoGet(const std::string& url, uint64_t timeout_ms, const HttpResult::Headers& headers,
                                      const std::string& body) {
  return DoRequest(HttpMethod::GET, url, timeout_ms, headers, body);
}
HttpResult::ptr HttpConnection::DoPost(const std::string& url, uint64_t timeout_ms, const HttpResult::Headers& headers,
                                       const std::string& body) {
  return DoRequest(HttpMethod::POST, url, timeout_ms, headers, body);
}
HttpResult::ptr HttpConnection::DoRequest(HttpMethod method, const std::string& url, uint64_t timeout_ms,
                                          const HttpResult::Headers& headers, const std::string& body) {
  return ask(processClient(), method, url, timeout_ms, headers, body);
}

struct HttpConnectionPool::Impl {
  const std::string origin;
  const std::string vhost;
  Client client;
};

HttpConnectionPool::HttpConnectionPool(std::string origin, const std::string& vhost, uint32_t max_size, uint32_t max_alive_time)
    : m_impl(new Impl{
          std::move(origin), vhost,
          Client({.max_idle = max_size, .max_idle_time = std::chrono::milliseconds(std::max<uint32_t>(max_alive_time, 1))})}) {}
HttpConnectionPool::HttpConnectionPool(const std::string& host, const std::string& vhost, uint32_t port, bool is_https,
                                       uint32_t max_size, uint32_t max_alive_time, uint32_t /*max_request*/)
    : HttpConnectionPool(fmt::format("{}://{}:{}", is_https ? "https" : "http", host, port != 0 ? port : (is_https ? 443u : 80u)),
                         vhost, max_size, max_alive_time) {}
HttpConnectionPool::~HttpConnectionPool() = default;

HttpConnectionPool::ptr HttpConnectionPool::Create(const std::string& uri, const std::string& vhost, uint32_t max_size,
                                                   uint32_t max_alive_time, uint32_t /*max_request*/) {
  try {
    return ptr(new HttpConnectionPool(detail::Url(uri).origin(), vhost, max_size, max_alive_time));
  } catch (const ClientError&) {
    return nullptr;
  }
}

HttpResult::ptr HttpConnectionPool::doGet(const std::string& url, uint64_t timeout_ms, const HttpResult::Headers& headers,
                                          const std::string& body) {
  return doRequest(HttpMethod::GET, url, timeout_ms, headers, body);
}
HttpResult::ptr HttpConnectionPool::doPost(const std::string& url, uint64_t timeout_ms, const HttpResult::Headers& headers,
                                           const std::string& body) {
  return doRequest(HttpMethod::POST, url, timeout_ms, headers, body);
}
HttpResult::ptr HttpConnectionPool::doRequest(HttpMethod method, const std::string& url, uint64_t timeout_ms,
                                              const HttpResult::Headers& headers, const std::string& body) {
  const std::string path = url.starts_with('/') ? url : '/' + url;
  return ask(m_impl->client, method, m_impl->origin + path, timeout_ms, headers, body, m_impl->vhost);
}

}  // namespace sylar::http
