// In a forked child the only fiber waits at the primitives like a plain thread, and groups know that their tasks are the parent's.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <thread>

#include "sylar/base/sanitizers.h"
#include "sylar/iomanager.h"
#include "sylar/sync/channel.h"
#include "sylar/sync/event.h"
#include "sylar/sync/task_group.h"
#include "tests/support/fibers.h"
#include "tests/sync/waiter.h"

namespace sylar {
namespace {

/// Forks, runs `body` in the child, and returns its exit status: 0 if `body` returned true.
template <class Body>
int inChild(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(body() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(Fork, AFiberOfTheChildIsWokenByAThread) {
#ifdef SYLAR_TSAN
  GTEST_SKIP() << "it does not know threads that a forked child begins";
#endif
  test::inFiber([] {
    EXPECT_EQ(inChild([] {
                Event event;
                std::thread thread([&] { event.set(); });
                const bool set = event.wait();
                thread.join();
                return set;
              }),
              0);
  });
}

TEST(Fork, AGroupOfTheParentIsNotWaitedFor) {
  test::inFiber([] {
    Event go_on;
    TaskGroup group;
    group.spawn([&] { EXPECT_TRUE(go_on.wait()); });
    EXPECT_EQ(inChild([&] {
                try {
                  group.join();
                } catch (const std::logic_error&) {
                  return true;
                }
                return false;
              }),
              0);
    go_on.set();
    group.join();
  });
}

TEST(Fork, WhatAFiberOfTheParentWaitsAtMayBeDestroyed) {
  auto jobs = std::make_unique<Channel<int>>();
  IOManager iom(1, false, "parent");
  const Fiber::ptr fiber = test::waiterOn(iom, [&] { EXPECT_EQ(jobs->receive(), 7); });
  EXPECT_EQ(inChild([&] {
              jobs = nullptr;
              return true;
            }),
            0);
  jobs->send(7);
  fiber->join();
}

}  // namespace
}  // namespace sylar
