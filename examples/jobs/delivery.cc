#include "delivery.h"

#include <stdexcept>

#include <nlohmann/json.hpp>

namespace jobs {

HttpPost Delivery::take() {
  const std::lock_guard guard(m_lock);
  if (m_idle.empty()) return {};
  HttpPost post = std::move(m_idle.back());
  m_idle.pop_back();
  return post;
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

  HttpPost post = take();
  const long status = post.send(m_url, text);
  {
    const std::lock_guard guard(m_lock);
    m_idle.push_back(std::move(post));
  }
  if (status < 200 || status > 299) throw std::runtime_error("the handler answered " + std::to_string(status));
}

}  // namespace jobs
