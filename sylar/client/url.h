// Internal. A URL of http or https, taken apart and put together by libcurl.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <optional>
#include <string>

#include "sylar/base/internal.h"

namespace sylar::http::detail {

/// The part of a URL before its host. It is sent, and shown nowhere.
struct Login {
  std::string user, password;
};

class Url {
 public:
  /// Throws ClientError of kind kInvalid.
  explicit Url(const std::string& text);

  /// Makes it what `reference`, which may be relative, means on this page. Throws ClientError of kind kProtocol. Source: RFC 3986.
  void follow(const std::string& reference);
  /// Returns the login that was in the last text, or nothing.
  const std::optional<Login>& login() const { return m_login; }
  /// Returns it without fragment and login.
  std::string text() const;
  /// Returns scheme, host and port.
  std::string origin() const;

 private:
  struct Deleter {
    void operator()(CURLU* url) const { ::curl_url_cleanup(url); }
  };

  std::string part(CURLUPart part, unsigned flags = 0) const;
  /// Returns what is wrong with it, or null.
  const char* set(const std::string& text);

  const std::unique_ptr<CURLU, Deleter> m_url;
  std::optional<Login> m_login;
};

}  // namespace sylar::http::detail
