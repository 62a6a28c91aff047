#include "sylar/client/url.h"

#include <fmt/format.h>

#include <new>

#include "sylar/http/client.h"

namespace sylar::http::detail {

Url::Url(const std::string& text) : m_url(::curl_url()) {
  if (m_url == nullptr) throw std::bad_alloc();
  if (const char* const wrong = set(text))
    throw ClientError(ClientError::Kind::kInvalid, fmt::format("'{:.200}' cannot be asked for: {}", text, wrong));
}

void Url::follow(const std::string& reference) {
  if (const char* const wrong = set(reference))
    throw ClientError(ClientError::Kind::kProtocol,
                      fmt::format("the redirect to '{:.200}' cannot be followed: {}", reference, wrong));
}

const char* Url::set(const std::string& text) {
  const CURLUcode code = ::curl_url_set(m_url.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME);
  if (code == CURLUE_OUT_OF_MEMORY) throw std::bad_alloc();
  if (code != CURLUE_OK) return ::curl_url_strerror(code);
  const std::string scheme = part(CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return "its scheme is not http or https";
  return part(CURLUPART_HOST).empty() ? "it names no host" : nullptr;
}

std::string Url::part(CURLUPart which, unsigned flags) const {
  char* text = nullptr;
  if (::curl_url_get(m_url.get(), which, &text, flags) != CURLUE_OK) return "";
  const std::unique_ptr<char, decltype(&::curl_free)> owned(text, &::curl_free);
  return text;
}

std::string Url::text() const {
  const std::string whole = part(CURLUPART_URL);
  return whole.substr(0, whole.find('#'));
}

std::string Url::origin() const {
  return part(CURLUPART_SCHEME) + "://" + part(CURLUPART_HOST) + ":" + part(CURLUPART_PORT, CURLU_DEFAULT_PORT);
}

}  // namespace sylar::http::detail
