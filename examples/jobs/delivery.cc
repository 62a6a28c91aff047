#include "delivery.h"

#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

namespace jobs {

namespace {

size_t ignore(char* /*bytes*/, size_t size, size_t count, void* /*context*/) { return size * count; }

/// The headers of all requests; those of curl's own that cost a round trip are switched off.
const curl_slist* headers() {
  static const curl_slist* const all = curl_slist_append(curl_slist_append(nullptr, "content-type: application/json"), "expect:");
  return all;
}

}  // namespace

Delivery::Curl Delivery::take() {
  {
    const std::lock_guard guard(m_lock);
    if (!m_idle.empty()) {
      Curl curl = std::move(m_idle.back());
      m_idle.pop_back();
      return curl;
    }
  }
  Curl curl(curl_easy_init());
  if (curl == nullptr) throw std::bad_alloc();
  curl_easy_setopt(curl.get(), CURLOPT_URL, m_url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers());
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, ignore);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  return curl;
}

void Delivery::deliver(const Claim& claim) {
  const nlohmann::json head{{"id", claim.id},
                            {"run", claim.run},
                            {"token", claim.token},
                            {"attempt", claim.attempt},
                            {"due_ms", claim.due.count() / 1000}};
  std::string text = head.dump();
  text.back() = ',';
  text += "\"payload\":" + claim.payload + '}';

  Curl curl = take();
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(text.size()));
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, text.c_str());
  const CURLcode result = curl_easy_perform(curl.get());
  if (result != CURLE_OK) throw std::runtime_error(curl_easy_strerror(result));
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  {
    const std::lock_guard guard(m_lock);
    m_idle.push_back(std::move(curl));
  }
  if (status < 200 || status > 299) throw std::runtime_error("the handler answered " + std::to_string(status));
}

}  // namespace jobs
