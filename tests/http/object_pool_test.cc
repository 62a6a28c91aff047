// An object that a handler has let go is used again. One that anybody still has is not.
#include "sylar/http/object_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace sylar::http {
namespace {

std::atomic<int> g_alive{0};

struct Thing {
  Thing() { ++g_alive; }
  ~Thing() { --g_alive; }
  void reset() { value = 0; }

  int value = 0;
};

using Things = ObjectPool<Thing>;

TEST(ObjectPool, NextOneIsTheLastOneAsNew) {
  std::shared_ptr<Thing> one = Things::take();
  const Thing* const last = one.get();
  one->value = 1;
  one.reset();
  one = Things::take();
  EXPECT_EQ(one.get(), last);
  EXPECT_EQ(one->value, 0);
}

TEST(ObjectPool, WeakReferenceExpiresAndNeverSeesTheNext) {
  std::shared_ptr<Thing> one = Things::take();
  std::weak_ptr<Thing> weak = one;
  one.reset();
  EXPECT_TRUE(weak.expired());
  const std::shared_ptr<Thing> next = Things::take();
  EXPECT_EQ(weak.lock(), nullptr);
}

TEST(ObjectPool, KeptByAnybodyItIsNobodyElses) {
  std::shared_ptr<Thing> one = Things::take();
  const std::shared_ptr<Thing> kept = one;
  one.reset();
  EXPECT_NE(Things::take(), kept);
}

TEST(ObjectPool, ThreadThatLetsItGoHasItNext) {
  std::shared_ptr<Thing> one = Things::take();
  const Thing* const last = one.get();
  const int before = g_alive;
  std::thread([&, one = std::move(one)]() mutable {
    one.reset();
    EXPECT_EQ(Things::take().get(), last);
  }).join();
  EXPECT_EQ(g_alive, before - 1) << "it went with the thread";
}

TEST(ObjectPool, TooManyAreDeletedAndTheRestWithTheThread) {
  const int before = g_alive;
  std::thread([&] {
    std::vector<std::shared_ptr<Thing>> many;
    while (many.size() < 100) many.push_back(Things::take());
    EXPECT_EQ(g_alive, before + 100);
    many.clear();
    EXPECT_EQ(g_alive, before + 16);
  }).join();
  EXPECT_EQ(g_alive, before);
}

/// A thread_local that was there before the spares ends after them.
struct EndsLater {
  ~EndsLater() {
    kept.reset();
    Things::take().reset();
  }
  std::shared_ptr<Thing> kept;
};

TEST(ObjectPool, MayBeLetGoWhenTheSparesOfTheThreadHaveEnded) {
  const int before = g_alive;
  std::thread([] {
    static thread_local EndsLater ends_later;
    ends_later.kept = Things::take();
    Things::take().reset();
  }).join();
  EXPECT_EQ(g_alive, before);
}

// Made for TSan: who reads its value by a weak reference, and who lets it go, are different threads.
TEST(ObjectPool, LastReferenceEndsInAnyThread) {
  for (int round = 0; round < 200; ++round) {
    std::shared_ptr<Thing> one = Things::take();
    one->value = 7;
    std::thread other([weak = std::weak_ptr(one)] {
      const std::shared_ptr<Thing> locked = weak.lock();
      EXPECT_TRUE(locked == nullptr || locked->value == 7);
    });
    one.reset();
    Things::take()->value = 8;
    other.join();
  }
}

}  // namespace
}  // namespace sylar::http
