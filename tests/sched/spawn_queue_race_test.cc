// Owner, thieves and producers on one spawn queue, for a bounded number of items. Made for ThreadSanitizer: the items are plain.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "sylar/base/sanitizers.h"
#include "sylar/sched/spawn_queue.h"

namespace sylar {
namespace {

#ifdef SYLAR_TSAN
constexpr size_t kItems = 10'000;
#else
constexpr size_t kItems = 50'000;
#endif
constexpr size_t kSources = 3;

struct Item : SpawnNode {
  Item(size_t from, size_t what) : source(from), value(what) {}
  const size_t source;
  const size_t value;
  size_t taken = 0;
};

/// The nodes that one consumer got, of each source in its order.
struct Consumer {
  std::vector<size_t> next = std::vector<size_t>(kSources, 0);
  size_t count = 0;

  void got(QueueNode* node) {
    auto& item = *static_cast<Item*>(node);
    ASSERT_GE(item.value, next[item.source]) << "of source " << item.source;
    next[item.source] = item.value + 1;
    ++item.taken;
    ++count;
  }
};

// RT-7.5
TEST(SpawnQueueRace, EveryItemIsTakenOrStolenOnceInTheOrderOfItsSource) {
  SpawnQueue<> queue;
  std::deque<Item> items;
  for (size_t i = 0; i < kSources * kItems; ++i) items.emplace_back(i / kItems, i % kItems);
  std::atomic<size_t> producing{kSources};
  std::atomic<size_t> firsts{0};
  std::atomic<size_t> total{0};
  std::vector<std::thread> threads;
  for (size_t source = 0; source < kSources; ++source) {
    threads.emplace_back([&, source] {
      for (size_t i = 0; i < kItems; ++i) {
        const Pushed pushed = queue.push(&items[source * kItems + i]);
        ASSERT_NE(pushed, Pushed::kRejected);
        if (pushed == Pushed::kFirst) firsts.fetch_add(1);
      }
      producing.fetch_sub(1);
    });
  }
  for (int owner = 0; owner < 2; ++owner) {
    threads.emplace_back([&] {
      Consumer consumer;
      while (producing.load() > 0 || queue.count() > 0) {
        if (QueueNode* node = queue.take()) consumer.got(node);
      }
      total.fetch_add(consumer.count);
    });
  }
  for (int thief = 0; thief < 2; ++thief) {
    threads.emplace_back([&] {
      Consumer consumer;
      while (producing.load() > 0 || queue.count() > 0) {
        NodeList loot;
        const size_t before = consumer.count;
        const size_t share = queue.steal(&loot);
        while (QueueNode* node = loot.pop()) consumer.got(node);
        ASSERT_EQ(consumer.count - before, share);
      }
      total.fetch_add(consumer.count);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(total.load(), kSources * kItems);
  EXPECT_TRUE(std::all_of(items.begin(), items.end(), [](const Item& item) { return item.taken == 1; }));
  EXPECT_GE(firsts.load(), 1u);
}

// CD-S12: what was accepted is taken, also when the queue closes in the middle.
TEST(SpawnQueueRace, WhatWasAcceptedBeforeTheCloseIsTaken) {
  for (int round = 0; round < 100; ++round) {
    SpawnQueue<> queue;
    std::atomic<size_t> accepted{0};
    std::atomic<bool> closed{false};
    std::vector<std::deque<Item>> items(kSources);
    std::vector<std::thread> threads;
    for (size_t source = 0; source < kSources; ++source) {
      threads.emplace_back([&, source] {
        for (size_t i = 0; i < 2'000; ++i) {
          Item& item = items[source].emplace_back(source, i);
          if (queue.push(&item) == Pushed::kRejected) return;
          accepted.fetch_add(1);
        }
      });
    }
    size_t taken = 0;
    for (int tries = 0; !closed.load(); ++tries) {
      while (queue.take() != nullptr) ++taken;
      if (tries > 20) closed = queue.closeIfEmpty([] { return true; });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(queue.take(), nullptr);
    EXPECT_EQ(accepted.load(), taken);
  }
}

}  // namespace
}  // namespace sylar
