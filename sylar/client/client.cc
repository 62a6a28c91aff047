#include "sylar/http/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <list>
#include <new>
#include <utility>

#include "sylar/base/os_mutex.h"
#include "sylar/client/transfer.h"
#include "sylar/client/url.h"
#include "sylar/clock.h"
#include "sylar/fiber.h"

namespace sylar::http {

using Kind = ClientError::Kind;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

/// Handles of libcurl's with their connections, the one that was used last first.
class IdleHandles {
 public:
  explicit IdleHandles(const ClientOptions& options) : m_options(options) {}

  /// Returns one that has a connection to `origin`, or a new one.
  detail::CurlPtr take(const std::string& origin) {
    std::list<Idle> gone;  // closed without the lock
    {
      const Lock lock(m_lock);
      dropOld(gone);
      const auto found = std::ranges::find(m_all, origin, &Idle::origin);
      if (found != m_all.end()) {
        detail::CurlPtr handle = std::move(found->handle);
        gone.splice(gone.end(), m_all, found);
        return handle;
      }
    }
    detail::CurlPtr made(::curl_easy_init());
    if (made == nullptr) throw std::bad_alloc();
    return made;
  }
  void put(const std::string& origin, detail::CurlPtr handle) {
    std::list<Idle> mine, gone;
    mine.push_back({origin, std::move(handle), steadyClock().nowNs()});
    const Lock lock(m_lock);
    m_all.splice(m_all.begin(), mine);
    dropOld(gone);
    if (m_all.size() > m_options.max_idle)
      gone.splice(gone.end(), m_all, std::next(m_all.begin(), static_cast<ptrdiff_t>(m_options.max_idle)), m_all.end());
  }

 private:
  struct Idle {
    std::string origin;
    detail::CurlPtr handle;
    int64_t since_ns;
  };

  void dropOld(std::list<Idle>& gone) SYLAR_REQUIRES(m_lock) {
    const int64_t oldest = steadyClock().nowNs() - nanoseconds(m_options.max_idle_time).count();
    while (!m_all.empty() && m_all.back().since_ns < oldest) gone.splice(gone.end(), m_all, std::prev(m_all.end()));
  }

  const ClientOptions& m_options;
  OsMutex m_lock;
  std::list<Idle> m_all SYLAR_GUARDED_BY(m_lock);
};

bool isRedirect(HttpStatus status) {
  switch (static_cast<int>(status)) {
    case 301:
    case 302:
    case 303:
    case 307:
    case 308: return true;
    default: return false;
  }
}

/// Returns true if a redirect with this status is followed by GET.
bool becomesGet(HttpStatus status, HttpMethod method) {
  if (method == HttpMethod::GET || method == HttpMethod::HEAD) return false;
  const auto code = static_cast<int>(status);
  return code == 303 || ((code == 301 || code == 302) && method == HttpMethod::POST);
}

constexpr milliseconds kLongest = std::chrono::hours(24 * 365);
constexpr size_t kMostHead = 300'000;  // libcurl takes no more

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("sylar: http::ClientOptions: ") + what);
}

}  // namespace

const char* nameOf(ClientError::Kind kind) {
  switch (kind) {
    case Kind::kInvalid: return "invalid";
    case Kind::kTimeout: return "timeout";
    case Kind::kCancelled: return "cancelled";
    case Kind::kResolve: return "resolve";
    case Kind::kConnect: return "connect";
    case Kind::kTls: return "tls";
    case Kind::kProtocol: return "protocol";
    case Kind::kTooLarge: return "too large";
  }
  return "<unknown>";
}

struct Client::Impl {
  explicit Impl(ClientOptions its_options) : options(std::move(its_options)), idle(options) {}

  const ClientOptions options;
  IdleHandles idle;
};

Client::Client(ClientOptions options) {
  require(options.timeout.count() > 0, "timeout must be above 0");
  require(options.connect_timeout.count() > 0, "connect_timeout must be above 0");
  require(options.max_idle_time.count() >= 0, "max_idle_time must not be negative");
  require(options.max_head <= kMostHead, "max_head must be at most 300 000");
  for (milliseconds* const time : {&options.timeout, &options.connect_timeout, &options.max_idle_time})
    *time = std::min<milliseconds>(*time, kLongest);
  m_impl = std::make_unique<Impl>(std::move(options));
}
Client::~Client() = default;

ClientResponse Client::request(const ClientRequest& request) {
  const ClientOptions& options = m_impl->options;
  const Deadline deadline = Deadline::after(std::min<milliseconds>(request.timeout.value_or(options.timeout), kLongest));
  detail::Url url(request.url);
  std::optional<detail::Login> login = url.login();
  HttpMethod method = request.method;
  FieldList headers = request.headers;
  for (const char* const name : {"content-length", "transfer-encoding"})
    if (headers.find(name)) throw ClientError(Kind::kInvalid, fmt::format("{} is the client's to send", name));
  bool has_body = !request.body.empty() || method == HttpMethod::POST || method == HttpMethod::PUT || method == HttpMethod::PATCH;
  if (has_body && (method == HttpMethod::GET || method == HttpMethod::HEAD))
    throw ClientError(Kind::kInvalid, fmt::format("a request by {} has no body", HttpMethodToString(method)));
  for (unsigned redirects = 0;; ++redirects) {
    const std::string origin = url.origin();
    const std::string text = url.text();
    const auto left = std::chrono::ceil<milliseconds>(nanoseconds(deadline.ns() - steadyClock().nowNs()));
    if (left.count() <= 0) throw ClientError(Kind::kTimeout, fmt::format("{:.200}: no time is left", text));
    detail::CurlPtr handle = m_impl->idle.take(origin);
    ClientResponse response =
        detail::Transfer(handle.get(), {options, text, method, headers, request.body, has_body, left, login ? &*login : nullptr})
            .run();
    m_impl->idle.put(origin, std::move(handle));
    const std::optional<std::string_view> location = response.headers.find("location");
    if (!isRedirect(response.status) || !location || options.max_redirects == 0) return response;
    if (redirects == options.max_redirects)
      throw ClientError(Kind::kProtocol, fmt::format("{:.200}: more than {} redirects", text, options.max_redirects));
    url.follow(std::string(*location));
    if (becomesGet(response.status, method)) {
      method = HttpMethod::GET;
      has_body = false;
      for (const char* const name : {"content-type", "content-encoding", "content-language", "content-location"})
        headers.del(name);
    }
    if (url.login()) login = url.login();
    if (url.origin() == origin) continue;
    login = url.login();
    for (const char* const name : {"authorization", "cookie", "host", "proxy-authorization"}) headers.del(name);
  }
}

ClientResponse Client::get(std::string_view url) { return request({.url = std::string(url)}); }

ClientResponse Client::post(std::string_view url, std::string_view body, std::string_view content_type) {
  ClientRequest one{.method = HttpMethod::POST, .url = std::string(url), .body = std::string(body)};
  one.headers.set("content-type", content_type);
  return request(one);
}

}  // namespace sylar::http
