#include "sylar/sync/blocking_pool.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/sched/scheduler_core.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

// CD-H14: what blocks runs elsewhere, and the only worker goes on.
TEST(BlockingPool, RunsTheFunctionOnAHelperThread) {
  const LeakCheck leaks;
  BlockingPool pool;
  inFiber([&] {
    const pid_t here = sys::threadId();
    Gate others_ran;
    IOManager::GetThis()->schedule([&] { others_ran.open(); });
    pid_t there = 0;
    EXPECT_EQ(pool.run([&] {
      there = sys::threadId();
      EXPECT_EQ(runningFiber(), nullptr);
      EXPECT_TRUE(others_ran.wait());
    }),
              0);
    EXPECT_NE(there, here);
    EXPECT_EQ(sys::threadId(), here);
  });
  EXPECT_EQ(pool.threads(), 1u);
}

TEST(BlockingPool, OutsideFibersTheFunctionRunsHere) {
  BlockingPool pool;
  pid_t there = 0;
  EXPECT_EQ(pool.run([&] { there = sys::threadId(); }), 0);
  EXPECT_EQ(there, sys::threadId());
  EXPECT_THROW((void)pool.run([] { throw std::runtime_error("here"); }), std::runtime_error);
  EXPECT_EQ(pool.threads(), 0u);
}

TEST(BlockingPool, AnExceptionComesOutInTheFiber) {
  const LeakCheck leaks;
  BlockingPool pool;
  inFiber([&] {
    for (int i = 0; i < 3; ++i) {
      try {
        (void)pool.run([i] { throw i; });
        ADD_FAILURE() << "it was swallowed";
      } catch (int thrown) {
        EXPECT_EQ(thrown, i);
      }
    }
    EXPECT_EQ(pool.run([] {}), 0);
  });
}

// Limits: threads, then the queue, then refusal; and everything is usable again afterwards.
TEST(BlockingPool, GrowsToItsLimitsAndThenRefuses) {
  const LeakCheck leaks;
  BlockingPool pool({.max_threads = 3, .max_queued = 2});
  std::atomic<int> ran{0};
  std::atomic<int> refused{0};
  {
    IOManager iom(2, false, "pool");
    Gate started;
    Gate go_on;
    for (int i = 0; i < 3; ++i) {
      iom.schedule([&] {
        EXPECT_EQ(pool.run([&] {
          started.open();
          EXPECT_TRUE(go_on.wait());
          ran.fetch_add(1);
        }),
                  0);
      });
    }
    EXPECT_TRUE(started.wait(3));
    EXPECT_EQ(pool.threads(), 3u);
    for (int i = 0; i < 7; ++i) {
      iom.schedule([&] {
        const int result = pool.run([&] { ran.fetch_add(1); });
        if (result == 0) return;
        EXPECT_EQ(result, -EAGAIN);
        refused.fetch_add(1);
      });
    }
    EXPECT_TRUE(eventually([&] { return refused.load() == 5; }));
    EXPECT_EQ(pool.threads(), 3u);
    EXPECT_EQ(pool.queued(), 2u);
    go_on.open();
    iom.stop();
    EXPECT_EQ(ran.load(), 5);
  }
  inFiber([&] { EXPECT_EQ(pool.run([&] { ran.fetch_add(1); }), 0); });
  EXPECT_EQ(ran.load(), 6);
}

// Cause: lookups and fsync waited until a peer had taken the last byte of a close that lingered.
TEST(BlockingPool, WhatOthersDecideTheLengthOfLeavesHalfOfTheThreads) {
  const LeakCheck leaks;
  BlockingPool pool({.max_threads = 4, .max_queued = 3});
  Gate gate;
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  std::atomic<int> refused{0};
  inFiber([&] {
    std::vector<Fiber::ptr> fibers;
    for (int i = 0; i < 6; ++i) {
      fibers.push_back(std::make_shared<Fiber>([&] {
        const auto wait = [&] {
          ++begun;
          EXPECT_TRUE(gate.wait());
        };
        (pool.run(wait, BlockingPool::Length::kOthers) == 0 ? ended : refused).fetch_add(1);
      }));
      Scheduler::GetThis()->schedule(fibers.back());
      Fiber::YieldToReady();
    }
    const auto all_came = [&] {
      Fiber::YieldToReady();
      return begun.load() == 2 && refused.load() == 1;
    };
    EXPECT_TRUE(eventually(all_came)) << "two are at work, three wait";
    EXPECT_EQ(pool.queued(), 3u);
    int moments = 0;
    EXPECT_EQ(pool.run([&] { ++moments; }), 0);
    EXPECT_EQ(moments, 1);
    EXPECT_EQ(begun.load(), 2);
    gate.open();
    for (const Fiber::ptr& fiber : fibers) fiber->join();
  });
  EXPECT_EQ(ended.load(), 5);
  EXPECT_EQ(begun.load(), 5);
}

TEST(BlockingPool, OneThreadServesManyInTheirOrder) {
  const LeakCheck leaks;
  BlockingPool pool({.max_threads = 1});
  std::vector<int> order;
  inFiber([&] {
    for (int i = 0; i < 100; ++i) {
      IOManager::GetThis()->schedule([&, i] { EXPECT_EQ(pool.run([&, i] { order.push_back(i); }), 0); });
    }
  });
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(pool.threads(), 1u);
}

