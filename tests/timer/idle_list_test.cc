#include "sylar/idle_list.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/timer_stats.h"
#include "tests/support/manual_timers.h"
#ifdef SYLAR_COUNTS_QUEUE_OPERATIONS
#include "tests/support/queue_operations.h"
#endif

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

constexpr int kTimeoutMs = 1000;

struct Session {
  explicit Session(int its_number) : number(its_number) {}
  const int number;
  IdleList<Session>::Entry idle;
};
using SessionPtr = std::shared_ptr<Session>;

class IdleListTest : public testing::Test {
 protected:
  SessionPtr added(int number) {
    auto session = std::make_shared<Session>(number);
    list->add(session->idle, session);
    return session;
  }
  /// Time passes a millisecond at a time, with what is due, as in a loop; the numbers that were called back.
  std::vector<int> after(int ms) {
    for (int i = 0; i < ms; ++i) {
      timers.advanceMs(1);
      timers.runDue();
    }
    return std::exchange(called, {});
  }

  ManualTimers timers;
  std::vector<int> called;
  std::unique_ptr<IdleList<Session>> list = std::make_unique<IdleList<Session>>(
      timers, std::chrono::milliseconds(kTimeoutMs), [this](const SessionPtr& one) { called.push_back(one->number); });
};

using Numbers = std::vector<int>;

// K-1: not before the timeout, and then at once.
TEST_F(IdleListTest, AnEntryIsDueTheTimeoutAfterItWasAdded) {
  const auto one = added(1);
  EXPECT_EQ(after(kTimeoutMs - 1), Numbers{});
  EXPECT_EQ(after(1), Numbers{1});
  EXPECT_EQ(after(10 * kTimeoutMs), Numbers{}) << "once";
}

TEST_F(IdleListTest, ATouchBeginsItAnew) {
  const auto one = added(1);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(after(kTimeoutMs / 2), Numbers{});
    one->idle.touch();
  }
  EXPECT_EQ(after(kTimeoutMs - 1), Numbers{});
  EXPECT_EQ(after(1), Numbers{1});
}

TEST_F(IdleListTest, EntriesFallDueInTheOrderOfTheirTouches) {
  const SessionPtr all[] = {added(0), added(1), added(2), added(3), added(4)};
  for (const int number : {3, 0, 4, 1, 3, 2}) all[number]->idle.touch();
  EXPECT_EQ(after(kTimeoutMs - 1), Numbers{});
  EXPECT_EQ(after(1), (Numbers{0, 4, 1, 3, 2}));
}

TEST_F(IdleListTest, EachAtItsOwnTime) {
  const auto one = added(1);
  after(10);
  const auto two = added(2);
  after(10);
  const auto three = added(3);
  one->idle.touch();
  EXPECT_EQ(after(kTimeoutMs - 11), Numbers{});
  EXPECT_EQ(after(1), Numbers{2});
  EXPECT_EQ(after(9), Numbers{});
  EXPECT_EQ(after(1), (Numbers{3, 1}));
}

// An IOManager's stop() waits for what is armed: an empty list has nothing.
TEST_F(IdleListTest, OneTimerGuardsAllAndNoneAnEmptyList) {
  EXPECT_FALSE(timers.hasTimer());
  std::vector<SessionPtr> all;
  for (int i = 0; i < 100; ++i) all.push_back(added(i));
  EXPECT_EQ(timers.tickles, 1);
  timers.advanceMs(kTimeoutMs);
  EXPECT_EQ(timers.listDue().size(), 1u);  // dropped, not run: the list can no longer be served
  EXPECT_FALSE(timers.hasTimer());
}

