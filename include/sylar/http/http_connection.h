// sylar's calls of the HTTP client, on top of Client (sylar/http/client.h), which new code should use.
//
//   auto result = sylar::http::HttpConnection::DoGet("http://example.org/", 1000);
//   if (result->result == 0) use(result->response->getBody());
//
// An answer of any status is result 0. Unlike sylar's, these calls follow redirects, check certificates, and keep connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "sylar/api.h"
#include "sylar/http/http.h"

namespace sylar::http {

/// The end of a request: an answer, or why there is none.
struct SYLAR_API HttpResult {
  using ptr = std::shared_ptr<HttpResult>;
  using Headers = std::map<std::string, std::string>;

  /// sylar's numbers. Those of its sockets and of its pool never come.
  enum class Error {
    OK = 0,
    INVALID_URL = 1,
    INVALID_HOST = 2,        ///< its name has no address
    CONNECT_FAIL = 3,        ///< nobody listens there, or the server cannot be trusted
    SEND_CLOSE_BY_PEER = 4,  ///< the answer is cut off or malformed, or the fiber was cancelled
    SEND_SOCKET_ERROR = 5,   ///< the answer is too large
    TIMEOUT = 6,
    CREATE_SOCKET_ERROR = 7,
    POOL_GET_CONNECTION = 8,
    POOL_INVALID_CONNECTION = 9,
  };

  HttpResult(int number, HttpResponse::ptr answer, std::string text)
      : result(number), response(std::move(answer)), error(std::move(text)) {}

  int result;                  ///< an Error
  HttpResponse::ptr response;  ///< null unless `result` is 0
  std::string error;
  std::string toString() const;
};

/// Requests by the process's own client. Thread safety: all calls from any fiber or thread. Throws std::bad_alloc, and
/// std::invalid_argument for a header that is none. May suspend: yes.
class SYLAR_API HttpConnection {
 public:
  static HttpResult::ptr DoGet(const std::string& url, uint64_t timeout_ms, const HttpResult::Headers& headers = {},
                               const std::string& body = "");
  static HttpResult::ptr DoPost(const std::string& url, uint64_t timeout_ms, const HttpResult::Headers& headers = {},
                                const std::string& body = "");
  static HttpResult::ptr DoRequest(HttpMethod method, const std::string& url, uint64_t timeout_ms,
                                   const HttpResult::Headers& headers = {}, const std::string& body = "");
};

/// Requests to one server, whose connections it keeps. Thread safety: all calls from any fiber or thread. Throws as HttpConnection.
class SYLAR_API HttpConnectionPool {
 public:
  using ptr = std::shared_ptr<HttpConnectionPool>;

  /// `vhost` is sent as the host if it is not "". Keeps at most `max_size` connections, each for at most `max_alive_time` ms.
  /// `max_request`, how many requests a connection is used for, has no effect.
  HttpConnectionPool(const std::string& host, const std::string& vhost, uint32_t port, bool is_https, uint32_t max_size,
                     uint32_t max_alive_time, uint32_t max_request);
  /// Returns null if `uri` is none of http or https.
  static ptr Create(const std::string& uri, const std::string& vhost, uint32_t max_size, uint32_t max_alive_time,
                    uint32_t max_request);
  ~HttpConnectionPool();
  HttpConnectionPool(const HttpConnectionPool&) = delete;
  HttpConnectionPool& operator=(const HttpConnectionPool&) = delete;

  /// `url` is a path with its query.
  HttpResult::ptr doGet(const std::string& url, uint64_t timeout_ms, const HttpResult::Headers& headers = {},
                        const std::string& body = "");
  HttpResult::ptr doPost(const std::string& url, uint64_t timeout_ms, const HttpResult::Headers& headers = {},
                         const std::string& body = "");
  HttpResult::ptr doRequest(HttpMethod method, const std::string& url, uint64_t timeout_ms,
                            const HttpResult::Headers& headers = {}, const std::string& body = "");

 private:
  struct Impl;
  HttpConnectionPool(std::string origin, const std::string& vhost, uint32_t max_size, uint32_t max_alive_time);

  const std::unique_ptr<Impl> m_impl;
};

}  // namespace sylar::http