// The function uses the fiber's stack: cancelling does not tear the fiber away from it.
TEST(BlockingPool, CancelDoesNotEndTheWait) {
  const LeakCheck leaks;
  BlockingPool pool;
  inFiber([&] {
    Gate started;
    Gate go_on;
    bool over = false;
    const auto fiber = std::make_shared<Fiber>([&] {
      bool ran = false;
      EXPECT_EQ(pool.run([&] {
        started.open();
        EXPECT_TRUE(go_on.wait());
        ran = true;
      }),
                0);
      EXPECT_TRUE(ran);
      EXPECT_TRUE(this_fiber::cancelled());
      over = true;
    });
    IOManager::GetThis()->schedule(fiber);
    while (started.count() == 0) Fiber::YieldToReady();
    fiber->cancel();
    for (int i = 0; i < 100; ++i) Fiber::YieldToReady();
    EXPECT_FALSE(over);
    go_on.open();
    fiber->join();
    EXPECT_TRUE(over);
  });
}

TEST(BlockingPool, StopWaitsForTheFunction) {
  const LeakCheck leaks;
  BlockingPool pool;
  std::atomic<bool> over{false};
  Gate started;
  Gate go_on;
  IOManager iom(1, false, "pool");
  iom.schedule([&] {
    EXPECT_EQ(pool.run([&] {
      started.open();
      EXPECT_TRUE(go_on.wait());
    }),
              0);
    over.store(true);
  });
  ASSERT_TRUE(started.wait());
  std::thread opener([&] {
    EXPECT_TRUE(eventually([&iom] { return coreOf(iom).isStopping(); }));
    EXPECT_FALSE(over.load());
    go_on.open();
  });
  iom.stop();
  EXPECT_TRUE(over.load());
  opener.join();
}

// A function that does not come back keeps stop(deadline) no longer than its deadline. Its fiber and its stack are kept for it.
TEST(BlockingPool, StopWithADeadlineGivesTheFiberUp) {
  Gate go_on;
  BlockingPool pool;
  std::atomic<bool> ran{false};
  {
    Gate started;
    IOManager iom(1, false, "pool");
    iom.schedule([&] {
      int on_the_stack = 1;
      (void)pool.run([&] {
        started.open();
        EXPECT_TRUE(go_on.wait());
        ran.store(on_the_stack == 1);
        on_the_stack = 2;
      });
      ADD_FAILURE() << "it was abandoned";
    });
    ASSERT_TRUE(started.wait());
    const StopResult result = iom.stop(Deadline::after(20ms, steadyClock()));
    EXPECT_FALSE(result.clean);
    EXPECT_EQ(result.abandoned.size(), 1u);
  }
  go_on.open();
  pool.endIdle();
  EXPECT_TRUE(eventually([&] { return ran.load(); }));
}

TEST(BlockingPool, ItsThreadsBlockAllSignals) {
  const LeakCheck leaks;
  BlockingPool pool;
  inFiber([&] {
    sigset_t before;
    sigset_t mask;
    sigset_t after;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
    EXPECT_EQ(pool.run([&] { ::pthread_sigmask(SIG_SETMASK, nullptr, &mask); }), 0);
    ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
    for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGPIPE, SIGRTMIN, SIGRTMAX}) {
      EXPECT_TRUE(::sigismember(&mask, signal)) << signal;
      EXPECT_EQ(::sigismember(&before, signal), ::sigismember(&after, signal)) << signal;
    }
  });
}

TEST(BlockingPool, ThreadsWithoutWorkEnd) {
  const LeakCheck leaks;
  BlockingPool pool({.idle = 1ms});
  inFiber([&] {
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(pool.run([] {}), 0);
      if (i % 2 == 0) {
        EXPECT_TRUE(eventually([&] { return pool.threads() == 0; }));
      }
    }
  });
}

TEST(BlockingPool, EndIdleLeavesThoseThatWork) {
  const LeakCheck leaks;
  Gate started;
  Gate go_on;
  BlockingPool pool;
  IOManager iom(1, false, "pool");
  for (int i = 0; i < 2; ++i) {
    iom.schedule([&] {
      EXPECT_EQ(pool.run([&] {
        started.open();
        EXPECT_TRUE(started.wait(2));
      }),
                0);
    });
  }
  ASSERT_TRUE(started.wait(2));
  iom.schedule([&] { EXPECT_EQ(pool.run([&] { EXPECT_TRUE(go_on.wait()); }), 0); });
  EXPECT_TRUE(eventually([&] {
    pool.endIdle();
    return pool.threads() == 1;
  }));
  go_on.open();
  iom.stop();
}

// Many fibers of several workers against a small pool whose threads come and go.
TEST(BlockingPoolRace, EveryFunctionRunsOnceOrIsRefused) {
  const LeakCheck leaks;
  BlockingPool pool({.max_threads = 3, .max_queued = 5, .idle = 0ms});
  std::atomic<int> ran{0};
  std::atomic<int> accepted{0};
  std::atomic<int> refused{0};
  {
    IOManager iom(3, false, "pool");
    for (int i = 0; i < 30; ++i) {
      iom.schedule([&] {
        for (int k = 0; k < 200; ++k) {
          int mine = 0;
          if (pool.run([&] { mine = ran.fetch_add(1) + 1; }) == 0) {
            EXPECT_GT(mine, 0);
            accepted.fetch_add(1);
          } else {
            refused.fetch_add(1);
            Fiber::YieldToReady();
          }
        }
      });
    }
  }
  EXPECT_EQ(ran.load(), accepted.load());
  EXPECT_EQ(accepted.load() + refused.load(), 6000);
}

}  // namespace
}  // namespace sylar::test
