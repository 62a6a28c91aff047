// Tests who is woken for unstarted work, in a forced order, with workers that sleep one inside the other on one thread.
#include "sylar/sched/idle.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <functional>

#include "sylar/sched/own_spawn_queue.h"

namespace sylar {
namespace {

struct Slot {
  bool wake() {
    if (!mailbox.tryWake()) return false;
    ++woken;
    return true;
  }
  Mailbox<> mailbox;
  int woken = 0;
};

struct FakeWorker {
  Slot& slot() { return m_slot; }
  SpawnQueue<>& spawned() { return own.queue(); }
  bool detached() const { return false; }
  size_t waiting() const { return 0; }
  size_t joinsElsewhere() const { return 0; }
  size_t uncancelled() const { return 0; }
  size_t live() const { return 0; }

  OwnSpawnQueue<> own;

 private:
  Slot m_slot;
};

class IdleWorkersTest : public testing::Test {
 protected:
  static constexpr size_t kWorkers = 3;

  struct Host {
    const std::array<FakeWorker*, kWorkers>& workers() const { return pointers; }
    bool nothingExpected() const { return true; }
    void ended() {}
    std::array<FakeWorker, kWorkers> all;
    std::array<FakeWorker*, kWorkers> pointers{&all[0], &all[1], &all[2]};
  };

  /// Runs `body` while workers 1 and 2 sleep; worker 0 is awake.
  void whileTheOthersSleep(const std::function<void()>& body) {
    const auto never = [] { return false; };
    idle.sleep(host.all[1].slot().mailbox, never, [&] { idle.sleep(host.all[2].slot().mailbox, never, body); });
  }
  int woken() { return host.all[1].slot().woken + host.all[2].slot().woken; }

  Host host;
  Idle<Host> idle{host};
  SpawnNode first;
  SpawnNode second;
};

TEST_F(IdleWorkersTest, WhatAFiberSchedulesCallsASleepingWorker) {
  whileTheOthersSleep([&] {
    EXPECT_TRUE(host.all[0].own.offer(&first, idle));
    EXPECT_EQ(woken(), 1);
  });
}

// Go: at most one spins.
TEST_F(IdleWorkersTest, ABurstCallsOneWorkerUntilThatHasCome) {
  whileTheOthersSleep([&] {
    EXPECT_TRUE(host.all[0].own.offer(&first, idle));
    EXPECT_TRUE(host.all[0].own.offer(&second, idle));
    EXPECT_EQ(woken(), 1);
    OwnSpawnQueue<>& called = host.all[1].slot().woken == 1 ? host.all[1].own : host.all[2].own;
    called.cameToFetch();
    EXPECT_EQ(called.steal(host.workers()), &first);
    called.share(idle);
    EXPECT_EQ(woken(), 2) << "it leaves something";
  });
}

TEST_F(IdleWorkersTest, AWorkerThatTookAllCallsNobody) {
  whileTheOthersSleep([&] {
    EXPECT_TRUE(host.all[0].own.offer(&first, idle));
    OwnSpawnQueue<>& called = host.all[1].slot().woken == 1 ? host.all[1].own : host.all[2].own;
    called.cameToFetch();
    EXPECT_EQ(called.steal(host.workers()), &first);
    called.share(idle);
    EXPECT_EQ(woken(), 1);
    EXPECT_TRUE(host.all[0].own.offer(&second, idle));
    EXPECT_EQ(woken(), 2) << "it has come: from here on another is called";
  });
}

// It runs that next, and shares then.
TEST_F(IdleWorkersTest, WhatAWorkersLoopQueuesCallsNobodyUntilItRunsSomething) {
  whileTheOthersSleep([&] {
    EXPECT_TRUE(host.all[0].own.push(&first));
    EXPECT_TRUE(host.all[0].own.push(&second));
    EXPECT_EQ(woken(), 0);
    EXPECT_EQ(host.all[0].own.take(), &first);
    host.all[0].own.share(idle);
    EXPECT_EQ(woken(), 1);
  });
}

TEST_F(IdleWorkersTest, WithNobodyAsleepNobodyIsCalled) {
  EXPECT_TRUE(host.all[0].own.offer(&first, idle));
  EXPECT_TRUE(host.all[0].own.offer(&second, idle));
  EXPECT_EQ(host.all[0].own.take(), &first);
  EXPECT_EQ(host.all[0].own.take(), &second);
  whileTheOthersSleep([&] {
    EXPECT_TRUE(host.all[0].own.offer(&first, idle));
    EXPECT_EQ(woken(), 1) << "no call is left over";
  });
  EXPECT_EQ(host.all[0].own.take(), &first);
}

}  // namespace
}  // namespace sylar
