#include "sylar/client/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "sylar/fiber.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook/thread/identity.h"

namespace sylar::http::detail {
namespace {

using Kind = ClientError::Kind;

Kind kindOf(CURLcode code) {
  switch (code) {
    case CURLE_URL_MALFORMAT: return Kind::kInvalid;
    case CURLE_OPERATION_TIMEDOUT: return Kind::kTimeout;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY: return Kind::kResolve;
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY: return Kind::kConnect;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
    case CURLE_SSL_ENGINE_INITFAILED:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_CLIENTCERT:
    case CURLE_USE_SSL_FAILED: return Kind::kTls;
    default: return Kind::kProtocol;
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// Returns true if the request may be made twice, as libcurl does when a kept connection turns out to be closed. Source: RFC 9110,
/// 9.2.2; draft-ietf-httpapi-idempotency-key-header.
bool mayBeRepeated(const TransferPlan& plan) {
  switch (plan.method) {
    case HttpMethod::GET:
    case HttpMethod::HEAD:
    case HttpMethod::PUT:
    case HttpMethod::DELETE:
    case HttpMethod::OPTIONS:
    case HttpMethod::TRACE: return true;
    default: return plan.headers.find("idempotency-key").has_value();
  }
}

/// Once for the process, before any thread uses libcurl. Source: curl_global_init(3).
bool isInitialised() {
  static const bool done = ::curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return done;
}

}  // namespace

template <class Value>
void Transfer::set(CURLoption option, Value value) {
  const CURLcode code = ::curl_easy_setopt(m_handle, option, value);
  if (code == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
  if (code != CURLE_OK) fail(code);
}

void Transfer::addHeader(const std::string& line) {
  curl_slist* const longer = ::curl_slist_append(m_headers.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  (void)m_headers.release();
  m_headers.reset(longer);
}

void Transfer::prepare() {
  const ClientOptions& options = m_plan.options;
  ::curl_easy_reset(m_handle);  // the connection stays
  set(CURLOPT_ERRORBUFFER, m_what);
  set(CURLOPT_URL, m_plan.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // a lookup that is given up goes on by itself, and is not waited for
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(m_plan.timeout.count()));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
  set(CURLOPT_MAXCONNECTS, 1L);
  set(CURLOPT_MAXAGE_CONN, std::max(static_cast<long>(options.max_idle_time.count() / 1000), 1L));
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_SSL_VERIFYPEER, options.verify ? 1L : 0L);
  set(CURLOPT_SSL_VERIFYHOST, options.verify ? 2L : 0L);
  if (!options.ca_file.empty()) set(CURLOPT_CAINFO, options.ca_file.c_str());
  if (!options.proxy.empty() || !options.proxy_from_environment) {  // then the environment says nothing
    set(CURLOPT_PROXY, options.proxy.c_str());                      // "" is none
    set(CURLOPT_NOPROXY, "");
  }
  if (m_plan.login != nullptr) {
    set(CURLOPT_USERNAME, m_plan.login->user.c_str());
    set(CURLOPT_PASSWORD, m_plan.login->password.c_str());
  }
  if (!m_plan.headers.find("accept-encoding")) set(CURLOPT_ACCEPT_ENCODING, "");
  if (!m_plan.headers.find("user-agent")) set(CURLOPT_USERAGENT, "sylar");

  set(CURLOPT_CUSTOMREQUEST, HttpMethodToString(m_plan.method));
  if (m_plan.has_body) {
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(m_plan.body.size()));
    set(CURLOPT_POSTFIELDS, m_plan.body.data());
    if (!m_plan.headers.find("content-type")) addHeader("Content-Type:");  // not that of a form
  } else if (m_plan.method == HttpMethod::HEAD) {
    set(CURLOPT_NOBODY, 1L);
  }
  for (size_t i = 0; i < m_plan.headers.size(); ++i) {
    const auto [name, value] = m_plan.headers[i];
    addHeader(value.empty() ? fmt::format("{};", name) : fmt::format("{}: {}", name, value));
  }
  addHeader("Expect:");  // a wait for 100 (Continue) would cost a second where nobody says it
  set(CURLOPT_HTTPHEADER, m_headers.get());
  if (!mayBeRepeated(m_plan)) set(CURLOPT_FRESH_CONNECT, 1L);

  set(CURLOPT_HEADERDATA, this);
  set(
      CURLOPT_HEADERFUNCTION, +[](const char* line, size_t, size_t size, void* me) {
        return static_cast<Transfer*>(me)->takeHead({line, size});
      });
  set(CURLOPT_WRITEDATA, this);
  set(
      CURLOPT_WRITEFUNCTION, +[](const char* bytes, size_t, size_t size, void* me) {
        return static_cast<Transfer*>(me)->takeBody({bytes, size});
      });
}

/// Takes a line of a head, or of the trailers. Returns another size to end the transfer.
size_t Transfer::takeHead(std::string_view line) {
  try {
    if (line.starts_with("HTTP/")) {  // 100 (Continue) and a proxy's answer to CONNECT come before
      m_response.headers.clear();
      m_head_size = 0;
      m_has_head = false;
    }
    m_has_head = m_has_head || trimmed(line).empty();
    m_head_size += line.size();
    m_is_too_large = m_is_too_large || m_head_size > m_plan.options.max_head;
    if (m_is_too_large) return 0;
    const size_t colon = line.find(':');
    if (colon != line.npos && !line.starts_with("HTTP/"))
      m_response.headers.add(line.substr(0, colon), trimmed(line.substr(colon + 1)));
    return line.size();
  } catch (...) {  // no token, or no memory
    m_thrown = std::current_exception();
    return 0;
  }
}

size_t Transfer::takeBody(std::string_view bytes) {
  try {
    m_is_too_large = bytes.size() > m_plan.options.max_body - m_response.body.size();
    if (m_is_too_large) return 0;
    m_response.body.append(bytes);
    return bytes.size();
  } catch (...) {
    m_thrown = std::current_exception();
    return 0;
  }
}

void Transfer::fail(CURLcode code) const {
  const char* const what = m_what[0] != '\0' ? m_what : ::curl_easy_strerror(code);
  const std::string place = fmt::format("{} {:.200}: ", HttpMethodToString(m_plan.method), m_plan.url);
  if (m_is_too_large) throw ClientError(Kind::kTooLarge, place + "the answer is too large");
  if (this_fiber::cancelled()) throw ClientError(Kind::kCancelled, place + "the fiber was cancelled");
  throw ClientError(kindOf(code), place + what);
}

ClientResponse Transfer::run() {
  if (!isInitialised()) throw std::bad_alloc();
  prepare();
  CURLcode code = CURLE_OK;
  const auto perform = [&] { code = ::curl_easy_perform(m_handle); };
  sylar::detail::onThreadStack() ? perform() : sylar::detail::asBorrowedThread(perform);
  if (m_thrown != nullptr) {
    try {
      std::rethrow_exception(m_thrown);
    } catch (const std::invalid_argument& error) {
      throw ClientError(Kind::kProtocol, fmt::format("{:.200}: the answer has a malformed header: {}", m_plan.url, error.what()));
    }
  }
  if (code == CURLE_OUT_OF_MEMORY) {  // or a line of the head that is longer than libcurl takes
    long sent = 0;
    ::curl_easy_getinfo(m_handle, CURLINFO_REQUEST_SIZE, &sent);
    if (sent == 0 || m_has_head) throw std::bad_alloc();
    m_is_too_large = true;
  }
  if (code != CURLE_OK) fail(code);
  long status = 0;
  ::curl_easy_getinfo(m_handle, CURLINFO_RESPONSE_CODE, &status);
  m_response.status = static_cast<HttpStatus>(status);
  m_response.url = m_plan.url;
  return std::move(m_response);
}

}  // namespace sylar::http::detail
