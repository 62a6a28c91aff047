// A Handler that POSTs each job to a URL. An answer of 2xx means that the job is done.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "http_post.h"
#include "job.h"

namespace jobs {

/// Thread safety: deliver() from any thread, in fibers.
class Delivery {
 public:
  explicit Delivery(std::string url) : m_url(std::move(url)) {}

  /// Sends {"id", "payload", "run", "token", "attempt", "due_ms"}; the payload must be JSON. Throws std::runtime_error if it was
  /// not answered with 2xx. Waits at most until the deadline of the caller's DeadlineScope. May suspend: yes.
  void deliver(const Claim& claim);

 private:
  HttpPost take();

  const std::string m_url;
  std::mutex m_lock;
  std::vector<HttpPost> m_idle;
};

}  // namespace jobs
