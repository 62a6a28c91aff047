#include "sylar/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

namespace sylar {
namespace {

std::string kernelName() {
  char name[16] = {};
  ::pthread_getname_np(::pthread_self(), name, sizeof name);
  return name;
}

TEST(Thread, HasItsKernelIdWhenTheConstructorReturns) {
  pid_t inside = 0;
  Thread thread([&] { inside = static_cast<pid_t>(::syscall(SYS_gettid)); }, "worker");
  const pid_t id = thread.getId();
  thread.join();
  EXPECT_EQ(id, inside);
  EXPECT_NE(id, ::getpid());
}

TEST(Thread, NamesItself) {
  std::string inside, in_kernel;
  Thread thread(
      [&] {
        inside = Thread::GetName();
        in_kernel = kernelName();
      },
      "a_name_of_many_bytes");
  thread.join();
  EXPECT_EQ(thread.getName(), "a_name_of_many_bytes");
  EXPECT_EQ(inside, "a_name_of_many_bytes");
  EXPECT_EQ(in_kernel, "a_name_of_many_");
}

// Trap 7: the name is sylar's.
TEST(Thread, EmptyNameBecomesUnknow) {
  std::string inside;
  Thread thread([&] { inside = Thread::GetName(); }, "");
  thread.join();
  EXPECT_EQ(thread.getName(), "UNKNOW");
  EXPECT_EQ(inside, "UNKNOW");
}

TEST(Thread, GetThisIsTheThreadsOwnObject) {
  EXPECT_EQ(Thread::GetThis(), nullptr);
  std::atomic<Thread*> inside{nullptr};
  Thread thread([&] { inside = Thread::GetThis(); }, "worker");
  thread.join();
  EXPECT_EQ(inside, &thread);
}

TEST(Thread, SetNameNamesTheCallingThreadOnly) {
  std::thread([] {
    EXPECT_EQ(Thread::GetName(), "UNKNOW");
    Thread::SetName("renamed_at_run_time");
    EXPECT_EQ(Thread::GetName(), "renamed_at_run_time");
    EXPECT_EQ(kernelName(), "renamed_at_run_");
    Thread::SetName("");
    EXPECT_EQ(Thread::GetName(), "renamed_at_run_time");
  }).join();
  EXPECT_EQ(Thread::GetName(), "UNKNOW");
}

TEST(Thread, JoinWaitsForTheEndAndASecondDoesNothing) {
  int value = 0;
  Thread thread([&] { value = 42; }, "worker");
  thread.join();
  EXPECT_EQ(value, 42);
  thread.join();
}

TEST(Thread, GoesOnWithoutItsObject) {
  std::atomic<bool> released{false};
  std::atomic<bool> done{false};
  {
    Thread thread(
        [&] {
          while (!released) std::this_thread::yield();
          done = true;
        },
        "detached");
  }
  released = true;
  while (!done) std::this_thread::yield();
}

TEST(Thread, MayEndBeforeItsConstructorReturns) {
  for (int i = 0; i < 200; ++i) {
    Thread thread([] {}, "short");
    EXPECT_GT(thread.getId(), 0);
    thread.join();
  }
}

TEST(ThreadDeathTest, ExceptionThatLeavesTheFunctionEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Thread thread([] { throw std::runtime_error("nobody catches this"); }, "thrower");
        thread.join();
      },
      "nobody catches this");
}

}  // namespace
}  // namespace sylar