TEST_F(IdleListTest, TheGuardGoesWithTheLastEntry) {
  auto one = added(1);
  auto two = added(2);
  EXPECT_TRUE(one->idle.remove());
  EXPECT_TRUE(timers.anyWillFallDue());
  two = nullptr;
  EXPECT_FALSE(timers.hasTimer());
  EXPECT_EQ(timers.gone, 1);
  one->idle.touch();
  EXPECT_FALSE(timers.hasTimer()) << "removed for good";
  list->add(one->idle, one);
  EXPECT_TRUE(timers.hasTimer());
  EXPECT_EQ(after(kTimeoutMs), Numbers{1});
}

TEST_F(IdleListTest, WhatIsRemovedOrGoneIsNotCalledBack) {
  auto one = added(1), two = added(2);
  const auto three = added(3);
  EXPECT_EQ(list->size(), 3u);
  EXPECT_TRUE(one->idle.remove());
  EXPECT_FALSE(one->idle.remove());
  two = nullptr;
  EXPECT_EQ(list->size(), 1u);
  EXPECT_EQ(after(2 * kTimeoutMs), Numbers{3});
  EXPECT_FALSE(three->idle.remove()) << "it was called back";
}

TEST_F(IdleListTest, AnEntryBesideWhatItStandsForPassesWhenThatIsGone) {
  IdleList<Session>::Entry entry;
  {
    const auto one = std::make_shared<Session>(1);
    list->add(entry, one);
  }
  EXPECT_EQ(after(kTimeoutMs), Numbers{});
  EXPECT_EQ(list->size(), 0u);
  EXPECT_FALSE(timers.hasTimer());
}

TEST_F(IdleListTest, AnEntryThatIsInNoListMayBeTouchedAndRemoved) {
  IdleList<Session>::Entry entry;
  entry.touch();
  EXPECT_FALSE(entry.remove());
}

TEST_F(IdleListTest, ACallbackMayRemoveTouchAndAdd) {
  SessionPtr one, two, three, late;
  IdleList<Session> rounds(timers, 10ms, [&](const SessionPtr& session) {
    called.push_back(session->number);
    if (session == one) {
      EXPECT_FALSE(one->idle.remove()) << "its own callback has begun";
      EXPECT_TRUE(two->idle.remove());
      late = std::make_shared<Session>(4);
      rounds.add(late->idle, late);
    }
    if (session == three) three->idle.touch();  // call me again
  });
  one = std::make_shared<Session>(1), two = std::make_shared<Session>(2), three = std::make_shared<Session>(3);
  for (const auto& session : {one, two, three}) rounds.add(session->idle, session);
  EXPECT_EQ(after(10), (Numbers{1, 3}));
  EXPECT_EQ(after(10), (Numbers{4, 3}));
  EXPECT_EQ(after(10), Numbers{3});
  EXPECT_TRUE(three->idle.remove());
}

TEST_F(IdleListTest, ACallbackMayDropWhatItStandsFor) {
  std::vector<SessionPtr> kept;
  IdleList<Session> dropping(timers, 10ms, [&](const SessionPtr& session) {
    called.push_back(session->number);
    kept.clear();  // the others, too
  });
  for (int i = 0; i < 3; ++i) {
    kept.push_back(std::make_shared<Session>(i));
    dropping.add(kept.back()->idle, kept.back());
  }
  EXPECT_EQ(after(20), Numbers{0});
  EXPECT_EQ(dropping.size(), 0u);
}

TEST_F(IdleListTest, ACallbackMayEndItsList) {
  const auto one = added(1), two = added(2);
  IdleList<Session> ending(timers, 10ms, [this](const SessionPtr& session) {
    called.push_back(session->number);
    list = nullptr;
  });
  const auto three = std::make_shared<Session>(3);
  ending.add(three->idle, three);
  EXPECT_EQ(after(2 * kTimeoutMs), Numbers{3});
  one->idle.touch();  // harmless
  EXPECT_FALSE(one->idle.remove());
  EXPECT_FALSE(timers.hasTimer());
}

