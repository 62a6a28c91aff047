// What an IdleList allocates, and what it does without memory. This program has its own operator new.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "sylar/timer/idle_list.h"
#include "tests/support/manual_timers.h"

namespace {
size_t g_allocations = 0;
bool g_none_left = false;

[[gnu::noinline]] void release(void* memory) { std::free(memory); }  // inline, gcc takes it for a mismatch
}  // namespace

void* operator new(size_t size) {
  ++g_allocations;
  void* const memory = g_none_left ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

struct Session {
  IdleList<Session>::Entry idle;
};

TEST(IdleListMemory, ATouchAllocatesNothing) {
  ManualTimers timers;
  IdleList<Session> list(timers, 1s, [](const std::shared_ptr<Session>&) {});
  std::vector<std::shared_ptr<Session>> all(100);
  for (auto& session : all) list.add((session = std::make_shared<Session>())->idle, session);
  const size_t before = g_allocations;
  for (int round = 0; round < 100; ++round) {
    timers.advanceMs(1);
    for (const auto& session : all) session->idle.touch();
  }
  EXPECT_EQ(g_allocations, before);
}

TEST(IdleListMemory, WithoutMemoryForTheGuardTheNextTouchTriesAgain) {
  ManualTimers timers;
  int called = 0;
  IdleList<Session> list(timers, 1s, [&](const std::shared_ptr<Session>&) { ++called; });
  const auto session = std::make_shared<Session>();
  g_none_left = true;
  list.add(session->idle, session);
  session->idle.touch();
  g_none_left = false;
  EXPECT_EQ(list.size(), 1u);
  EXPECT_FALSE(timers.hasTimer());
  session->idle.touch();
  EXPECT_TRUE(timers.hasTimer());
  timers.advanceMs(1000);
  timers.runDue();
  EXPECT_EQ(called, 1);
}

}  // namespace
}  // namespace sylar::test
