// A started fiber stays on its thread, so code that was compiled for threads is right in fibers.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <utility>

#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "tests/fiber/pinning_programs.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

constexpr size_t kWorkers = 4;
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
constexpr int kScale = 10;
#else
constexpr int kScale = 1;
#endif

/// Ways to wait.
const test::Wait kWaits[] = {
    [] { usleep(0); },  // hooked
    [] { Fiber::YieldToReady(); },
};

class Pinning : public testing::Test {
 private:
  test::LeakCheck m_leaks;
};

/// Runs `body(i)` in `fibers` fibers on 4 workers; at least one starts on each.
void onAllWorkers(int fibers, const std::function<void(int)>& body) {
  test::Gate everywhere;
  std::mutex mutex;
  std::set<pid_t> threads;
  {
    IOManager iom(kWorkers, false, "pinned");
    for (int i = 0; i < fibers; ++i) {
      iom.schedule([&, i] {
        if (i < static_cast<int>(kWorkers)) {  // blocks the thread: the next one needs another
          everywhere.open();
          EXPECT_TRUE(everywhere.wait(kWorkers));
        }
        {
          const std::lock_guard lock(mutex);
          threads.insert(sys::threadId());
        }
        body(i);
      });
    }
  }
  EXPECT_EQ(threads.size(), kWorkers);
}

/// How often `program` went wrong, in 40 fibers.
int wrongIn(int (*program)(test::Wait, int)) {
  constexpr int kRounds = 100;
  std::atomic<int> wrong{0};
  for (const test::Wait wait : kWaits) {
    onAllWorkers(40, [&](int) { wrong += program(wait, kRounds); });
  }
  return wrong;
}

// CD-F4, HA-2, RD-2
TEST_F(Pinning, ErrnoIsTheFibersOwnAfterAWait) { EXPECT_EQ(wrongIn(&test::errnoReadAfterTheWait), 0); }
TEST_F(Pinning, ErrnosAddressHoldsOverAWait) { EXPECT_EQ(wrongIn(&test::errnoAddressAfterTheWait), 0); }
TEST_F(Pinning, AddressOfAThreadLocalHoldsOverAWait) { EXPECT_EQ(wrongIn(&test::addressOfAThreadLocal), 0); }
TEST_F(Pinning, ValueOfAThreadLocalHoldsOverAWait) { EXPECT_EQ(wrongIn(&test::valueOfAThreadLocalWithConstructor), 0); }
TEST_F(Pinning, PthreadSelfHoldsOverAWait) { EXPECT_EQ(wrongIn(&test::pthreadSelf), 0); }
TEST_F(Pinning, ThreadIdHoldsOverAWait) { EXPECT_EQ(wrongIn(&test::threadId), 0); }

// CD-F4: a timed-out recv reports its errno in 100 000 of 100 000 trials on 4 workers.
TEST_F(Pinning, TimedOutCallReportsItsErrno) {
  constexpr int kFibers = 50;
  constexpr int kRounds = 2'000 / kScale;
  std::atomic<int> wrong{0};
  onAllWorkers(kFibers, [&](int) {
    std::array<int, 2> fds;
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()), 0);
    const timeval microsecond{0, 1};
    ASSERT_EQ(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &microsecond, sizeof microsecond), 0);
    wrong += test::errnoInARetryLoop(fds[0], kRounds);
    close(fds[0]);
    close(fds[1]);
  });
  EXPECT_EQ(wrong, 0);
}

// CD-F4: each of 8 fibers on 4 workers makes 100 000 hooked calls.
TEST_F(Pinning, KernelThreadIdIsConstantOverHookedCalls) {
  constexpr int kPairs = 4;
  constexpr int kRounds = 50'000 / kScale;
  std::array<std::array<int, 2>, kPairs> fds;
  std::atomic<int> wrong{0};
  std::atomic<int> made{0};
  test::inFiber([&] {
    for (auto& pair : fds) ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
  });
  onAllWorkers(2 * kPairs, [&](int i) {
    const auto& pair = fds[static_cast<size_t>(i % kPairs)];  // the two ends mostly live on different workers
    wrong += test::kernelThreadIdOverHookedCalls(pair[static_cast<size_t>(i / kPairs)], kRounds);
    made += 2 * kRounds;
  });
  for (const auto& pair : fds) {
    close(pair[0]);
    close(pair[1]);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(made, 2 * kPairs * 2 * kRounds);
}

}  // namespace
}  // namespace sylar
