// Virtual time as its users see it: every wait is as long as it says, to the nanosecond, and takes no time.
#include "sylar/testing/virtual_time.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/base/fd.h"
#include "sylar/hook.h"
#include "sylar/iomanager.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"
#include "tests/support/seed.h"
#include "tests/testing/on.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

struct SocketPair {
  explicit SocketPair(int type = SOCK_STREAM) {
    int fds[2];
    if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) != 0) throw std::runtime_error("socketpair");
    here = UniqueFd(fds[0]);
    there = UniqueFd(fds[1]);
  }
  UniqueFd here;
  UniqueFd there;
};

void setTimeout(int fd, int which, std::chrono::seconds timeout) {
  const timeval value{timeout.count(), 0};
  ASSERT_EQ(setsockopt(fd, SOL_SOCKET, which, &value, sizeof value), 0);
}

// ---- Every kind of wait. -----------------------------------------------------------------------------------------------------

struct WaitOfAnHour {
  const char* name;
  std::function<void()> wait;
};

class VirtualTimeWaits : public ::testing::TestWithParam<WaitOfAnHour> {};

// Virtual time: each hooked wait ends at its deadline, with the result that it has on the real clock.
TEST_P(VirtualTimeWaits, AnHourIsAnHourOnTheClockOnly) {
  const LeakCheck leaks;
  VirtualTime time;
  time.run(GetParam().wait);
  EXPECT_EQ(time.elapsed(), 1h);
  time.run(GetParam().wait);  // and once more on the same clock
  EXPECT_EQ(time.elapsed(), 2h);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, VirtualTimeWaits,
    ::testing::Values(
        WaitOfAnHour{"sleep", [] { EXPECT_EQ(sleep(3600), 0U); }},
        WaitOfAnHour{"usleep", [] { EXPECT_EQ(usleep(3'600'000'000U), 0); }},
        WaitOfAnHour{"nanosleep",
                     [] {
                       const timespec hour{3600, 0};
                       EXPECT_EQ(nanosleep(&hour, nullptr), 0);
                     }},
        WaitOfAnHour{"clock_nanosleep",
                     [] {
                       const timespec hour{3600, 0};
                       EXPECT_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &hour, nullptr), 0);
                     }},
        WaitOfAnHour{"this_thread_sleep_for", [] { std::this_thread::sleep_for(1h); }},
        WaitOfAnHour{"recv",
                     [] {
                       const SocketPair pair;
                       setTimeout(pair.here.get(), SO_RCVTIMEO, 1h);
                       char byte;
                       EXPECT_EQ(recv(pair.here.get(), &byte, 1, 0), -1);
                       EXPECT_EQ(errno, EAGAIN);
                     }},
        WaitOfAnHour{"send",
                     [] {
                       const SocketPair pair;
                       setTimeout(pair.here.get(), SO_SNDTIMEO, 1h);
                       const std::vector<char> more_than_fits(8 << 20);
                       const ssize_t sent = send(pair.here.get(), more_than_fits.data(), more_than_fits.size(), 0);
                       EXPECT_GT(sent, 0);
                       EXPECT_LT(sent, ssize_t{8 << 20});
                     }},
        WaitOfAnHour{"poll",
                     [] {
                       const SocketPair pair;
                       pollfd one{pair.here.get(), POLLIN, 0};
                       EXPECT_EQ(poll(&one, 1, 3'600'000), 0);
                     }},
        WaitOfAnHour{"poll_of_nothing", [] { EXPECT_EQ(poll(nullptr, 0, 3'600'000), 0); }},
        WaitOfAnHour{"connect",
                     [] {
                       const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM, 0));
                       sockaddr_un address{};
                       address.sun_family = AF_UNIX;  // the kernel chooses a name
                       socklen_t size = sizeof(sa_family_t);
                       ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
                       ASSERT_EQ(listen(listener.get(), 0), 0);
                       size = sizeof address;
                       ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
                       const UniqueFd first(socket(AF_UNIX, SOCK_STREAM, 0));
                       ASSERT_EQ(connect(first.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
                       const UniqueFd second(socket(AF_UNIX, SOCK_STREAM, 0));  // nobody accepts, and the queue is full
                       sleep(3600 - 60);                                        // it asks again 20 times a second
                       EXPECT_EQ(connect_with_timeout(second.get(), reinterpret_cast<sockaddr*>(&address), size, 60'000), -1);
                       EXPECT_EQ(errno, ETIMEDOUT);
                     }},
        WaitOfAnHour{"timer",
                     [] {
                       const SocketPair pair;
                       IOManager::GetThis()->addTimer(3'600'000, [&pair] { EXPECT_EQ(write(pair.there.get(), "x", 1), 1); });
                       char byte;
                       EXPECT_EQ(read(pair.here.get(), &byte, 1), 1);
                     }}),
    [](const auto& each) { return std::string(each.param.name); });

// Virtual time, P2: a scheduler without descriptors has it, too.
TEST(VirtualTime, APlainSchedulerRunsOnIt) {
  const LeakCheck leaks;
  VirtualTime time;
  Scheduler scheduler(on(time, 2));
  for (int i = 1; i <= 10; ++i) {
    scheduler.schedule([i] { EXPECT_EQ(sleep(3600 * i), 0U); });
  }
  scheduler.stop();
  EXPECT_EQ(time.elapsed(), 10h);
}

// stop() finishes what is asleep, and what is armed.
TEST(VirtualTime, StopFinishesSleepsAtOnce) {
  const LeakCheck leaks;
  VirtualTime time;
  IOManager iom(on(time));
  {
    const VirtualTime::Hold both_begin(time);
    iom.schedule([] { sleep(24 * 3600); });
    iom.addTimer(48 * 3'600'000, [] { sleep(3600); });
  }
  iom.stop();
  EXPECT_EQ(time.elapsed(), 49h);
}

// Regression: the clock did not see what waited for the caller, who works only inside stop().
TEST(VirtualTime, ACallerCannotWorkOnIt) {
  const LeakCheck leaks;
  VirtualTime time;
  EXPECT_THROW(Scheduler({.threads = 1, .use_caller = true, .name = "caller", .clock = &time}), std::invalid_argument);
  EXPECT_THROW(IOManager({.threads = 2, .use_caller = true, .name = "caller", .clock = &time}), std::invalid_argument);
}

// On virtual time a rest counts as a sleep, and as a look for descriptors.
TEST(VirtualTime, WorkerStatsCountItsSleeps) {
  VirtualTime time;
  time.run([] {
    const WorkerStats before = IOManager::GetThis()->getWorkerStats();
    for (int i = 0; i < 10; ++i) sleep(3600);
    const WorkerStats after = IOManager::GetThis()->getWorkerStats();
    EXPECT_GE(after.sleeps - before.sleeps, 10U);
    EXPECT_LE(after.sleeps, after.polls);
    EXPECT_LE(after.tickles, after.sleeps);
  });
}

// ---- Order. ------------------------------------------------------------------------------------------------------------------

// C-37: equal deadlines end in the order in which they were armed, and time stands still between them.
TEST(VirtualTime, EqualDeadlinesEndInTheOrderOfArming) {
  VirtualTime time;
  std::string trace;
  time.run([&] {
    for (char name = 'a'; name <= 'z'; ++name) {
      IOManager::GetThis()->schedule([&trace, name] {
        sleep(3600);
        trace += name;
        usleep(1);  // later, but in the same order
        trace += static_cast<char>(name - 'a' + 'A');
      });
    }
    sleep(7200);
  });
  EXPECT_EQ(trace, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

// The same for timers, whatever they are ordered with.
TEST(VirtualTime, EqualTimersFireInTheOrderOfArming) {
  for (const TimerQueueKind kind : {TimerQueueKind::kFourAryHeap, TimerQueueKind::kOrderedSet, TimerQueueKind::kWheel}) {
    VirtualTime time;
    std::string trace;
    {
      IOManager iom(on(time), kind);
      const VirtualTime::Hold hold(time);
      for (char name = 'a'; name <= 'z'; ++name) iom.addTimer(3'600'000, [&trace, name] { trace += name; });
    }
    EXPECT_EQ(trace, "abcdefghijklmnopqrstuvwxyz");
    EXPECT_GE(time.elapsed(), 1h);
    EXPECT_LE(time.elapsed(), 1h + 1ms);  // a wheel rounds up to its tick
  }
}

class VirtualTimeOverWorkers : public OverWorkers {};

// Virtual time moves from deadline to deadline: nobody sees a time between his and the next, whoever runs beside him.
TEST_P(VirtualTimeOverWorkers, ManySleepersEachWakeAtTheirTime) {
  constexpr int kSleepers = 2000;
  std::mt19937_64 random(seed());
  VirtualTime time;
  std::atomic<int> begun{0};
  std::atomic<int> right{0};
  {
    IOManager iom(on(time, workers()));
    const VirtualTime::Hold hold(time);  // all of them begin at 0
    for (int i = 0; i < kSleepers; ++i) {
      const std::chrono::microseconds first(random() % 1'000'000'000);
      const std::chrono::microseconds second(random() % 1'000'000'000);
      iom.schedule([&, first, second] {
        ++begun;
        usleep(static_cast<useconds_t>(first.count()));
        const bool in_time = time.elapsed() == first;
        usleep(static_cast<useconds_t>(second.count()));
        right += in_time && time.elapsed() == first + second;
      });
    }
    EXPECT_TRUE(eventually([&] { return begun == kSleepers; }));
  }
  EXPECT_EQ(right, kSleepers);
}

// A recurring timer keeps its times exactly, over a day of seconds.
TEST(VirtualTime, ARecurringTimerFiresAtEachOfItsTimes) {
  VirtualTime time;
  int fired = 0;
  int in_time = 0;
  time.run([&] {
    const Timer::ptr timer = IOManager::GetThis()->addTimer(
        1000, [&] { in_time += time.elapsed() == ++fired * 1s; }, true);
    sleep(2 * 3600);
    usleep(1);  // the last of them has the same deadline as we had
    timer->cancel();
    sleep(3600);
  });
  EXPECT_EQ(fired, 2 * 3600);
  EXPECT_EQ(in_time, fired);
  EXPECT_EQ(time.elapsed(), 3h + 1us);
}

// C-39: a timer that is inserted before the front, by a fiber and by a plain thread, is the next.
TEST_P(VirtualTimeOverWorkers, ATimerInsertedAtTheFrontIsTheNext) {
  VirtualTime time;
  std::vector<nanoseconds> fired;
  Gate third;
  {
    IOManager iom(on(time, workers()));
    {
      const VirtualTime::Hold hold(time);
      iom.addTimer(3'600'000, [&] { fired.push_back(time.elapsed()); });
      iom.schedule([&] {
        sleep(600);
        IOManager::GetThis()->addTimer(60'000, [&] { fired.push_back(time.elapsed()); });
      });
      EXPECT_TRUE(eventually([&] { return iom.hasTimer(); }));
    }
    time.awaitIdle();
    EXPECT_EQ(fired.size(), 2U);
    iom.addTimer(1000, [&] {  // all sleep, nothing is armed, and nobody asks the clock
      fired.push_back(time.elapsed());
      third.open();
    });
    EXPECT_TRUE(third.wait());
  }
  EXPECT_EQ(fired, (std::vector<nanoseconds>{11min, 1h, 1h + 1s}));
}

// Bytes that arrive between fibers end a wait when they arrive, and not at its timeout.
TEST_P(VirtualTimeOverWorkers, DataEndsAWaitWhenItArrives) {
  VirtualTime time;
  const SocketPair pair;
  setTimeout(pair.here.get(), SO_RCVTIMEO, 1h);
  std::vector<nanoseconds> received;
  {
    IOManager iom(on(time, workers()));
    const VirtualTime::Hold hold(time);  // both begin at 0
    iom.schedule([&] {
      char byte;
      while (read(pair.here.get(), &byte, 1) == 1) received.push_back(time.elapsed());
      EXPECT_EQ(errno, EAGAIN);
      EXPECT_EQ(time.elapsed(), 1h + 30min);
    });
    iom.schedule([&] {
      for (int i = 0; i < 3; ++i) {
        sleep(600);
        EXPECT_EQ(write(pair.there.get(), "x", 1), 1);
      }
    });
  }
  EXPECT_EQ(received, (std::vector<nanoseconds>{10min, 20min, 30min}));
}

// Schedulers that share a clock share its time: it waits for the workers of both.
TEST(VirtualTime, SchedulersOnOneClockHaveOneTime) {
  const LeakCheck leaks;
  VirtualTime time;
  const SocketPair pair;
  {
    IOManager server(on(time));
    IOManager client(on(time, 2));
    const VirtualTime::Hold hold(time);
    server.schedule([&] {
      char byte;
      while (read(pair.here.get(), &byte, 1) == 1) {
        sleep(60);  // it thinks
        EXPECT_EQ(write(pair.here.get(), &byte, 1), 1);
      }
    });
    client.schedule([&] {
      setTimeout(pair.there.get(), SO_RCVTIMEO, 61s);
      for (int i = 1; i <= 100; ++i) {
        char byte = 'x';
        EXPECT_EQ(write(pair.there.get(), &byte, 1), 1);
        EXPECT_EQ(read(pair.there.get(), &byte, 1), 1);
        EXPECT_EQ(time.elapsed(), i * 60s);
      }
      EXPECT_EQ(shutdown(pair.there.get(), SHUT_WR), 0);
    });
  }
  EXPECT_EQ(time.elapsed(), 100min);
}

// ---- By hand. ----------------------------------------------------------------------------------------------------------------

// advance() does what is due until then, each at its own time, and nothing more.
TEST_P(VirtualTimeOverWorkers, ByHandItMovesAsFarAsItIsTold) {
  VirtualTime time(VirtualTime::kByHand);
  std::vector<nanoseconds> woke;
  IOManager iom(on(time, workers()));
  iom.schedule([&] {
    for (int i = 0; i < 10; ++i) {
      sleep(60);
      woke.push_back(time.elapsed());
    }
  });
  time.advance(0s);
  EXPECT_EQ(time.elapsed(), 0s);
  time.advance(59s);
  EXPECT_EQ(time.elapsed(), 59s);
  EXPECT_TRUE(woke.empty());
  time.advance(1s);
  EXPECT_EQ(woke, std::vector<nanoseconds>{1min});
  time.advance(210s);
  EXPECT_EQ(time.elapsed(), 270s);
  EXPECT_EQ(woke, (std::vector<nanoseconds>{1min, 2min, 3min, 4min}));
  time.advance(1h);
  EXPECT_EQ(time.elapsed(), 1h + 270s);
  EXPECT_EQ(woke.size(), 10U);
}

// What was scheduled before advance() is done before the clock moves.
TEST_P(VirtualTimeOverWorkers, WhatWasScheduledRunsBeforeTheClockMoves) {
  VirtualTime time(VirtualTime::kByHand);
  IOManager iom(on(time, workers()));
  for (int i = 0; i < 200; ++i) {
    nanoseconds ran{-1};
    iom.schedule([&] { ran = time.elapsed(); });
    time.advance(1s);
    ASSERT_EQ(ran, i * 1s);
  }
}

TEST(VirtualTime, MovesWithoutSchedulers) {
  VirtualTime by_hand(VirtualTime::kByHand);
  by_hand.advance(1h);
  by_hand.advance(1ns);
  by_hand.awaitIdle();
  EXPECT_EQ(by_hand.elapsed(), 1h + 1ns);
  by_hand.advance(nanoseconds::max());
  by_hand.advance(nanoseconds::max());
  EXPECT_EQ(by_hand.nowNs(), kNever - 1);  // it is never kNever
  VirtualTime by_itself;
  by_itself.awaitIdle();
  EXPECT_EQ(by_itself.elapsed(), 0s);
  by_itself.advance(1h);
  EXPECT_EQ(by_itself.elapsed(), 1h);
}

// With kByItself advance() makes the clock move where nothing else does.
TEST(VirtualTime, AdvanceMovesAClockThatHasNowhereToGo) {
  VirtualTime time;
  IOManager iom(on(time));
  iom.schedule([] { sleep(60); });
  time.awaitIdle();
  EXPECT_EQ(time.elapsed(), 1min);
  time.advance(1h);
  EXPECT_EQ(time.elapsed(), 1h + 1min);
}

// Regression: it returned when the clock had come there, while what was due then still ran.
TEST_P(VirtualTimeOverWorkers, AdvanceReturnsWhenTheWorkOfThatTimeIsDone) {
  VirtualTime time;
  IOManager iom(on(time, workers()));
  const Timer::ptr every_second = iom.addTimer(
      60'000, [] {}, true);  // it never stands still
  std::atomic<int> over{0};
  for (int i = 1; i <= 10; ++i) {
    Gate begun;
    iom.schedule([&] {
      begun.open();
      for (int turn = 0; turn < 2000; ++turn) Fiber::YieldToReady();  // meanwhile advance() is called
      iom.schedule([&] {
        sleep(3600);
        for (int turn = 0; turn < 2000; ++turn) Fiber::YieldToReady();
        ++over;
      });
    });
    EXPECT_TRUE(begun.wait());
    time.advance(1h);
    EXPECT_EQ(over, i);
  }
  every_second->cancel();
}

// ---- Standing still. ---------------------------------------------------------------------------------------------------------

// FM-44: all wait forever. run() says who waits for what, and ends them.
TEST(VirtualTime, RunReportsThatAllWaitForEver) {
  const LeakCheck leaks;
  VirtualTime time;
  const SocketPair pair;
  int error = 0;
  try {
    time.run([&] {
      sleep(60);
      char byte;
      EXPECT_EQ(read(pair.here.get(), &byte, 1), -1);
      error = errno;
    });
    FAIL() << "it returned";
  } catch (const std::runtime_error& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("all fibers wait"), std::string::npos) << what;
    EXPECT_NE(what.find("descriptor " + std::to_string(pair.here.get())), std::string::npos) << what;
  }
  EXPECT_EQ(error, ECANCELED);
  EXPECT_EQ(time.elapsed(), 1min);
}

// With schedulers of one's own the clock stands still until something comes from outside.
TEST(VirtualTime, StandsStillUntilSomethingComes) {
  VirtualTime time;
  const SocketPair pair;
  IOManager iom(on(time));
  iom.schedule([&] {
    char byte;
    EXPECT_EQ(read(pair.here.get(), &byte, 1), 1);
    sleep(60);
  });
  time.awaitIdle();
  EXPECT_EQ(time.elapsed(), 0s);
  EXPECT_EQ(write(pair.there.get(), "x", 1), 1);
  time.awaitIdle();
  EXPECT_EQ(time.elapsed(), 1min);
}

// ---- run(). ------------------------------------------------------------------------------------------------------------------

TEST(VirtualTime, AnExceptionComesOutOfRun) {
  const LeakCheck leaks;
  VirtualTime time;
  EXPECT_THROW(time.run([] {
    sleep(60);
    throw std::out_of_range("on purpose");
  }),
               std::out_of_range);
  EXPECT_EQ(time.elapsed(), 1min);
}

// What the body has started and not waited for ends with it; a recurring timer, too.
TEST(VirtualTime, RunCancelsWhatIsLeft) {
  const LeakCheck leaks;
  VirtualTime time;
  const SocketPair pair;
  int error = 0;
  time.run([&] {
    IOManager::GetThis()->schedule([&] {
      char byte;
      EXPECT_EQ(read(pair.here.get(), &byte, 1), -1);
      error = errno;
    });
    IOManager::GetThis()->addTimer(
        1000, [] {}, true);
    sleep(60);
  });
  EXPECT_EQ(error, ECANCELED);
  EXPECT_EQ(time.elapsed(), 1min);
}

TEST(VirtualTime, RunMayHaveSeveralWorkers) {
  VirtualTime time;
  std::atomic<int> woke{0};
  time.run(
      [&] {
        for (int i = 0; i < 100; ++i) {
          IOManager::GetThis()->schedule([&] {
            sleep(3599);
            ++woke;
          });
        }
        sleep(3600);
      },
      4);
  EXPECT_EQ(woke, 100);
  EXPECT_EQ(time.elapsed(), 1h);
}

TEST(VirtualTimeDeathTest, MisuseIsReported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(VirtualTime().advance(-1ns), "step");
  EXPECT_DEATH(VirtualTime(VirtualTime::kByHand).run([] {}), "byHand");
  EXPECT_DEATH(
      {
        VirtualTime time;
        time.run([&] { time.advance(1s); });
      },
      "mayPark");
  EXPECT_DEATH(
      {
        auto time = std::make_unique<VirtualTime>();
        IOManager iom(on(*time));
        time.reset();
      },
      "m_first");
}

INSTANTIATE_TEST_SUITE_P(Workers, VirtualTimeOverWorkers, kWorkerCounts);

// Cause: the stop held the worker, so the clock stood still and the other scheduler's sleep had no end.
TEST(VirtualTime, AFiberMayStopAnotherSchedulerOfTheSameClock) {
  VirtualTime time;
  time.run([&] {
    IOManager other(SchedulerOptions{.threads = 1, .use_caller = false, .name = "other", .clock = &time});
    other.schedule([] { ::sleep(3600); });
    other.stop();
    EXPECT_EQ(time.elapsed(), 1h);
  });
  EXPECT_EQ(time.elapsed(), 1h);
}

// The other one takes real time, of which the clock sees nothing.
TEST(VirtualTime, StandsStillWhileAFiberStopsASchedulerInRealTime) {
  VirtualTime time;
  time.run([&] {
    IOManager other(1, false, "other");
    other.schedule([] { ::usleep(10'000); });
    other.stop();
    EXPECT_EQ(time.elapsed(), 0h);
  });
}

}  // namespace
}  // namespace sylar::test
