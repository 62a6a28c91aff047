// Signal handlers at any instant of a switch from one fiber to the next. They make calls that wait.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <latch>
#include <random>
#include <thread>

#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "sylar/fiber.h"
#include "sylar/hook.h"
#include "sylar/iomanager.h"
#include "tests/support/seed.h"

namespace sylar::test {
namespace {

#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
constexpr int kHandlers = 300;
#else
constexpr int kHandlers = 3'000;
#endif
constexpr int kFibers = 4;

std::atomic<int> g_handlers{0};
std::atomic<int> g_slept{0};

/// Suspends the fiber that it interrupts, if it interrupts one.
void sleepAMoment(int) {
  if (g_handlers.fetch_add(1) % 2 == 0) return;
  ::usleep(1);
  g_slept.fetch_add(1);
}

// HA-9: fibers that only yield go on, each with its own count, whatever instant a handler interrupts.
TEST(SwitchRace, AHandlerThatWaitsMayInterruptAnySwitch) {
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = sleepAMoment;
  action.sa_flags = SA_RESTART;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  std::atomic<pid_t> thread{0};
  std::atomic<int> ended{0};
  {
    IOManager iom(1, false, "switches");
    std::latch all(kFibers);
    for (int i = 0; i < kFibers; ++i) {
      iom.schedule([&] {
        thread.store(sys::threadId());
        const uint64_t me = Fiber::GetFiberId();
        while (g_handlers.load() < kHandlers) {
          Fiber::YieldToReady();
          ASSERT_EQ(Fiber::GetFiberId(), me);
        }
        ended.fetch_add(1);
        all.count_down();
      });
    }
    std::mt19937_64 random(seed());
    while (g_handlers.load() < kHandlers) {
      if (thread.load() != 0) sys::call(SYS_tgkill, ::getpid(), thread.load(), SIGUSR1);
      for (unsigned n = random() % 20'000; n > 0; --n) std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    all.wait();
  }
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
  EXPECT_EQ(ended.load(), kFibers);
  EXPECT_GT(g_slept.load(), 0);
}

}  // namespace
}  // namespace sylar::test