TEST_F(IdleListTest, MayEndInItsOwnCallback) {
  std::unique_ptr<IdleList<Session>> own;
  const auto captured = std::make_shared<int>(5);
  own = std::make_unique<IdleList<Session>>(timers, 10ms, [&, captured](const SessionPtr& session) {
    own = nullptr;
    called.push_back(session->number + *captured);
  });
  const auto one = std::make_shared<Session>(1), two = std::make_shared<Session>(2);
  own->add(one->idle, one);
  own->add(two->idle, two);
  EXPECT_EQ(after(20), Numbers{6});
  one->idle.remove(), two->idle.remove();
  EXPECT_FALSE(timers.hasTimer());
}

TEST_F(IdleListTest, EndsWithEntriesLinkedAndThemBehindIt) {
  const auto one = added(1), two = added(2);
  list = nullptr;
  EXPECT_FALSE(timers.hasTimer());
  EXPECT_EQ(after(2 * kTimeoutMs), Numbers{});
  one->idle.touch();
  EXPECT_FALSE(one->idle.remove());
  list =
      std::make_unique<IdleList<Session>>(timers, 1ms, [this](const SessionPtr& session) { called.push_back(session->number); });
  list->add(one->idle, one);
  EXPECT_EQ(after(1), Numbers{1});
}

// "Linked nowhere" is what add() asks for: touched again by its old list an entry would be linked in two.
TEST_F(IdleListTest, AnEntryThatFellDueMayBeAddedAnew) {
  const auto one = added(1);
  EXPECT_EQ(after(kTimeoutMs), Numbers{1});
  list->add(one->idle, one);
  EXPECT_EQ(after(kTimeoutMs), Numbers{1});
  IdleList<Session> other(timers, 1ms, [this](const SessionPtr& session) { called.push_back(-session->number); });
  other.add(one->idle, one);
  EXPECT_EQ(after(1), Numbers{-1});
  one->idle.touch();
  EXPECT_EQ(list->size(), 0u);
  EXPECT_EQ(other.size(), 1u);
}

TEST_F(IdleListTest, AnEntryWhoseListIsGoneMayBeAddedToAnother) {
  const auto one = added(1);
  list = nullptr;
  IdleList<Session> other(timers, 1ms, [this](const SessionPtr& session) { called.push_back(session->number); });
  other.add(one->idle, one);
  EXPECT_EQ(after(1), Numbers{1});
}

using IdleListDeathTest = IdleListTest;
TEST_F(IdleListDeathTest, AnEntryThatIsLinkedMayNotBeAdded) {
  const auto one = added(1);
  EXPECT_DEATH(list->add(one->idle, one), "check failed: !linked");
}

// What a callback captures is not kept by entries that were added once.
TEST_F(IdleListTest, TheCallbackGoesWithItsList) {
  const auto one = std::make_shared<Session>(1);
  auto captured = std::make_shared<int>(5);
  const std::weak_ptr<int> kept = captured;
  auto own = std::make_unique<IdleList<Session>>(timers, 10ms, [captured](const SessionPtr&) {});
  captured = nullptr;
  own->add(one->idle, one);
  own = nullptr;
  EXPECT_TRUE(kept.expired());
}

TEST_F(IdleListTest, TheCallbackThatEndsItsListGoesWhenItHasEnded) {
  std::unique_ptr<IdleList<Session>> own;
  auto captured = std::make_shared<int>(5);
  const std::weak_ptr<int> kept = captured;
  own = std::make_unique<IdleList<Session>>(timers, 10ms, [&own, &kept, captured](const SessionPtr&) {
    own = nullptr;
    EXPECT_FALSE(kept.expired());
  });
  captured = nullptr;
  const auto one = std::make_shared<Session>(1);
  own->add(one->idle, one);
  after(10);
  EXPECT_EQ(own, nullptr);
  EXPECT_TRUE(kept.expired());
}

