#include "http_post.h"

#include <new>
#include <stdexcept>

namespace jobs {

namespace {

size_t keep(char* bytes, size_t size, size_t count, void* answer) {
  if (answer != nullptr) static_cast<std::string*>(answer)->append(bytes, size * count);
  return size * count;
}

/// The headers of all requests; those of curl's own that cost a round trip are switched off.
const curl_slist* headers() {
  static const curl_slist* const all = curl_slist_append(curl_slist_append(nullptr, "content-type: application/json"), "expect:");
  return all;
}

}  // namespace

HttpPost::HttpPost() : m_curl(curl_easy_init()) {
  if (m_curl == nullptr) throw std::bad_alloc();
  curl_easy_setopt(m_curl.get(), CURLOPT_HTTPHEADER, headers());
  curl_easy_setopt(m_curl.get(), CURLOPT_WRITEFUNCTION, keep);
  curl_easy_setopt(m_curl.get(), CURLOPT_NOSIGNAL, 1L);
}

long HttpPost::send(const std::string& url, const std::string& json, std::chrono::milliseconds timeout, std::string* answer) {
  curl_easy_setopt(m_curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(m_curl.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(json.size()));
  curl_easy_setopt(m_curl.get(), CURLOPT_POSTFIELDS, json.c_str());
  curl_easy_setopt(m_curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));
  curl_easy_setopt(m_curl.get(), CURLOPT_WRITEDATA, answer);
  const CURLcode result = curl_easy_perform(m_curl.get());
  if (result != CURLE_OK) throw std::runtime_error(curl_easy_strerror(result));
  long status = 0;
  curl_easy_getinfo(m_curl.get(), CURLINFO_RESPONSE_CODE, &status);
  return status;
}

}  // namespace jobs
