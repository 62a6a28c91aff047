// Where the hooks do nothing: plain threads, hooks off, a plain Scheduler, forked children. And what sleeps promise.
#include <sched.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>

#include "sylar/hook/core/wait_loop.h"
#include "tests/hook/support.h"
#include "tests/support/busy.h"

namespace sylar::test {
namespace {

using std::chrono::steady_clock;

/// Whether `call` blocks the thread on which it is made: of two fibers on one worker, the second runs only after it.
bool blocksTheWorker(Scheduler& scheduler, const std::function<void()>& call) {
  std::string order;
  std::atomic<bool> done{false};
  scheduler.schedule([&] {
    scheduler.schedule([&] {
      order += "other ";
      done.store(true, std::memory_order_release);
    });
    call();
    order += "call ";
  });
  spinUntil(done, true);
  scheduler.stop();
  return order == "call other ";
}

void shortSleep() { EXPECT_EQ(::usleep(2000), 0); }

// As in sylar, is_hook_enable() is true in the fibers of a scheduler at first. Each may change its own.
TEST(HooksOff, AreOnInFibersAtFirstAndAConcernOfOne) {
  EXPECT_FALSE(is_hook_enable());
  inFiber([] {
    EXPECT_TRUE(is_hook_enable());
    set_hook_enable(false);
    EXPECT_FALSE(is_hook_enable());
    const auto other = std::make_shared<Fiber>([] { EXPECT_TRUE(is_hook_enable()); });
    IOManager::GetThis()->schedule(other);
    Fiber::YieldToReady();
    EXPECT_FALSE(is_hook_enable());
    other->join();
  });
  EXPECT_FALSE(is_hook_enable());
  set_hook_enable(true);
  EXPECT_TRUE(is_hook_enable());
  set_hook_enable(false);
  EXPECT_FALSE(is_hook_enable());
  inFiber([] { EXPECT_TRUE(is_hook_enable()); });  // the thread's setting is not its fibers'
}

// Its worker is no more, and the thread must touch nothing of it. No leak check: the thread stays.
TEST(HooksOff, InAFiberThatAStopHasLeftBehind) {
  struct State {
    std::atomic<bool> inside{false}, left{false}, through{false};
    bool engine_before = false, engine_after = true, sleeps_after = true;
  };
  const auto state = std::make_shared<State>();
  {
    IOManager iom(1, false, "left");
    iom.schedule([state] {
      state->engine_before = hookEngine() != nullptr;
      state->inside = true;
      busyUntil([&] { return state->left.load(); });
      state->engine_after = hookEngine() != nullptr;
      state->sleeps_after = maySuspendHere();
      state->through = true;
    });
    spinUntil(state->inside, true);
    EXPECT_FALSE(iom.stop(Deadline::after(std::chrono::milliseconds(0))).clean);
  }
  state->left = true;
  spinUntil(state->through, true);
  EXPECT_TRUE(state->engine_before);
  EXPECT_FALSE(state->engine_after);
  EXPECT_FALSE(state->sleeps_after);
}

TEST(HooksOff, SleepsBlockTheThreadAndCanBeSwitchedOnAgain) {
  {
    IOManager iom(1, false, "off");
    EXPECT_TRUE(blocksTheWorker(iom, [] {
      set_hook_enable(false);
      shortSleep();
    }));
  }
  {
    IOManager iom(1, false, "on");
    EXPECT_FALSE(blocksTheWorker(iom, [] {
      set_hook_enable(false);
      set_hook_enable(true);
      shortSleep();
    }));
  }
}

// CD-S3: a plain Scheduler parks sleeps, and gives descriptors to libc.
TEST(PlainScheduler, ParksSleeps) {
  Scheduler scheduler(1, false, "plain");
  scheduler.start();
  EXPECT_FALSE(blocksTheWorker(scheduler, shortSleep));
}

TEST(PlainScheduler, HandsDescriptorsToLibc) {
  const Pair pair = unixPair();
  Scheduler scheduler(1, false, "plain");
  scheduler.start();
  std::thread peer([&] {
    libcCalls().usleep(2000);
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
  });
  EXPECT_TRUE(blocksTheWorker(scheduler, [&] {
    char byte;
    EXPECT_EQ(::read(pair.a, &byte, 1), 1);
    pollfd one{pair.a, POLLIN, 0};
    EXPECT_EQ(::poll(&one, 1, 1), 0);
  }));
  peer.join();
}

// CD-H7
TEST(PlainThread, GetsBlockingDescriptorsAndBlockingCalls) {
  const Pair pair = tcpPair();
  for (const int fd : {pair.a, pair.b}) EXPECT_EQ(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
  std::thread peer([&] { EXPECT_EQ(::write(pair.b, "x", 1), 1); });
  char byte;
  EXPECT_EQ(::read(pair.a, &byte, 1), 1);
  peer.join();
}

// CD-H4, HA-7: whatever fibers did with them, descriptors are as the user made them.
TEST(Flags, AreNeverChangedUnderTheUser) {
  inFiber([] {
    const Pair tcp = tcpPair();
    const Pair local = unixPair();
    const Pair pipe = pipePair();
    for (const Pair* pair : {&tcp, &local, &pipe}) {
      IOManager::GetThis()->schedule([pair] {
        for (const int fd : {pair->a, pair->b}) EXPECT_EQ(libcCalls().fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
        EXPECT_EQ(::write(pair->b, "x", 1), 1);
      });
      char byte;
      EXPECT_EQ(::read(pair->a, &byte, 1), 1);
      for (const int fd : {pair->a, pair->b}) EXPECT_EQ(libcCalls().fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    }
  });
}

// CD-H9
TEST(Sleep, Takes200Times999MicrosecondsAtLeast) {
  inFiber([] {
    const auto start = steady_clock::now();
    for (int i = 0; i < 200; ++i) EXPECT_EQ(::usleep(999), 0);
    EXPECT_GE(steady_clock::now() - start, std::chrono::microseconds(200 * 999));
  });
}

// CD-H9
TEST(Sleep, IsNeverShorterThanAsked) {
  inFiber([] {
    for (const long ns : {0L, 1L, 500L, 999L, 1'000L, 99'999L, 1'000'001L, 2'500'000L}) {
      const timespec duration{0, ns};
      const auto start = steady_clock::now();
      timespec rest{7, 7};
      EXPECT_EQ(::nanosleep(&duration, &rest), 0);
      EXPECT_GE(steady_clock::now() - start, std::chrono::nanoseconds(ns));
      EXPECT_EQ(rest.tv_sec, 7);  // written when interrupted only
    }
  });
}

TEST(Sleep, RefusesWhatIsNoDuration) {
  inFiber([] {
    for (const timespec wrong : {timespec{0, -1}, timespec{0, 1'000'000'000}, timespec{0, 2'000'000'000}, timespec{-1, 0}}) {
      errno = 0;
      EXPECT_EQ(::nanosleep(&wrong, nullptr), -1);
      EXPECT_EQ(errno, EINVAL);
    }
  });
}

/// Starts a sleep that must not end soon, and ends the process while it lasts: nothing else would end it.
void exitDuring(const std::function<int64_t()>& sleep) {
  inFiber([&] {
    const auto sleeper = std::make_shared<Fiber>([&] { ::_exit(100 + (sleep() == 0)); });
    IOManager::GetThis()->schedule(sleeper);
    untilParked(*sleeper);
    for (int i = 0; i < 20; ++i) Fiber::YieldToReady();
    ::usleep(1000);
    ::_exit(0);
  });
}

// CD-H9: durations at which milliseconds, int or nanoseconds overflow.
TEST(SleepDeathTest, VeryLongOnesDoNotOverflow) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // a new program: in a mere fork the hooks would pass through
  EXPECT_EXIT(exitDuring([] { return int64_t{::sleep(4'294'968)}; }), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(exitDuring([] { return int64_t{::sleep(UINT32_MAX)}; }), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(exitDuring([] { return int64_t{::usleep(UINT32_MAX)}; }), testing::ExitedWithCode(0), "");
  for (const time_t seconds : {time_t{2'147'484}, time_t{9'223'372'037}, std::numeric_limits<time_t>::max()}) {
    EXPECT_EXIT(exitDuring([=] {
                  const timespec duration{seconds, 999'999'999};
                  return int64_t{::nanosleep(&duration, nullptr)};
                }),
                testing::ExitedWithCode(0), "");
  }
}

// ---- fork. --------------------------------------------------------------------------------------------------------------------

/// Waits for a child without blocking the worker.
/// Forks in a fiber; `in_child` is the child's exit status.
pid_t forkInFiber(const std::function<int()>& in_child) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(in_child());
  return child;
}

// FM-21. The first hooked call of the process's fibers is the child's.
TEST(Fork, ChildsHooksPassThrough) {
  const Pair pair = pipePair();
  inFiber([&] {
    const pid_t child = forkInFiber([&] {
      char byte = 0;
      if (::read(pair.a, &byte, 1) != 1 || byte != 'c') return 1;
      if (::usleep(1000) != 0) return 2;
      const Pair own = unixPair();
      if (::write(own.b, "x", 1) != 1 || ::read(own.a, &byte, 1) != 1) return 3;
      pollfd one{own.a, POLLIN, 0};
      return ::poll(&one, 1, 1) == 0 ? 0 : 4;
    });
    ASSERT_GT(child, 0);
    ::usleep(2000);  // the child blocks in its read, most likely
    EXPECT_EQ(::write(pair.b, "c", 1), 1);
    EXPECT_EQ(exitOf(child), 0);
  });
}

// FM-21: what the child closes stays registered for the parent, whose epoll both share.
TEST(Fork, ParentsWaitersOutliveTheChildsCloses) {
  const Pair pair = unixPair();
  inFiber([&] {
    bool got = false;
    const auto waiter = std::make_shared<Fiber>([&] {
      char byte = 0;
      EXPECT_EQ(::read(pair.a, &byte, 1), 1);
      got = true;
    });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    const pid_t child = forkInFiber([&] {
      int closed = 0;
      for (int fd = 3; fd < 100; ++fd) closed += ::close(fd) == 0;
      return closed > 2 ? 0 : 1;
    });
    EXPECT_EQ(exitOf(child), 0);
    EXPECT_FALSE(got);
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
    waiter->join();
    EXPECT_TRUE(got);
  });
}

TEST(Fork, ParentGoesOnAfterManyForks) {
  const LeakCheck leaks;
  inFiber(
      [] {
        for (int i = 0; i < 50; ++i) {
          const Pair pair = pipePair();
          const pid_t child = forkInFiber([&] { return ::write(pair.b, "hello", 5) == 5 ? 0 : 1; });
          char buffer[8] = {};
          EXPECT_EQ(::read(pair.a, buffer, sizeof buffer), 5);  // parks until the child has written
          EXPECT_STREQ(buffer, "hello");
          EXPECT_EQ(exitOf(child), 0);
        }
      },
      2);
}

TEST(Fork, ChildOfAPlainThreadPassesThroughToo) {
  const Pair pair = pipePair();
  IOManager iom(1, false, "parent");
  const pid_t child = forkInFiber([&] {
    char byte = 0;
    return ::read(pair.a, &byte, 1) == 1 ? 0 : 1;
  });
  EXPECT_EQ(::write(pair.b, "c", 1), 1);
  EXPECT_EQ(exitOf(child), 0);
}

}  // namespace
}  // namespace sylar::test
