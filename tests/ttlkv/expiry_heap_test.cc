// The heap of volatile keys against a sorted container.
#include "examples/ttlkv/expiry_heap.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <vector>

#include "tests/support/seed.h"

namespace ttlkv {
namespace {

TEST(TtlkvExpiryHeap, AgreesWithAnOrderedSet) {
  std::mt19937_64 random(sylar::test::seed());
  ExpiryHeap heap;
  std::multiset<int64_t> model;
  std::vector<std::unique_ptr<Item>> items;
  for (int step = 0; step < 20'000; ++step) {
    const auto at = static_cast<int64_t>(random() % 1000);
    const size_t chosen = items.empty() ? 0 : random() % items.size();
    switch (random() % 4) {
      case 0:
      case 1:
        items.push_back(std::make_unique<Item>());
        heap.insert(*items.back(), at);
        model.insert(at);
        break;
      case 2:
        if (items.empty()) break;
        model.erase(model.find(items[chosen]->second.expires_at_ms));
        heap.update(*items[chosen], at);
        model.insert(at);
        break;
      default:
        if (items.empty()) break;
        model.erase(model.find(items[chosen]->second.expires_at_ms));
        heap.erase(*items[chosen]);
        items.erase(items.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
    ASSERT_EQ(heap.size(), model.size());
    ASSERT_EQ(heap.earliest(), model.empty() ? kNever : *model.begin());
    if (step % 100 == 0) {
      ASSERT_TRUE(heap.verify());
    }
  }
}

TEST(TtlkvExpiryHeap, CostsAtMost64BytesForAKey) {
  ExpiryHeap heap;
  std::vector<Item> items(100'000);
  for (size_t i = 0; i < items.size(); ++i) {
    heap.insert(items[i], static_cast<int64_t>(i * 7919 % items.size()));
    const size_t in_entry = sizeof(Entry::expires_at_ms) + sizeof(Entry::heap_index);
    if (i > 1000) {
      ASSERT_LE(heap.memory() + (i + 1) * in_entry, 64 * (i + 1));
    }
  }
}

}  // namespace
}  // namespace ttlkv
