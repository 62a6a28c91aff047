// stop(deadline): everything is cancelled, nobody is waited for longer than promised.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "sylar/base/sanitizers.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/iomanager.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "tests/sched/gate.h"
#include "tests/support/busy.h"
#include "tests/support/fibers.h"
#include "tests/support/stopwatch.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::Gate;
using test::lateWorkersOf;

constexpr auto kPromised = 100ms;  // CD-S7

/// Occupies the processor.
void compute(std::chrono::microseconds duration) {
  const auto end = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < end) continue;
}

/// Reads one byte of `fd`. False: the wait was ended.
bool readByte(int fd) {
  char byte;
  return read(fd, &byte, 1) == 1;
}

/// Reads `fd` in a fiber and returns when that waits. On worker `thread`, if that is not -1.
Fiber::ptr readIn(Scheduler& scheduler, int fd, std::atomic<bool>* got, int thread = -1) {
  const auto reader = std::make_shared<Fiber>([fd, got] { *got = readByte(fd); });
  scheduler.schedule(reader, thread);
  EXPECT_TRUE(eventually([&] { return stateOf(*reader) == FiberState::kParked; }));
  return reader;
}

/// A manager comes, reads `fd`, and goes: what it had registered, it leaves to another.
void readInPassing(size_t workers, int fd) {
  std::atomic<bool> got{true};
  IOManager passing(workers, false, "passing");
  readIn(passing, fd, &got);
  EXPECT_TRUE(passing.stop(Deadline::after(10s)).clean);
  EXPECT_FALSE(got);
}

class StopDeadlineTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, StopDeadlineTest, test::kWorkerCounts);

TEST_P(StopDeadlineTest, WithoutWorkItIsCleanAtOnce) {
  IOManager iom(workers(), false, "stop");
  StopResult result{};
  EXPECT_WITHIN(5s, result = iom.stop(Deadline::after(10s)));
  EXPECT_TRUE(result.clean);
  EXPECT_TRUE(iom.stop(Deadline::after(0s)).clean) << "a second call";
}

/// Sets a counter back when it goes.
struct Counted {
  explicit Counted(std::atomic<int>& value) : count(value) { ++count; }
  ~Counted() { --count; }
  std::atomic<int>& count;
};

// RT-3.8, CD-S7, FM-42: every kind of wait ends, through the fiber's own returns.
TEST_P(StopDeadlineTest, TenThousandParkedFibersRunTheirDestructors) {
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
  constexpr int kFibers = 2'000;
#else
  constexpr int kFibers = 10'000;
#endif
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  std::atomic<int> objects{0};
  std::atomic<int> right{0};
  IOManager iom(workers(), false, "stop");
  for (int i = 0; i < kFibers; ++i) {
    iom.schedule([&, i] {
      const Counted counted(objects);
      switch (i % 4) {
        case 0: {
          char byte;
          right += read(pair[0], &byte, 1) == -1 && errno == ECANCELED;
          break;
        }
        case 1: right += sleep(1000) > 0; break;
        case 2: {
          Wait wait;
          right += wait.park() == WakeReason::kCanceled;
          break;
        }
        default: Fiber::YieldToHold(); right += this_fiber::cancelled();
      }
    });
  }
  iom.addTimer(
      3'600'000, [] { FAIL(); }, true);
  ASSERT_EQ(iom.addEvent(pair[0], IOManager::READ, [] { FAIL(); }), 0);
  ASSERT_TRUE(eventually([&] { return objects == kFibers; }));
  StopResult result{};
  EXPECT_WITHIN(1s + kPromised, result = iom.stop(Deadline::after(30s)));
  EXPECT_TRUE(result.clean);
  EXPECT_EQ(objects, 0);
  EXPECT_EQ(right, kFibers);
  EXPECT_EQ(close(pair[0]), 0);
  EXPECT_EQ(close(pair[1]), 0);
}

