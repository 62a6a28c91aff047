// Each observer of a fiber's end is told once, outside the lock.
#include "sylar/fiber/end_observers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

namespace sylar {
namespace {

struct Observer : EndObserver {
  Observer() {
    claim = [](EndObserver* self) { return static_cast<Observer*>(self)->on_claim(); };
    ended = [](EndObserver* self) {
      ++static_cast<Observer*>(self)->told;
      static_cast<Observer*>(self)->on_end();
    };
  }
  std::function<bool()> on_claim = [] { return true; };
  std::function<void()> on_end = [] {};
  int told = 0;
};

TEST(EndObservers, EachIsToldOnceAndNobodyAfterwards) {
  EndObservers<> ends;
  Observer first, second, late;
  EXPECT_TRUE(ends.add(first));
  EXPECT_TRUE(ends.add(second));
  int changed = 0;
  ends.end(false, [&] { ++changed; });
  EXPECT_FALSE(ends.add(late));
  ends.end(false, [&] { ++changed; });
  EXPECT_EQ(changed, 2);
  EXPECT_EQ(first.told, 1);
  EXPECT_EQ(second.told, 1);
  EXPECT_EQ(late.told, 0);
  EXPECT_FALSE(ends.abandoned());
}

TEST(EndObservers, ThatItWasAbandonedStaysKnown) {
  EndObservers<> ends;
  ends.end(true, [] {});
  ends.end(false, [] {});
  EXPECT_TRUE(ends.abandoned());
  ends.clear();
  EXPECT_FALSE(ends.abandoned());
  Observer again;
  EXPECT_TRUE(ends.add(again));
  ends.remove(again);
}

TEST(EndObservers, WhoIsTakenBackOrSaysNoIsNotTold) {
  EndObservers<> ends;
  Observer gone, refuses, stays;
  refuses.on_claim = [] { return false; };
  for (Observer* observer : {&gone, &refuses, &stays}) ASSERT_TRUE(ends.add(*observer));
  ends.remove(gone);
  ends.end(false, [] {});
  ends.remove(refuses);
  EXPECT_EQ(gone.told, 0);
  EXPECT_EQ(refuses.told, 0);
  EXPECT_EQ(stays.told, 1);
}

// Cause: they were told under the lock, which everybody whom that woke took next.
TEST(EndObservers, WhoIsToldMayUseIt) {
  EndObservers<> ends;
  Observer first, second, late;
  bool abandoned = false;
  bool added = true;
  first.on_end = second.on_end = [&] {
    abandoned = ends.abandoned();
    added = ends.add(late);
  };
  ASSERT_TRUE(ends.add(first));
  ASSERT_TRUE(ends.add(second));
  ends.end(true, [] {});
  EXPECT_TRUE(abandoned);
  EXPECT_FALSE(added);
}

// The lock is held for a bounded time, however many there are.
TEST(EndObservers, ManyAreToldInGroups) {
  EndObservers<> ends;
  std::vector<Observer> observers(1'000);
  int claimed = 0;
  int told = 0;
  int most = 0;
  for (Observer& observer : observers) {
    observer.on_claim = [&] {
      most = std::max(most, ++claimed - told);
      return true;
    };
    observer.on_end = [&] { ++told; };
    ASSERT_TRUE(ends.add(observer));
  }
  ends.end(false, [] {});
  EXPECT_EQ(told, 1'000);
  EXPECT_EQ(most, 64);
}

// The last one that is told may be the last that uses it.
TEST(EndObservers, TheLastMayDestroyIt) {
  auto ends = std::make_unique<EndObservers<>>();
  Observer last;
  last.on_end = [&] { ends.reset(); };
  ASSERT_TRUE(ends->add(last));
  ends->end(false, [] {});
  EXPECT_EQ(last.told, 1);
  EXPECT_EQ(ends, nullptr);
}

}  // namespace
}  // namespace sylar
