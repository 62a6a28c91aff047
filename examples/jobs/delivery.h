// A Handler that POSTs each job to a URL, by libcurl. An answer of 2xx means that the job is done.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "job.h"

namespace jobs {

/// curl_global_init() comes first. Thread safety: deliver() from any thread, in fibers.
class Delivery {
 public:
  explicit Delivery(std::string url) : m_url(std::move(url)) {}

  /// Sends {"id", "payload", "run", "token", "attempt", "due_ms"}; the payload must be JSON. Throws std::runtime_error if it was not answered with 2xx. Waits
  /// at most until the deadline of the caller's DeadlineScope. May suspend: yes.
  void deliver(const Claim& claim);

 private:
  struct Close {
    void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  };
  using Curl = std::unique_ptr<CURL, Close>;  // keeps its connection for the next job

  Curl take();

  const std::string m_url;
  std::mutex m_lock;
  std::vector<Curl> m_idle;
};

}  // namespace jobs
