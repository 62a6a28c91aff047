// Signal handlers that run while the kernel is asked whether something is ready: that is no answer.
#include "sylar/hook/core/probe.h"

#include <algorithm>
#include <csignal>

#include "tests/hook/support.h"

namespace sylar::test {
namespace {

constexpr int kHandlers = 1000;
std::atomic<int> g_handled{0};

/// Sends SIGUSR1 to the calling thread every 50 us, by a timer, which interrupts it wherever it is, in a system call too.
class Storm {
 public:
  Storm() {
    struct sigaction action {};
    action.sa_flags = SA_RESTART;
    action.sa_handler = [](int) { g_handled.fetch_add(1); };
    EXPECT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
    g_handled = 0;
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGUSR1;
    event._sigev_un._tid = threadId();
    EXPECT_EQ(::timer_create(CLOCK_MONOTONIC, &event, &m_timer), 0);
    const itimerspec often{{0, 50'000}, {0, 50'000}};
    EXPECT_EQ(::timer_settime(m_timer, 0, &often, nullptr), 0);
  }
  ~Storm() {
    ::timer_delete(m_timer);
    ::signal(SIGUSR1, SIG_IGN);
  }
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

 private:
  timer_t m_timer{};
};

// Cause: a question that a handler interrupts gives EINTR, which is not 0.
TEST(Ask, AHandlerIsNoReadiness) {
  const Pair empty = pipePair();
  const Pair stream = unixPair();
  const Storm storm;
  int ready = 0, ended = 0;
  while (g_handled.load() < kHandlers) {
    ready += probe::isReady(empty.a, POLLIN);
    ended += probe::hasEnded(stream.a);
  }
  EXPECT_EQ(ready, 0);
  EXPECT_EQ(ended, 0);
}

/// Waits for a byte by `wait` and takes it, again and again, while handlers run. `wait` looks at `kMany` numbers, so that many of
/// the handlers run while the kernel does so.
constexpr int kMany = 500;
void waitsWhileHandlersRun(const Pair& pair, const std::function<int()>& wait) {
  bool done = false;
  const auto reader = std::make_shared<Fiber>([&] {
    char byte;
    while (!done || probe::isReady(pair.a, POLLIN)) {
      ASSERT_EQ(wait(), kMany) << ::strerror(errno);
      ASSERT_EQ(::read(pair.a, &byte, 1), 1) << ::strerror(errno);
    }
  });
  IOManager::GetThis()->schedule(reader);
  const Storm storm;
  while (g_handled.load() < kHandlers && !testing::Test::HasFailure()) {
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
    Fiber::YieldToReady();
  }
  done = true;
  EXPECT_EQ(::write(pair.b, "x", 1), 1);
  reader->join();
}

// FM-09: a handler does not interrupt a parked call, nor the questions before it parks.
TEST(Poll, IsNotInterruptedByAHandler) {
  inFiber([] {
    const Pair pair = pipePair();
    std::vector<pollfd> all(kMany, pollfd{pair.a, POLLIN, 0});
    waitsWhileHandlersRun(pair, [&] { return ::poll(all.data(), all.size(), -1); });
  });
}

// FM-09
TEST(Select, IsNotInterruptedByAHandler) {
  inFiber([] {
    const Pair pair = pipePair();
    fd_set all;
    FD_ZERO(&all);
    int end = 0;
    std::vector<int> copies(kMany);
    for (int& copy : copies) {
      copy = ::dup(pair.a);
      ASSERT_LT(copy, FD_SETSIZE);
      FD_SET(copy, &all);
      end = std::max(end, copy + 1);
    }
    waitsWhileHandlersRun(pair, [&] {
      fd_set ready = all;
      return ::select(end, &ready, nullptr, nullptr, nullptr);
    });
    for (const int copy : copies) ::close(copy);
  });
}

}  // namespace
}  // namespace sylar::test
