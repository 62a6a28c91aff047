// In a forked child the only fiber waits at the primitives like a plain thread, and groups know that their tasks are the parent's.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

#include "sylar/base/sanitizers.h"
#include "sylar/iomanager.h"
#include "sylar/sync/event.h"
#include "sylar/sync/task_group.h"
#include "tests/support/fibers.h"

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

}  // namespace
}  // namespace sylar
