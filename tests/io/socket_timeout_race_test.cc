// Timeouts on the real clock, from many fibers at once.
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/hook/support.h"
#include "tests/sched/gate.h"
#include "tests/support/sanitized.h"
#include "tests/support/scale.h"

namespace sylar::test {
namespace {

/// Says what everybody waits for, and ends the process, instead of a test that hangs.
class Watchdog {
 public:
  Watchdog(const Scheduler& scheduler, std::chrono::seconds patience)
      : m_thread([this, &scheduler, patience] {
          std::unique_lock lock(m_mutex);
          if (m_over.wait_for(lock, patience, [this] { return m_is_over; })) return;
          scheduler.dump(std::cerr << "it hangs:\n") << std::endl;
          std::abort();
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(m_mutex);
      m_is_over = true;
    }
    m_over.notify_one();
    m_thread.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex m_mutex;
  std::condition_variable m_over;
  bool m_is_over = false;
  std::thread m_thread;
};

// C-50, TD-13: a timeout of 1 ms on a silent socket, 100 000 times on 8 threads: EAGAIN each time, never early, never forever.
TEST(SocketTimeoutRace, ASilentSocketAlwaysTimesOut) {
  constexpr size_t kThreads = 8;
  constexpr size_t kFibers = 400;
  const size_t times = scaled(kSanitized ? 25 : 250);
  std::atomic<size_t> timed_out{0}, others{0}, early{0};
  IOManager iom(kThreads, false, "silent");
  const Watchdog watchdog(iom, kPatience);
  for (size_t i = 0; i < kFibers; ++i) {
    iom.schedule([&] {
      const Pair pair = unixPair();
      setTimeout(hookedCalls(), pair.a, SO_RCVTIMEO, 1'000);
      for (size_t n = 0; n < times; ++n) {
        char byte;
        const int64_t start_ns = steadyClock().nowNs();
        errno = 0;
        (::recv(pair.a, &byte, 1, 0) == -1 && errno == EAGAIN ? timed_out : others).fetch_add(1);
        early += steadyClock().nowNs() - start_ns < 1'000'000 ? 1 : 0;
      }
    });
  }
  iom.stop();
  EXPECT_EQ(timed_out, kFibers * times);
  EXPECT_EQ(others, 0u);
  EXPECT_EQ(early, 0u);
}

}  // namespace
}  // namespace sylar::test
