#include "etcd.h"

#include <openssl/evp.h>

#include <algorithm>
#include <utility>

namespace jobs {

namespace {

using Json = nlohmann::json;

constexpr int kNotFound = 5;  // of the codes of gRPC

}  // namespace

Etcd::Etcd(std::vector<std::string> endpoints, std::chrono::milliseconds timeout)
    : m_endpoints(std::move(endpoints)), m_timeout(timeout) {
  if (m_endpoints.empty()) throw std::invalid_argument("etcd has no endpoint");
}

Json Etcd::call(const std::string& path, const Json& body) {
  std::string why;
  for (size_t tried = 0; tried < m_endpoints.size(); ++tried) {
    const std::string& endpoint = m_endpoints[m_current];
    std::string text;
    long status = 0;
    try {
      status = m_post.send(endpoint + "/v3/" + path, body.dump(), m_timeout, &text);
    } catch (const std::runtime_error& failure) {
      text = failure.what();
    }
    const Json answer = Json::parse(text, nullptr, false);
    if (status == 200 && answer.is_object()) return answer;
    why = endpoint + ": " + text;
    if (answer.is_object() && answer.contains("code") && answer["code"] == kNotFound) throw LeaseGone(why);
    if (status >= 400 && status < 500) throw EtcdError(why);
    m_current = (m_current + 1) % m_endpoints.size();
  }
  throw EtcdError(why);
}

std::string toBase64(const std::string& bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // and the zero that OpenSSL adds
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(length));
  return text;
}

std::string fromBase64(const std::string& text) {
  std::string bytes(text.size() / 4 * 3, '\0');
  const int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                     reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  const size_t padding = text.size() - std::min(text.find('='), text.size());  // which OpenSSL takes for zeros
  if (length < 0 || padding > 2 || text.size() % 4 != 0) throw EtcdError("etcd sent what is no base64");
  bytes.resize(static_cast<size_t>(length) - padding);
  return bytes;
}

}  // namespace jobs