// RG: a fiber that ignores its cancel is named. One waits on under a shield, one in a loop, one yields forever.
TEST_P(StopDeadlineTest, WhoIgnoresItsCancelIsNamed) {
  IOManager iom(workers(), false, "stop");
  const auto spawn = [&iom](const char* name, std::function<void()> cb) {
    const auto fiber = std::make_shared<Fiber>(std::move(cb));
    fiber->setName(name);
    iom.schedule(fiber);
    return fiber;
  };
  spawn("shielded", [] {
    const this_fiber::CancelShield shield;
    for (;;) sleep(1000);
  });
  spawn("yields", [] {
    for (;;) Fiber::YieldToReady();
  });
  const Fiber::ptr sleeper = spawn("joined", [] {
    const this_fiber::CancelShield shield;
    for (;;) sleep(1000);
  });
  spawn("joins", [sleeper] { sleeper->join(); });
  std::atomic<bool> polite{false};
  std::atomic<bool> begun{false};  // and so have those before it
  spawn("polite", [&] {
    begun = true;
    sleep(1000);
    polite = true;
  });
  while (!begun) std::this_thread::yield();
  StopResult result{};
  constexpr auto kTime = 500ms;  // enough for the polite one on a busy machine
  const test::Stopwatch watch;
  result = iom.stop(Deadline::after(kTime));
  const auto took = watch.elapsed();
  EXPECT_GE(took, kTime) << "the shields hold until then";
  EXPECT_LT(took, watch.allows(kTime + kPromised));
  leaks().excuseLateWorkersOf(iom);
  EXPECT_FALSE(result.clean);
  EXPECT_TRUE(polite || watch.stalled() >= kTime);
  std::vector<std::string> names;
  for (const FiberInfo& info : result.abandoned) names.push_back(info.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names.front(), "joined");
  EXPECT_TRUE(std::count(names.begin(), names.end(), "shielded") == 1);
  EXPECT_TRUE(std::count(names.begin(), names.end(), "yields") == 1);
}

/// A worker that is left behind keeps all it has forever, on purpose. Leak checkers find it here; into cores they do not look.
void keep(const std::shared_ptr<void>& what) {
  static std::vector<std::shared_ptr<void>>& kept = *new std::vector<std::shared_ptr<void>>;
  kept.push_back(what);
}

/// Until then after the deadline, workers are waited for. A thread that the kernel keeps from running for longer is rightly late.
constexpr auto kGrace = 50ms;

/// Without the leak check: thread, fiber and descriptors of a worker that is left behind stay.
class StuckWorkerTest : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Workers, StuckWorkerTest, test::kWorkerCounts);

// A worker that is stuck in a computation is left behind; the rest ends clean, and what it does later disturbs nobody.
TEST_P(StuckWorkerTest, IsLeftBehind) {
  const size_t workers = GetParam();
  static std::atomic<bool> go_on{false};
  static std::atomic<bool> came_back{false};
  static std::atomic<bool> libc{false};
  go_on = came_back = libc = false;
  Gate stuck;
  StopResult result{};
  {
    IOManager iom(workers, false, "stop");
    const auto fiber = std::make_shared<Fiber>([&stuck] {
      stuck.open();
      test::busyUntil([] { return go_on.load(); });
      libc = usleep(1) == 0 && Scheduler::GetThis() == nullptr;  // the hooks are libc's here from now on
      came_back = true;
      Fiber::YieldToReady();  // never returns
      came_back = false;
    });
    fiber->setName("computes");
    iom.schedule(fiber);
    ASSERT_TRUE(stuck.wait());
    for (int i = 0; i < 100; ++i) iom.schedule([] { sleep(1000); });
    EXPECT_WITHIN(50ms + kPromised, result = iom.stop(Deadline::after(50ms)));
  }
  EXPECT_FALSE(result.clean);
  ASSERT_GE(result.abandoned.size(), 1u);
  const auto computes = [](const FiberInfo& info) { return info.name == "computes" && info.waits_for == "running"; };
  EXPECT_EQ(std::count_if(result.abandoned.begin(), result.abandoned.end(), computes), 1);
  go_on = true;
  ASSERT_TRUE(eventually([] { return came_back.load(); }));
  EXPECT_TRUE(libc);
  IOManager next(workers, false, "next");
  std::atomic<int> runs{0};
  for (int i = 0; i < 100; ++i) next.schedule([&runs] { usleep(100), ++runs; });
  next.stop();
  EXPECT_EQ(runs, 100);
  EXPECT_TRUE(came_back) << "it stands still for ever";
}

// Cause: an engine that ended gave its registration to the one of a worker that had been left behind, which nobody polls.
TEST_P(StuckWorkerTest, ItsEngineTakesNoRegistration) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const auto over = std::make_shared<std::atomic<bool>>(false);
  const auto dead = std::make_shared<std::atomic<bool>>(false);
  Gate stuck;
  {
    IOManager iom(GetParam(), false, "stuck");
    for (const auto& worker : coreOf(iom).workers()) {
      keep(readIn(iom, pair[0], dead.get(), worker->threadId()));
      const auto stay = [over, &stuck] {
        stuck.open();
        test::busyUntil([&] { return over->load(); });
      };
      iom.schedule(stay, worker->threadId());
    }
    ASSERT_TRUE(stuck.wait(GetParam()));
    EXPECT_FALSE(iom.stop(Deadline::after(0ms)).clean);
  }
  readInPassing(GetParam(), pair[0]);
  std::atomic<bool> got{false};
  IOManager next(GetParam(), false, "next");
  const Fiber::ptr reader = readIn(next, pair[0], &got);
  ASSERT_EQ(write(pair[1], "x", 1), 1);
  EXPECT_TRUE(eventually([&] { return got.load(); }));
  *over = true;
  reader->cancel();
}

