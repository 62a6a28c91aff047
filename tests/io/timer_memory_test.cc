// What becomes of public timers when there is no memory for the fibers of their callbacks. This program has its own operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

#include "sylar/base/sys.h"
#include "sylar/clock.h"
#include "sylar/iomanager.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "sylar/timer_stats.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace {
std::atomic<pid_t> g_poor{0};  // the thread whose allocations fail
std::atomic<int> g_failures{0};
}  // namespace

[[gnu::noinline]] void* operator new(size_t size) {
  if (g_poor.load() == sylar::sys::threadId() && g_failures.fetch_sub(1) > 0) throw std::bad_alloc();
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace sylar {
namespace {

using test::eventually;

// RT-4.4. Cause: collected timers were lost with the exception, and a recurring one waited for a run that never came.
TEST(TimerMemory, NoTimerIsLostWhenThereIsNone) {
  const test::LeakCheck leaks;
  for (int failures = 1; failures < 40; ++failures) {
    IOManager iom(1, false, "poor");
    std::atomic<int> once{0};
    std::atomic<int> again{0};
    const auto started = std::make_shared<Fiber>([] {});
    iom.schedule(started);
    started->join();
    g_failures = failures;
    g_poor = coreOf(iom).workers()[0]->threadId();
    for (int i = 0; i < 5; ++i) iom.addTimer(1, [&once] { ++once; });
    const Timer::ptr recurring = iom.addTimer(
        1, [&again] { ++again; }, true);
    EXPECT_TRUE(eventually([&] { return once == 5 && again >= 3; })) << failures << " failures";
    g_poor = 0;
    EXPECT_TRUE(recurring->cancel());
    iom.stop();
    EXPECT_EQ(once, 5);
  }
}

// RT-4.4: the next look is a millisecond later. Cause: the worker went round without sleep for as long as there was none.
TEST(TimerMemory, AWorkerSleepsWhileThereIsNone) {
  constexpr uint64_t kLooks = 10;
  const test::LeakCheck leaks;
  IOManager iom(1, false, "poor");
  std::atomic<bool> ran{false};
  const auto started = std::make_shared<Fiber>([] {});
  iom.schedule(started);
  started->join();
  ASSERT_TRUE(eventually([&] { return coreOf(iom).workers()[0]->slot().mailbox.sleeping(); }));
  const WorkerStats before = iom.getWorkerStats();
  const int64_t begin_ns = steadyClock().nowNs();
  g_failures = std::numeric_limits<int>::max();
  g_poor = coreOf(iom).workers()[0]->threadId();
  iom.addTimer(0, [&ran] { ran = true; });
  EXPECT_TRUE(eventually([&] { return iom.getIOTimerStats().passes_cut >= kLooks; }));
  const WorkerStats after = iom.getWorkerStats();
  const int64_t end_ns = steadyClock().nowNs();
  g_poor = 0;
  EXPECT_FALSE(ran);
  const uint64_t sleeps = after.sleeps - before.sleeps;
  EXPECT_LE(sleeps, static_cast<uint64_t>((end_ns - begin_ns) / 1'000'000) + 4) << "one a millisecond";
  EXPECT_LE(after.polls - before.polls, sleeps + 1) << "and no look besides, but one that is being counted";
  EXPECT_TRUE(eventually([&] { return ran.load(); }));
  iom.stop();
}

}  // namespace
}  // namespace sylar
