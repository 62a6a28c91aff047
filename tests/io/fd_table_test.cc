// The table of entries: which numbers it knows, and that it grows under everybody's feet without losing anything.
#include "sylar/io/fd_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <thread>
#include <vector>

#include "sylar/base/sys.h"

namespace sylar {
namespace {

// CD-I4
TEST(FdTable, NumbersThatNoDescriptorHasAreRefused) {
  for (const int fd : {-1, -2, INT_MIN, INT_MAX, 4'096 * 4'096, 4'096 * 4'096 + 1}) {
    EXPECT_EQ(FdTable::at(fd), nullptr) << fd;
    EXPECT_EQ(FdTable::find(fd), nullptr) << fd;
    FdTable::opened(fd, FdKind::kTcp, true, false);
  }
}

TEST(FdTable, AnEntryIsMadeWhenItIsWantedAndStays) {
  constexpr int kUnused = 9'000'000;
  EXPECT_EQ(FdTable::find(kUnused), nullptr);
  Entry* const entry = FdTable::at(kUnused);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(FdTable::find(kUnused), entry);
  EXPECT_EQ(FdTable::at(kUnused), entry);
  EXPECT_EQ(FdTable::at(kUnused + 1), entry + 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(entry) % alignof(Entry), 0u);
  EXPECT_NE(FdTable::at(0), nullptr);
  EXPECT_NE(FdTable::at(4'096 * 4'096 - 1), nullptr) << "the last";
}

TEST(FdTable, WhatACreatorSaysIsRemembered) {
  constexpr int kNumber = 8'000'000;
  FdTable::opened(kNumber, FdKind::kPipe, true, true);
  Entry* const entry = FdTable::find(kNumber);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->kind(), FdKind::kPipe);
  EXPECT_TRUE(entry->isPrivate());
  EXPECT_TRUE(entry->nonblocking());
}

TEST(FdTable, CloseOfAnUnknownNumberIsTheRealClose) {
  int calls = 0;
  EXPECT_EQ(FdTable::close(7'000'000, [&] { return ++calls; }), 1);
  EXPECT_EQ(FdTable::close(-1, [&] { return ++calls; }), 2);
}

// CD-I3, FM-25: threads that make the table grow at the same places see the same entries; nothing they write is lost.
TEST(FdTableRace, GrowthLosesNothing) {
  constexpr int kThreads = 4;
  constexpr int kChunks = 64;
  constexpr int kFirst = 4'096 * 1'000;
  std::vector<std::vector<Entry*>> seen(kThreads);
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      ready.fetch_add(1);
      while (ready.load() < kThreads) std::this_thread::yield();
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        Entry* const entry = FdTable::at(kFirst + 4'096 * chunk + 17);
        ASSERT_NE(entry, nullptr);
        entry->wakeAll(Direction::kRead);
        ASSERT_TRUE(entry->pin(0));
        entry->unpin();
        seen[static_cast<size_t>(t)].push_back(entry);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (int t = 1; t < kThreads; ++t) EXPECT_EQ(seen[static_cast<size_t>(t)], seen[0]);
  for (const Entry* entry : seen[0]) EXPECT_EQ(entry->edges(Direction::kRead), static_cast<uint64_t>(kThreads));
}

// Generations, pins and events of one number, from several threads.
TEST(FdTableRace, ANumberThatIsOpenedPinnedAndClosedAtOnceStaysWhole) {
  constexpr int kNumber = 4'096 * 2'000 + 5;
  constexpr int kRounds = 5'000;
  Entry& entry = *FdTable::at(kNumber);
  std::atomic<bool> closed{false};  // what a pin protects: true only when no pin of an older generation is held
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!over) {
        const uint64_t life = entry.life();
        if (Entry::isClosing(life) || !entry.pin(Entry::generationOf(life))) continue;
        EXPECT_FALSE(closed.load());
        entry.unpin();
      }
    });
  }
  threads.emplace_back([&] {
    while (!over) entry.onEvent(Entry::generationOf(entry.life()), EPOLLIN | EPOLLOUT);
  });
  const uint32_t before = Entry::generationOf(entry.life());
  for (int round = 0; round < kRounds; ++round) {
    FdTable::opened(kNumber, FdKind::kTcp, true, false);
    FdTable::close(kNumber, [&] {
      closed = true;
      closed = false;  // the kernel gives the number to the next
      return 0;
    });
  }
  over = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(Entry::generationOf(entry.life()), before + 2 * kRounds);
  EXPECT_FALSE(Entry::isClosing(entry.life()));
  EXPECT_TRUE(entry.pin(Entry::generationOf(entry.life())));
  entry.unpin();
}

}  // namespace
}  // namespace sylar
