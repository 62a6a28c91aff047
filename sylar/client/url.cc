#include "sylar/client/url.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "sylar/http/client.h"

namespace sylar::http::detail {

namespace {

/// Returns `text` for a message, without a login.
std::string shown(const std::string& text) {
  const size_t at = text.find('@');
  return text.substr(at == text.npos ? 0 : at + 1, 200);
}

}  // namespace

Url::Url(const std::string& text) : m_url(::curl_url()) {
  if (m_url == nullptr) throw std::bad_alloc();
  if (const char* const wrong = set(text))
    throw ClientError(ClientError::Kind::kInvalid, fmt::format("'{}' cannot be asked for: {}", shown(text), wrong));
}

void Url::follow(const std::string& reference) {
  if (const char* const wrong = set(reference))
    throw ClientError(ClientError::Kind::kProtocol,
                      fmt::format("the redirect to '{}' cannot be followed: {}", shown(reference), wrong));
}

const char* Url::set(const std::string& text) {
  const CURLUcode code = ::curl_url_set(m_url.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME);
  if (code == CURLUE_OUT_OF_MEMORY) throw std::bad_alloc();
  if (code != CURLUE_OK) return ::curl_url_strerror(code);
  const std::string scheme = part(CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return "its scheme is not http or https";
  if (part(CURLUPART_HOST).empty()) return "it names no host";
  m_login.reset();
  if (std::string user = part(CURLUPART_USER, CURLU_URLDECODE); !user.empty())
    m_login = {std::move(user), part(CURLUPART_PASSWORD, CURLU_URLDECODE)};
  for (const CURLUPart gone : {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_FRAGMENT})
    ::curl_url_set(m_url.get(), gone, nullptr, 0);
  return nullptr;
}

std::string Url::part(CURLUPart which, unsigned flags) const {
  char* text = nullptr;
  if (::curl_url_get(m_url.get(), which, &text, flags) != CURLUE_OK) return "";
  const std::unique_ptr<char, decltype(&::curl_free)> owned(text, &::curl_free);
  return text;
}

std::string Url::text() const { return part(CURLUPART_URL); }

std::string Url::origin() const {
  return part(CURLUPART_SCHEME) + "://" + part(CURLUPART_HOST) + ":" + part(CURLUPART_PORT, CURLU_DEFAULT_PORT);
}

}  // namespace sylar::http::detail