// The calling thread as a worker keeps the promise, too.
TEST_P(StopDeadlineTest, HoldsWithTheCallerAsAWorker) {
  // The fibers begin in the stop, and as threads of their own not all of them may do so in time.
  IOManager iom({.threads = workers(), .use_caller = true, .name = "stop", .identity = FiberIdentity::kWorker});
  for (int i = 0; i < 100; ++i) {
    iom.schedule([] {
      const this_fiber::CancelShield shield;
      sleep(1000);
    });
  }
  StopResult result{};
  const test::Stopwatch watch;
  EXPECT_WITHIN(50ms + kPromised, result = iom.stop(Deadline::after(50ms)));
  leaks().excuseLateWorkersOf(iom);
  if (watch.stalled() < kPromised / 2) {
    EXPECT_TRUE(result.clean) << "when the shields end, they return";
  }
}

// Work that spawns work forever ends with its scheduler; what had not begun is told so.
TEST_P(StopDeadlineTest, AChainOfWorkEnds) {
  const auto iom = std::make_shared<IOManager>(workers(), false, "stop");
  const auto again = std::make_shared<std::function<void()>>();
  *again = [scheduler = iom.get(), self = again.get()] { scheduler->schedule(*self); };
  for (int i = 0; i < 10; ++i) iom->schedule(*again);
  EXPECT_WITHIN(20ms + kPromised, (void)iom->stop(Deadline::after(20ms)));
  leaks().excuseLateWorkersOf(*iom);
  if (lateWorkersOf(*iom) > 0) {  // in the midst of a schedule(), perhaps
    keep(iom);
    keep(again);
  }
}

// Cause: what a chain resumed by hand after the last call was in no list any more, and its wait never ended.
TEST_P(StopDeadlineTest, WhoBeginsToWaitByHandAfterTheDeadlineIsCancelled) {
  struct Seen {
    std::atomic<int> waits{0};
    std::atomic<bool> shielded{false};
  };
  bool in_time = false;
  for (int round = 0; round < 20 && !in_time; ++round) {
    IOManager iom(workers(), false, "stop");
    const auto seen = std::make_shared<Seen>();  // a late worker's, too
    iom.schedule([seen] {
      {
        const this_fiber::CancelShield shield;
        seen->shielded = true;
        sleep(1000);
      }
      for (int i = 0; i < 3; ++i) {
        const auto inner = std::make_shared<Fiber>([seen] { seen->waits += sleep(1000) > 0; });
        inner->resume();
      }
    });
    ASSERT_TRUE(eventually([&] { return seen->shielded.load(); }));
    StopResult result{};
    const test::Stopwatch watch;
    EXPECT_WITHIN(50ms + kPromised, result = iom.stop(Deadline::after(50ms)));
    in_time = watch.elapsed() < 50ms + kGrace;
    leaks().excuseLateWorkersOf(iom);
    if (!in_time) continue;
    EXPECT_TRUE(result.clean);
    EXPECT_EQ(seen->waits, 3);
  }
  EXPECT_TRUE(in_time);
}

// Cause: the joiner's patience ended before the older fiber, which had its turn behind it.
TEST_P(StopDeadlineTest, WhoJoinsAPoliteFiberEndsCleanly) {
  struct Seen {
    bool polite = false;
    bool joined = false;
  };
  bool in_time = false;
  for (int round = 0; round < 20 && !in_time; ++round) {
    IOManager iom(workers(), false, "stop");
    const auto seen = std::make_shared<Seen>();  // a late worker's, too
    const auto child = std::make_shared<Fiber>([seen] {
      const this_fiber::CancelShield shield;
      sleep(1000);
      seen->polite = true;
    });
    const auto parent = std::make_shared<Fiber>([seen, child] {
      child->join();
      seen->joined = seen->polite;
    });
    const int thread = coreOf(iom).workers()[0]->threadId();
    iom.schedule(child, thread);
    ASSERT_TRUE(eventually([&] { return stateOf(*child) == FiberState::kParked; }));
    iom.schedule(parent, thread);
    ASSERT_TRUE(eventually([&] { return stateOf(*parent) == FiberState::kParked; }));
    StopResult result{};
    const test::Stopwatch watch;
    EXPECT_WITHIN(50ms + kPromised, result = iom.stop(Deadline::after(50ms)));
    in_time = watch.elapsed() < 50ms + kGrace;
    leaks().excuseLateWorkersOf(iom);
    if (!in_time) continue;
    EXPECT_TRUE(result.clean);
    EXPECT_TRUE(seen->joined);
  }
  EXPECT_TRUE(in_time);
}

