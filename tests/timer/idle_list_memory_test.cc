// What an IdleList allocates, and what it does without memory, or while others go. This program has its own operators new and
// delete.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/idle_list.h"
#include "tests/support/manual_timers.h"

namespace {
std::atomic<size_t> g_allocations{0};
std::atomic<bool> g_none_left{false};
thread_local const std::function<void()>* t_before_next = nullptr;  // called before the thread's next allocation

[[gnu::noinline]] void release(void* memory) { std::free(memory); }  // inline, gcc takes it for a mismatch
}  // namespace

void* operator new(size_t size) {
  ++g_allocations;
  if (const auto* const call = std::exchange(t_before_next, nullptr)) (*call)();
  void* const memory = g_none_left ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t size) noexcept {
  std::memset(memory, 0x5a, size);  // whoever uses it still, finds out
  release(memory);
}

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

// A manager that has ended answers like one that has too many timers: no memory was short, but the guard is not armed.
TEST(IdleListMemory, WithoutATimerForTheGuardTheNextTouchTriesAgain) {
  ManualTimers timers;
  IdleList<Session> list(timers, 1s, [](const std::shared_ptr<Session>&) {});
  const auto session = std::make_shared<Session>();
  timers.close();
  list.add(session->idle, session);
  const size_t before = g_allocations;
  session->idle.touch();
  EXPECT_GT(g_allocations, before);
}

// A touch arms the guard without the lock: list and manager may go meanwhile.
TEST(IdleListMemory, AListAndItsTimersMayGoWhileATouchArmsTheGuard) {
  auto timers = std::make_unique<ManualTimers>();
  auto list = std::make_unique<IdleList<Session>>(*timers, 1s, [](const std::shared_ptr<Session>&) {});
  const auto session = std::make_shared<Session>();
  list->add(session->idle, session);
  timers->advanceMs(1000);
  timers->runDue();
  EXPECT_FALSE(timers->hasTimer());
  std::atomic<int> stage{0};
  const std::function<void()> wait = [&] {
    stage = 1;
    stage.notify_one();
    stage.wait(1);
  };
  std::thread toucher([&] {
    t_before_next = &wait;
    session->idle.touch();
    EXPECT_EQ(std::exchange(t_before_next, nullptr), nullptr);
  });
  stage.wait(0);
  list = nullptr;
  timers = nullptr;
  stage = 2;
  stage.notify_one();
  toucher.join();
}

}  // namespace
}  // namespace sylar::test
