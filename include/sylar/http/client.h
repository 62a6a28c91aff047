// A client of HTTP, in ordinary blocking calls.
//
//   sylar::http::Client client;
//   const auto answer = client.get("https://example.org/");
//   if (answer.status == sylar::http::HttpStatus::OK) use(answer.body);
//
// An answer of any status is an answer. Whatever keeps one from coming is a ClientError, whose kind() says what it was.
//
// Connections are kept, and used again for requests to the same origin. A certificate that is not the host's, or that nobody
// vouches for, is refused. The environment names no proxy unless it is asked to.
//
// A program that links sylar::client has it; it brings libcurl, none of which shows here.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "sylar/api.h"
#include "sylar/http/field_list.h"
#include "sylar/http/http_names.h"

namespace sylar::http {

struct ClientOptions {
  std::chrono::milliseconds timeout{30'000};         ///< of a whole request with its redirects; above 0
  std::chrono::milliseconds connect_timeout{5'000};  ///< for name, connection and handshake; above 0
  unsigned max_redirects = 10;                       ///< 0: a redirect is the answer
  size_t max_body = size_t{16} << 20;                ///< bytes of an answer's body, after decompression
  size_t max_head = size_t{64} << 10;                ///< bytes of an answer's head, at most 300 000
  bool verify = true;                                ///< checks certificate and name of the server
  std::string ca_file{};                             ///< PEM: who may have signed it; "" is the system's list
  std::string proxy{};                               ///< such as "http://proxy:3128"; "" is none
  bool proxy_from_environment = false;               ///< takes http_proxy, https_proxy and no_proxy, if `proxy` is ""
  size_t max_idle = 64;                              ///< connections that are kept, over all origins
  std::chrono::milliseconds max_idle_time{90'000};   ///< how long one is kept; it is closed at the next request
};

struct ClientRequest {
  HttpMethod method = HttpMethod::GET;
  std::string url;      ///< http or https
  FieldList headers{};  ///< content-length and transfer-encoding are the client's to send
  std::string body{};
  std::optional<std::chrono::milliseconds> timeout = {};  ///< instead of that of the options
};

struct ClientResponse {
  HttpStatus status = HttpStatus::OK;
  FieldList headers{};  ///< of the last answer, behind redirects
  std::string body{};   ///< decompressed
  std::string url{};    ///< that has answered, behind redirects
};

/// Says why there is no answer.
class SYLAR_API ClientError : public std::runtime_error {
 public:
  enum class Kind : uint8_t {
    kInvalid,    ///< the request cannot be sent: no URL of http or https, or a body in a request that has none
    kTimeout,    ///< the timeout, or the deadline of the fiber (withDeadline), has passed
    kCancelled,  ///< the fiber was cancelled
    kResolve,    ///< the name has no address
    kConnect,    ///< nobody listens there
    kTls,        ///< the server cannot be trusted, or speaks no TLS
    kProtocol,   ///< the answer is cut off, malformed, or a redirect too many
    kTooLarge,   ///< the answer is beyond max_body or max_head
  };

  ClientError(Kind kind, const std::string& what) : std::runtime_error(what), m_kind(kind) {}
  Kind kind() const { return m_kind; }

 private:
  Kind m_kind;
};
/// Returns the name of a kind, such as "timeout".
SYLAR_API const char* nameOf(ClientError::Kind kind);

/// Thread safety: all calls from any fiber or thread. Requests are made beside one another, each on a connection of its own.
class SYLAR_API Client {
 public:
  /// Throws std::invalid_argument if an option has a wrong value.
  explicit Client(ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Makes a request, and returns its answer. Throws ClientError and std::bad_alloc. May suspend: yes. A plain thread blocks.
  ///
  /// A redirect is followed with the same method and body (307, 308), or by GET (301 and 302 after a POST, 303). Authorization, the
  /// login of a URL, cookies and a host of the caller's are not sent to another origin.
  ///
  /// If a kept connection turns out to be closed, the request is made again on a new one. A request that may not be made twice (RFC
  /// 9110, 9.2.2), and has no idempotency-key, gets a new connection from the beginning.
  ClientResponse request(const ClientRequest& request);
  ClientResponse get(std::string_view url);
  ClientResponse post(std::string_view url, std::string_view body, std::string_view content_type);

 private:
  struct Impl;
  std::unique_ptr<Impl> m_impl;
};

}  // namespace sylar::http