// Cause: each entry of the queue was a log line, written in the loop, where no worker is left behind.
TEST_P(StopDeadlineTest, HoldsWithADeepQueue) {
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
  constexpr int kFunctions = 1'000;
#else
  constexpr int kFunctions = 20'000;
#endif
  IOManager iom(workers(), false, "stop");
  for (int i = 0; i < kFunctions; ++i) iom.schedule([] { compute(100us); });
  EXPECT_WITHIN(50ms + kPromised, (void)iom.stop(Deadline::after(50ms)));
  leaks().excuseLateWorkersOf(iom);
}

// Cause: the clock was looked at between batches, not between fibers; a worker with short ones counted as stuck.
// A thread that the kernel keeps from running for long is late all the same, so one round of several must succeed.
TEST_P(StopDeadlineTest, AWorkerWithShortFibersIsNotLeftBehind) {
  bool left_behind = true;
  for (int round = 0; round < 20 && left_behind; ++round) {
    IOManager iom(workers(), false, "stop");
    for (int i = 0; i < 1'000; ++i) iom.schedule([] { compute(1ms); });
    EXPECT_WITHIN(20ms + kPromised, (void)iom.stop(Deadline::after(20ms)));
    left_behind = lateWorkersOf(iom) > 0;
    leaks().excuseLateWorkersOf(iom);
  }
  EXPECT_FALSE(left_behind);
}

// Cause: the same. The calling thread ends the fiber that it runs, not the batch.
TEST_P(StopDeadlineTest, TheCallerFinishesOneFiberOnly) {
  Scheduler scheduler(workers(), true, "stop");
  for (int i = 0; i < 1'000; ++i) scheduler.schedule([] { compute(5ms); });
  EXPECT_WITHIN(20ms + kPromised, (void)scheduler.stop(Deadline::after(20ms)));
  leaks().excuseLateWorkersOf(scheduler);
}

// Cause: the waiter of a fiber that was abandoned stayed with the descriptor, and the next one handed the registration to its
// engine, which had ended.
TEST_P(StopDeadlineTest, ADescriptorThatAGivenUpFiberReadServesOthers) {
  int pair[2];
  for (bool late = true; late;) {
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    IOManager iom(workers(), false, "stop");
    const auto stubborn = std::make_shared<Fiber>([fd = pair[0]] {
      const this_fiber::CancelShield shield;
      while (!readByte(fd)) continue;
    });
    iom.schedule(stubborn);
    ASSERT_TRUE(eventually([&] { return stateOf(*stubborn) == FiberState::kParked; }));
    EXPECT_EQ(iom.stop(Deadline::after(0ms)).abandoned.size(), 1u);
    late = lateWorkersOf(iom) > 0;  // then its thread reads on, with libc's calls, and the pair is its own
    leaks().excuseLateWorkersOf(iom);
    if (late) keep(stubborn);
  }
  readInPassing(workers(), pair[0]);
  std::atomic<bool> got{false};
  {
    IOManager next(workers(), false, "next");
    readIn(next, pair[0], &got);
    ASSERT_EQ(write(pair[1], "x", 1), 1);
  }
  EXPECT_TRUE(got);
  EXPECT_EQ(close(pair[0]), 0);
  EXPECT_EQ(close(pair[1]), 0);
}

TEST_P(StopDeadlineTest, AfterwardsCallsAreRefused) {
  IOManager iom(workers(), false, "stop");
  const Timer::ptr before = iom.addTimer(1'000'000, [] {});
  (void)iom.stop(Deadline::after(1s));
  EXPECT_FALSE(before->cancel());
  EXPECT_FALSE(iom.addTimer(1, [] {})->cancel());
  EXPECT_FALSE(iom.hasTimer());
  EXPECT_EQ(iom.addEvent(0, IOManager::READ, [] {}), -1);
  EXPECT_EQ(errno, ECANCELED);
  EXPECT_FALSE(iom.trySchedule([] {}));
  EXPECT_FALSE(iom.switchTo());
}

}  // namespace
}  // namespace sylar
