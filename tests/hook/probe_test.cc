// Signal handlers that run while the kernel is asked whether something is ready: that is no answer.
#include "sylar/hook/probe.h"

#include <csignal>

#include "tests/hook/support.h"

namespace sylar::test {
namespace {

constexpr int kHandlers = 1000;
std::atomic<int> g_handled{0};

/// Sends SIGUSR1 to `thread` as fast as it takes them.
class Storm {
 public:
  explicit Storm(pid_t thread) {
    struct sigaction action {};
    action.sa_flags = SA_RESTART;
    action.sa_handler = [](int) { g_handled.fetch_add(1); };
    EXPECT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
    g_handled = 0;
    m_thread = std::thread([this, thread] {
      while (!m_done.load()) ::syscall(SYS_tgkill, ::getpid(), thread, SIGUSR1);
    });
  }
  ~Storm() {
    m_done.store(true);
    m_thread.join();
    ::signal(SIGUSR1, SIG_IGN);
  }
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

 private:
  std::atomic<bool> m_done{false};
  std::thread m_thread;
};

// Cause: a question that a handler interrupts gives EINTR, which is not 0.
TEST(Ask, AHandlerIsNoReadiness) {
  const Pair empty = pipePair();
  const Pair stream = unixPair();
  const Storm storm(threadId());
  int ready = 0, ended = 0;
  while (g_handled.load() < kHandlers) {
    ready += probe::isReady(empty.a, POLLIN);
    ended += probe::hasEnded(stream.a);
  }
  EXPECT_EQ(ready, 0);
  EXPECT_EQ(ended, 0);
}

// FM-09: a handler does not interrupt a parked call, nor the questions before it parks.
TEST(Poll, IsNotInterruptedByAHandler) {
  inFiber([] {
    const Pair pair = pipePair();
    bool done = false;
    const auto reader = std::make_shared<Fiber>([&] {
      char byte;
      while (!done || probe::isReady(pair.a, POLLIN)) {
        pollfd one{pair.a, POLLIN, 0};
        ASSERT_EQ(::poll(&one, 1, -1), 1) << ::strerror(errno);
        ASSERT_EQ(::read(pair.a, &byte, 1), 1) << ::strerror(errno);
      }
    });
    IOManager::GetThis()->schedule(reader);
    const Storm storm(threadId());
    while (g_handled.load() < kHandlers && !testing::Test::HasFailure()) {
      EXPECT_EQ(::write(pair.b, "x", 1), 1);
      Fiber::YieldToReady();
    }
    done = true;
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
    reader->join();
  });
}

}  // namespace
}  // namespace sylar::test
