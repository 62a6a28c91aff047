// POSTs JSON by libcurl, on a connection that is kept for the next time.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <memory>
#include <string>

namespace jobs {

/// curl_global_init() comes first. Thread safety: one call at a time.
class HttpPost {
 public:
  HttpPost();

  /// Returns the status of the answer, whose body goes to `answer` unless that is null. Throws std::runtime_error if there is none,
  /// if it takes longer than `timeout` (0: forever), or when the caller's DeadlineScope ends. May suspend: yes.
  long send(const std::string& url, const std::string& json, std::chrono::milliseconds timeout = {},
            std::string* answer = nullptr);

 private:
  struct Close {
    void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  };
  std::unique_ptr<CURL, Close> m_curl;
};

}  // namespace jobs