TEST_F(IdleListTest, MayOutliveItsTimers) {
  auto own = std::make_unique<ManualTimers>();
  IdleList<Session> orphan(*own, 1ms, [this](const SessionPtr& session) { called.push_back(session->number); });
  const auto one = std::make_shared<Session>(1);
  orphan.add(one->idle, one);
  own->close();
  EXPECT_TRUE(one->idle.remove());
  orphan.add(one->idle, one);
  EXPECT_EQ(called, Numbers{});
}

TEST_F(IdleListTest, WhatACallbackThrowsConcernsNobodyElse) {
  IdleList<Session> throwing(timers, 10ms, [this](const SessionPtr& session) {
    called.push_back(session->number);
    throw std::runtime_error("for the log");
  });
  const auto one = std::make_shared<Session>(1), two = std::make_shared<Session>(2);
  throwing.add(one->idle, one);
  throwing.add(two->idle, two);
  EXPECT_EQ(after(10), (Numbers{1, 2}));
  one->idle.touch();
  EXPECT_EQ(after(10), Numbers{1});
}

// The end of a thread unwinds a callback without being an exception of it: the list goes on, on other threads.
TEST_F(IdleListTest, ACallbackMayEndItsThread) {
  IdleList<Session> ending(timers, 10ms, [this](const SessionPtr& session) {
    called.push_back(session->number);
    if (session->number == 1) ::pthread_exit(nullptr);
  });
  const auto one = std::make_shared<Session>(1), two = std::make_shared<Session>(2);
  ending.add(one->idle, one);
  ending.add(two->idle, two);
  timers.advanceMs(10);
  const auto run = [](void* manager) -> void* {
    static_cast<ManualTimers*>(manager)->dispatchDue();
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(::pthread_create(&thread, nullptr, run, &timers), 0);
  ASSERT_EQ(::pthread_join(thread, nullptr), 0);
  EXPECT_EQ(ending.size(), 1u);
  EXPECT_EQ(after(1), (Numbers{1, 2}));
  EXPECT_TRUE(ending.size() == 0 && !timers.hasTimer());
}

// C-46: other timers have their turn in a storm.
TEST_F(IdleListTest, AStormIsServedInParts) {
  std::vector<SessionPtr> all;
  for (int i = 0; i < 1000; ++i) all.push_back(added(i));
  timers.advanceMs(kTimeoutMs);
  bool other = false;
  timers.addTimer(0, [&] {
    other = true;
    EXPECT_LT(called.size(), all.size());
  });
  size_t passes = 0;
  while (timers.hasTimer()) {
    timers.runDue();
    ++passes;
  }
  EXPECT_TRUE(other);
  EXPECT_EQ(passes, 4u);
  ASSERT_EQ(called.size(), 1000u);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(called[static_cast<size_t>(i)], i);
}

// Within the slack a touch changes nothing, and nothing is due before its time for that.
TEST_F(IdleListTest, SlackIsAddedToTheTimeout) {
  IdleList<Session> coarse(
      timers, 100ms, [this](const SessionPtr& session) { called.push_back(session->number); }, 10ms);
  const auto one = std::make_shared<Session>(1);
  coarse.add(one->idle, one);
  after(9);
  one->idle.touch();  // passed over
  EXPECT_EQ(after(100), Numbers{});
  EXPECT_EQ(after(1), Numbers{1});
  one->idle.touch();
  after(10);
  one->idle.touch();  // linked again
  EXPECT_EQ(after(109), Numbers{});
  EXPECT_EQ(after(1), Numbers{1});
}

// Time stands on a step back and goes on at its true rate; as C-45.
TEST_F(IdleListTest, AClockThatStepsBackMakesNobodyWaitLonger) {
  for (const int64_t step_ms : {5, 3'000'000, 36'000'000}) {
    const auto one = added(1);
    after(kTimeoutMs / 2);
    one->idle.touch();
    timers.advanceMs(-step_ms);
    one->idle.touch();
    EXPECT_EQ(after(kTimeoutMs - 1), Numbers{}) << step_ms;
    EXPECT_EQ(after(1), Numbers{1}) << step_ms;
  }
}

TEST_F(IdleListTest, RefusesATimeoutThatIsNone) {
  const auto make = [this](std::chrono::nanoseconds timeout, std::chrono::nanoseconds slack) {
    IdleList<Session>(
        timers, timeout, [](const SessionPtr&) {}, slack);
  };
  EXPECT_THROW(make(0ms, 0ms), std::invalid_argument);
  EXPECT_THROW(make(-1ms, 0ms), std::invalid_argument);
  EXPECT_THROW(make(1ms, -1ms), std::invalid_argument);
}

TEST_F(IdleListTest, AHugeTimeoutIsNeverReached) {
  IdleList<Session> patient(
      timers, std::chrono::nanoseconds::max(), [this](const SessionPtr& session) { called.push_back(session->number); }, 1h);
  const auto one = std::make_shared<Session>(1);
  patient.add(one->idle, one);
  timers.advanceMs(int64_t{100} * 365 * 86'400'000);
  timers.runDue();
  EXPECT_EQ(called, Numbers{});
}

TEST_F(IdleListTest, RunsInFibersOfAnIOManager) {
  std::vector<uint64_t> fibers;
  {
    IOManager iom(1, false, "idle");
    IdleList<Session> served(iom, 1ms, [&](const SessionPtr& session) {
      Fiber::YieldToReady();  // may suspend
      fibers.push_back(Fiber::GetFiberId());
      if (session->number == 1 && fibers.size() < 3) session->idle.touch();
    });
    const auto one = std::make_shared<Session>(1);
    served.add(one->idle, one);
    iom.stop();  // waits for what is linked
  }
  ASSERT_EQ(fibers.size(), 3u);
  for (const uint64_t fiber : fibers) EXPECT_NE(fiber, 0u);
}

// Each is touched every half timeout, and they take turns. The guard comes when the old head would have been due; the new one was
// touched half a timeout ago.
TEST_F(IdleListTest, TheGuardOfBusyEntriesIsArmedTwiceATimeout) {
  constexpr int kEntries = 5000;
  constexpr int kTimeouts = 10;
  std::vector<SessionPtr> all;
  for (int i = 0; i < kEntries; ++i) all.push_back(added(i));
  for (int ms = 0; ms < kTimeouts * kTimeoutMs; ++ms) {
    timers.advanceMs(1);
    for (int i = ms % (kTimeoutMs / 2); i < kEntries; i += kTimeoutMs / 2) all[static_cast<size_t>(i)]->idle.touch();
    timers.runDue();
  }
  EXPECT_EQ(called, Numbers{});
  EXPECT_GT(timers.getStats().armed, 1u);
  EXPECT_LE(timers.getStats().armed, 2u * kTimeouts);
}

#ifdef SYLAR_COUNTS_QUEUE_OPERATIONS
TEST_F(IdleListTest, ATouchIsNoQueueOperation) {
  std::vector<SessionPtr> all;
  const uint64_t start = queueOperations();
  for (int i = 0; i < 1000; ++i) all.push_back(added(i));
  EXPECT_EQ(queueOperations(), start + 1) << "the guard";
  for (int round = 0; round < 100; ++round) {
    for (const auto& session : all) session->idle.touch();
  }
  EXPECT_EQ(queueOperations(), start + 1);
  timers.advanceMs(kTimeoutMs - 1);
  for (const auto& session : all) session->idle.touch();
  timers.advanceMs(1);
  EXPECT_EQ(timers.runDue(), 1u);
  EXPECT_EQ(queueOperations(), start + 2) << "armed for the new head";
  EXPECT_EQ(called, Numbers{});
  all.clear();
  EXPECT_EQ(queueOperations(), start + 3);
}
#endif

}  // namespace
}  // namespace sylar::test
