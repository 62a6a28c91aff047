#include "sylar/app/reloader.h"

#include <chrono>
#include <utility>

#include "sylar/thread.h"

namespace sylar::detail {

Reloader::~Reloader() {
  if (m_thread.joinable()) m_thread.join();
}

void Reloader::ask() {
  const std::lock_guard lock(m_mutex);
  m_asked = true;
  if (m_running) return;
  if (m_thread.joinable()) m_thread.join();  // it does not take the lock again
  m_thread = std::thread([this] { run(); });
  m_running = true;
}

void Reloader::run() {
  Thread::SetName("reloader");
  std::unique_lock lock(m_mutex);
  while (std::exchange(m_asked, false)) {
    lock.unlock();
    m_reload();
    lock.lock();
  }
  m_running = false;
  m_ended.notify_all();
}

bool Reloader::end(Deadline deadline) {
  std::unique_lock lock(m_mutex);
  m_asked = false;
  const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(deadline.ns())};
  return m_ended.wait_until(lock, until, [this] { return !m_running; });
}

}  // namespace sylar::detail
