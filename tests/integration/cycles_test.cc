// Starting and stopping, again and again, with work, timers and waits in flight.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>

#include "sylar/base/sanitizers.h"
#include "sylar/iomanager.h"
#include "tests/support/fibers.h"
#include "tests/support/scale.h"

namespace sylar {
namespace {

#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
constexpr int kCycles = 1'000;
#else
constexpr int kCycles = 10'000;
#endif

/// Work of every kind, some of it not begun and most of it not over when the stop comes.
struct Load {
  explicit Load(IOManager& iom, unsigned kind) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    for (int i = 0; i < 4; ++i) {
      iom.schedule([this, &iom] {
        ++begun;
        iom.schedule([this] { ++nested; });
        Fiber::YieldToReady();
      });
    }
    iom.schedule([this] {
      char byte;
      read(fds[0], &byte, 1);
      ++ended;
    });
    iom.schedule([this] {
      Fiber::YieldToHold();
      ++ended;
    });
    iom.schedule([this, kind] {
      usleep(kind % 3 == 0 ? 10 : 1);
      ++ended;
    });
    iom.addTimer(kind % 2, [this] { ++fired; });
    EXPECT_EQ(iom.addEvent(fds[1], IOManager::WRITE, [this] { ++fired; }), 0);
  }
  ~Load() {
    close(fds[0]);
    close(fds[1]);
  }

  int fds[2] = {-1, -1};
  std::atomic<int> begun{0};
  std::atomic<int> nested{0};
  std::atomic<int> ended{0};
  std::atomic<int> fired{0};
};

class CyclesTest : public test::OverWorkers {
 protected:
  int cycles() const { return static_cast<int>(test::scaled(kCycles / 4)); }  // four counts of workers
};
INSTANTIATE_TEST_SUITE_P(Workers, CyclesTest, test::kWorkerCounts);

// CD-S8, RG-18, RT-7.1: stop() waits for whatever somebody outside will wake, and nothing that was accepted is lost.
TEST_P(CyclesTest, StopLosesNothing) {
  for (int i = 0; i < cycles(); ++i) {
    auto iom = std::make_unique<IOManager>(workers(), i % 5 == 0, "cycle");
    Load load(*iom, static_cast<unsigned>(i));
    iom->schedule([&load] { EXPECT_EQ(write(load.fds[1], "x", 1), 1); });  // the reader's wait is from outside
    iom.reset();
    ASSERT_EQ(load.begun, 4);
    ASSERT_EQ(load.nested, 4);
    ASSERT_EQ(load.ended, 3);
    ASSERT_EQ(load.fired, 2);
  }
}

// RG-18, RT-3.8: everything is cancelled, and ends clean.
TEST_P(CyclesTest, StopWithADeadlineLeavesNothing) {
  for (int i = 0; i < cycles(); ++i) {
    IOManager iom(workers(), i % 5 == 0, "cycle");
    Load load(iom, static_cast<unsigned>(i));
    iom.addTimer(1'000'000, [] { FAIL(); });
    EXPECT_EQ(iom.addEvent(load.fds[0], IOManager::READ, [] {}), 0);
    const StopResult result = iom.stop(Deadline::after(std::chrono::seconds(20)));
    ASSERT_TRUE(result.clean) << result.abandoned.size() << " left, the first: " << result.abandoned[0].waits_for;
    ASSERT_EQ(load.begun, 4);
    ASSERT_EQ(load.nested, 4);
    ASSERT_EQ(load.ended, 3);
  }
}

}  // namespace
}  // namespace sylar
