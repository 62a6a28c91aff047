// A client of etcd's HTTP/JSON gateway.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "http_post.h"

namespace jobs {

/// No endpoint of etcd has answered, or one has refused what it was asked.
struct EtcdError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// There is no such lease any more.
struct LeaseGone : EtcdError {
  using EtcdError::EtcdError;
};

/// Thread safety: one call at a time. Source: etcd 3.4, *gRPC gateway*.
class Etcd {
 public:
  /// `endpoints` are URLs, such as http://127.0.0.1:2379, and at least one. Each has `timeout` to answer.
  Etcd(std::vector<std::string> endpoints, std::chrono::milliseconds timeout);

  /// POSTs `body` to `path`, such as "lease/grant". Asks the endpoint that answered last, and those after it if it does not.
  /// Throws EtcdError. What the call was to do is then done or not. May suspend: yes.
  nlohmann::json call(const std::string& path, const nlohmann::json& body);

 private:
  const std::vector<std::string> m_endpoints;
  const std::chrono::milliseconds m_timeout;
  HttpPost m_post;
  size_t m_current = 0;
};

/// Keys and values in the gateway's JSON.
std::string toBase64(const std::string& bytes);
/// Throws EtcdError if `text` is no base64.
std::string fromBase64(const std::string& text);

}  // namespace jobs
