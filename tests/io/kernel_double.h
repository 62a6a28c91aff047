// For tests: a kernel that never sleeps. It stands in for sys_wait.cc, by which a worker waits in its epoll: it notes what is asked
// for, and moves the test's clock instead of waiting, as late or early as the test wants. One test at a time; include it in one
// file of a program.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "sylar/base/sys.h"
#include "sylar/clock.h"

namespace sylar::test {

class KernelDouble {
 public:
  /// Waits move `clock`; what is ready is found all the same.
  explicit KernelDouble(ManualClock& clock) : m_clock(clock) { s_here = this; }
  ~KernelDouble() { s_here = nullptr; }
  KernelDouble(const KernelDouble&) = delete;
  KernelDouble& operator=(const KernelDouble&) = delete;

  static KernelDouble* here() { return s_here; }

  // Set before the first worker starts.
  int pwait2_error = 0;                                                    ///< of epoll_pwait2, e.g. -ENOSYS
  std::function<int64_t(int64_t)> sleeps = [](int64_t ns) { return ns; };  ///< how long it lets a wait of so many ns last
  std::function<void()> on_look;  ///< at each poll that does not wait, on the worker's thread

  // The waits that lasted: nothing was ready when they began.
  std::vector<int64_t> askedNs() {
    const std::lock_guard lock(m_mutex);
    return m_asked_ns;
  }
  std::vector<int> askedMs() {
    const std::lock_guard lock(m_mutex);
    return m_asked_ms;
  }

  int wait2(int epoll, epoll_event* events, int capacity, int64_t ns) {
    if (pwait2_error != 0) return pwait2_error;
    return passTime(epoll, events, capacity, ns, m_asked_ns, ns);
  }
  int wait(int epoll, epoll_event* events, int capacity, int ms) {
    if (ms == 0 && on_look) on_look();
    if (ms <= 0) return real(epoll, events, capacity, ms);
    return passTime(epoll, events, capacity, int64_t{ms} * 1'000'000, m_asked_ms, ms);
  }

 private:
  static int real(int epoll, epoll_event* events, int capacity, int ms) {
    return static_cast<int>(sys::call(SYS_epoll_pwait, epoll, events, capacity, ms, nullptr, 0L));
  }
  template <class List, class Value>
  int passTime(int epoll, epoll_event* events, int capacity, int64_t ns, List& list, Value asked) {
    if (const int ready = real(epoll, events, capacity, 0); ready != 0) return ready;
    {
      const std::lock_guard lock(m_mutex);
      list.push_back(asked);
    }
    m_clock.advance(std::chrono::nanoseconds(sleeps(ns)));
    return 0;
  }

  inline static std::atomic<KernelDouble*> s_here{nullptr};
  ManualClock& m_clock;
  std::mutex m_mutex;
  std::vector<int64_t> m_asked_ns;
  std::vector<int> m_asked_ms;
};

/// What threads did with their timer slack, by thread; each begins with the kernel's 50 us.
class SlackDouble {
 public:
  static constexpr int64_t kUsualNs = 50'000;
  static int64_t get() {
    const std::lock_guard lock(s_mutex);
    const auto& of_thread = s_set[sys::threadId()];
    return of_thread.empty() ? kUsualNs : of_thread.back();
  }
  static void set(int64_t ns) {
    const std::lock_guard lock(s_mutex);
    s_set[sys::threadId()].push_back(ns);
  }
  static std::vector<int64_t> of(pid_t thread) {
    const std::lock_guard lock(s_mutex);
    return s_set[thread];
  }
  static void forgetAll() {
    const std::lock_guard lock(s_mutex);
    s_set.clear();
  }

 private:
  inline static std::mutex s_mutex;
  inline static std::map<pid_t, std::vector<int64_t>> s_set;
};

}  // namespace sylar::test

// ---- In place of sys_wait.cc. ------------------------------------------------------------------------------------------------

namespace sylar::sys {

int epollPwait(int epoll, epoll_event* events, int capacity, int timeout_ms) {
  if (auto* const kernel = test::KernelDouble::here()) return kernel->wait(epoll, events, capacity, timeout_ms);
  return static_cast<int>(call(SYS_epoll_pwait, epoll, events, capacity, timeout_ms, nullptr, 0L));
}

int epollPwait2(int epoll, epoll_event* events, int capacity, const timespec& timeout) {
  if (auto* const kernel = test::KernelDouble::here())
    return kernel->wait2(epoll, events, capacity, timeout.tv_sec * 1'000'000'000 + timeout.tv_nsec);
  return static_cast<int>(call(SYS_epoll_pwait2, epoll, events, capacity, &timeout, nullptr, 0L));
}

int64_t timerSlack() { return test::SlackDouble::get(); }
void setTimerSlack(int64_t slack_ns) { test::SlackDouble::set(slack_ns); }

}  // namespace sylar::sys
