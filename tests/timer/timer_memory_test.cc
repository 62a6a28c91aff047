// What timers allocate, and what they promise when an allocation fails. This program has its own operator new.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "sylar/base/sanitizers.h"
#include "sylar/timer.h"
#include "tests/support/manual_timers.h"
#include "tests/timer/queues.h"

namespace {

constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();
thread_local size_t t_allocations = 0;
thread_local size_t t_allowed = kUnlimited;
thread_local const std::function<void()>* t_on_allocation = nullptr;

void* allocate(size_t size) {
  if (t_on_allocation != nullptr) (*t_on_allocation)();
  ++t_allocations;
  if (t_allowed == 0) throw std::bad_alloc();
  if (t_allowed != kUnlimited) --t_allowed;
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return allocate(size); }
void* operator new(size_t size, std::align_val_t alignment) {
  const size_t rounded = (size + static_cast<size_t>(alignment) - 1) & ~(static_cast<size_t>(alignment) - 1);
  if (t_allowed == 0) throw std::bad_alloc();
  ++t_allocations;
  if (t_allowed != kUnlimited) --t_allowed;
  void* memory = std::aligned_alloc(static_cast<size_t>(alignment), rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace sylar {
namespace {

using test::ManualTimers;

/// Calls `attempt` with 0, 1, 2, ... allocations allowed until it passes; after each failure calls `check`. How often it failed.
template <class Attempt, class Check>
size_t failEachAllocation(Attempt attempt, Check check) {
  for (size_t allowed = 0;; ++allowed) {
    t_allowed = allowed;
    try {
      attempt();
      t_allowed = kUnlimited;
      return allowed;
    } catch (const std::bad_alloc&) {
      t_allowed = kUnlimited;
      check();
    }
  }
}

template <class Queue>
class QueueMemory : public testing::Test {};
TYPED_TEST_SUITE(QueueMemory, test::Queues, test::QueueNames);

TYPED_TEST(QueueMemory, SteadyStateAllocatesNothing) {
  TypeParam queue;
  std::array<TimerNode, 256> nodes;
  for (size_t i = 0; i < nodes.size(); ++i) queue.insert(nodes[i], static_cast<int64_t>(i) * 10'000'000);
  const size_t before = t_allocations;
  for (int64_t now = 0; now < 1'000; ++now) {
    TimerList due;
    queue.expire(now * 10'000'000, 32, due);
    while (TimerNode* node = due.pop()) queue.insert(*node, (now + 100) * 10'000'000);
    queue.erase(nodes[7]);
    queue.insert(nodes[7], (now + 100) * 10'000'000);
    queue.update(nodes[9], (now + 50) * 10'000'000);
  }
  EXPECT_EQ(t_allocations, before);
  queue.verify();
}

// The wheel has nothing to allocate: there no insert fails.
TYPED_TEST(QueueMemory, FailedInsertChangesNothing) {
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
  GTEST_SKIP() << "a sanitizer needs memory to throw an exception";
#endif
  TypeParam queue;
  std::array<TimerNode, 1'000> nodes;
  size_t linked = 0;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit none{0, before.rlim_max};  // for the heaps, whose arrays are mappings
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &none), 0);
  t_allowed = 0;
  try {
    for (; linked < nodes.size(); ++linked) queue.insert(nodes[linked], static_cast<int64_t>(10'000 - linked) * 10'000'000);
  } catch (const std::bad_alloc&) {
  }
  t_allowed = kUnlimited;
  ::setrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(linked < nodes.size(), TypeParam::granularityNs() == 1);
  EXPECT_EQ(queue.size(), linked);
  EXPECT_EQ(queue.nextDue(), linked == 0 ? kNever : static_cast<int64_t>(10'001 - linked) * 10'000'000);
  queue.verify();
}

TEST(TimerMemory, FailedAddArmsNothing) {
  ManualTimers timers;
  const std::function<void()> cb = [] {};
  const auto failures = failEachAllocation([&] { timers.addTimer(10, cb); },
                                           [&] {
                                             EXPECT_FALSE(timers.hasTimer());
                                             EXPECT_EQ(timers.tickles, 0);
                                             EXPECT_EQ(timers.nextDueNs(), kNever);
                                           });
  EXPECT_GE(failures, 1u);  // of the timer; a queue has room for its first few
  EXPECT_TRUE(timers.hasTimer());
  EXPECT_EQ(timers.tickles, 1);
}

TEST(TimerMemory, FailedCollectionLosesNothingAndRunsNothingTwice) {
  for (const bool dispatch : {false, true}) {
    ManualTimers timers;
    std::array<int, 20> runs{};
    for (size_t i = 0; i < runs.size(); ++i)
      timers.addTimer(
          1 + i / 2, [&runs, i] { ++runs[i]; }, i % 4 == 0);
    timers.advanceMs(20);
    std::vector<std::function<void()>> cbs;
    std::vector<Timer::ptr> due;
    const auto failures = failEachAllocation(
        [&] {
          if (dispatch) timers.collectDue(runs.size(), due);
          if (!dispatch) timers.listExpiredCb(cbs);
        },
        [&] { EXPECT_EQ(timers.getNextTimer(), 0u); });
    EXPECT_GE(failures, 2u);
    for (const auto& cb : cbs) cb();
    for (const auto& timer : due) timer->fire();
    for (const int count : runs) EXPECT_EQ(count, 1);
  }
}

// The closures are made before the lock: an allocation may be slow, and others spin.
TEST(TimerMemory, ListingAllocatesNothingUnderTheLock) {
  ManualTimers timers;
  constexpr size_t kTimers = 300;
  int runs = 0;
  for (size_t i = 0; i < kTimers; ++i) {
    if (i % 3 == 0) timers.startTimer(std::chrono::milliseconds(1), [&runs] { ++runs; });
    if (i % 3 != 0)
      timers.addTimer(
          1, [&runs] { ++runs; }, i % 3 == 1);
  }
  timers.advanceMs(1);
  timers.dispatchDue();  // the list of those with an id has its size
  EXPECT_EQ(std::exchange(runs, 0), static_cast<int>(kTimers));
  for (size_t i = 0; i < kTimers / 3; ++i) timers.startTimer(std::chrono::milliseconds(1), [&runs] { ++runs; });
  timers.advanceMs(1);
  std::vector<Timer::ptr> none;
  size_t free = 0, locked = 0;
  const std::function<void()> look = [&] { ++(timers.tryCollectDue(0, none) ? free : locked); };  // some are still due
  std::vector<std::function<void()>> cbs;
  t_on_allocation = &look;
  timers.listExpiredCb(cbs);
  t_on_allocation = nullptr;
  EXPECT_GT(free, 2 * kTimers / 3);
  EXPECT_EQ(locked, 0u);
  EXPECT_EQ(cbs.size(), 2 * kTimers / 3);
  for (const auto& cb : cbs) cb();
  EXPECT_EQ(runs, static_cast<int>(2 * kTimers / 3));
}

// C-45: whatever is armed, and although nothing can be allocated.
TEST(TimerMemory, RolloverNeedsNone) {
  ManualTimers timers;
  constexpr size_t kTimers = 500;
  for (size_t i = 0; i < kTimers; ++i) timers.addTimer(1'000 + i, [] {});
  timers.advanceMs(-4'000'000);
  t_allowed = 0;
  const uint64_t next = timers.getNextTimer();
  t_allowed = kUnlimited;
  EXPECT_EQ(next, 0u);
  EXPECT_EQ(timers.runDue(), kTimers);
}

// C-56, as far as the manager goes: what is cancelled is gone.
TEST(TimerMemory, CancelAndReArmDoNotGrow) {
  ManualTimers timers;
  for (int i = 0; i < 10; ++i) timers.addTimer(3'600'000, [] {})->cancel();
  const auto timer = timers.addTimer(3'600'000, [] {});
  const size_t before = t_allocations;
  for (int i = 0; i < 1'000; ++i) timer->refresh();
  EXPECT_EQ(t_allocations, before);
  EXPECT_TRUE(timer->cancel());
  EXPECT_FALSE(timers.hasTimer());
}

// C-56: arm and cancel leave nothing behind, and allocate nothing.
TEST(TimerMemory, StartAndStopByIdAllocateNothing) {
  ManualTimers timers;
  for (int i = 0; i < 2'000; ++i) timers.stopTimer(timers.startTimer(std::chrono::hours(1), [] {}));
  const size_t before = t_allocations;
  for (int i = 0; i < 100'000; ++i) timers.stopTimer(timers.startTimer(std::chrono::hours(1), [&timers] { timers.hasTimer(); }));
  EXPECT_EQ(t_allocations, before);
  EXPECT_FALSE(timers.hasTimer());
}

// A round of expiry and dispatch allocates nothing either, once the driver's vector has its size.
TEST(TimerMemory, RunsByIdAllocateNothing) {
  ManualTimers timers;
  int runs = 0;
  std::vector<Timer::ptr> due;
  size_t before = 0;
  for (int round = 0; round < 100; ++round) {
    if (round == 50) before = t_allocations;
    for (int i = 0; i < 20; ++i) timers.startTimer(std::chrono::milliseconds(1), [&runs] { ++runs; });
    timers.advanceMs(1);
    timers.collectDue(100, due);
    for (const auto& timer : due) timer->fire();
    due.clear();
  }
  EXPECT_EQ(t_allocations, before);
  EXPECT_EQ(runs, 2'000);
}

// Nor does it where runs lag behind by one forever: what was run is given up, although never all was.
TEST(TimerMemory, RunsByIdThatAreNeverAllDoneDoNotGrow) {
  ManualTimers timers;
  int runs = 0;
  std::vector<Timer::ptr> due;
  size_t before = 0;
  for (int round = 0; round < 10'000; ++round) {
    if (round == 100) before = t_allocations;
    timers.startTimer(std::chrono::milliseconds(1), [&runs] { ++runs; });
    timers.advanceMs(1);
    timers.collectDue(100, due);
    if (round > 0) due.front()->fire();
    due.clear();
  }
  EXPECT_EQ(t_allocations, before);
  EXPECT_EQ(runs, 9'999);
}

// A callable that does not fit into a word is allocated; failing that, nothing is armed.
TEST(TimerMemory, FailedStartArmsNothing) {
  ManualTimers timers;
  std::array<char, 64> large{};
  const auto failures = failEachAllocation([&] { timers.startTimer(std::chrono::milliseconds(1), [large] { (void)large; }); },
                                           [&] {
                                             EXPECT_FALSE(timers.hasTimer());
                                             EXPECT_EQ(timers.tickles, 0);
                                           });
  EXPECT_GE(failures, 3u);
  EXPECT_TRUE(timers.hasTimer());
}

}  // namespace
}  // namespace sylar
