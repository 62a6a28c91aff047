// When virtual time stands still: each test brings about one reason, makes the clock decide while it holds, and looks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "sylar/base/fd.h"
#include "sylar/iomanager.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "sylar/sync/blocking_pool.h"
#include "sylar/testing/virtual_time.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"
#include "tests/testing/on.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

/// A reason is looked at again whenever a Hold ends: so this is a thousand decisions.
bool standsStill(VirtualTime& time) {
  for (int i = 0; i < 1000; ++i) {
    const auto before = time.elapsed();
    { const VirtualTime::Hold look_again(time); }
    if (time.elapsed() != before) return false;
  }
  return true;
}

/// From here on at least `count` workers wait for something to come.
bool awaitAsleep(IOManager& iom, size_t count) {
  return eventually([&] {
    const auto& workers = coreOf(iom).workers();
    return static_cast<size_t>(std::ranges::count_if(workers, [](const auto& w) { return w->slot().mailbox.sleeping(); })) >=
           count;
  });
}

class VirtualTimeRefuses : public OverWorkers {};

// Runnable work: a fiber that yields keeps the clock, on whichever worker the sleeper is.
TEST_P(VirtualTimeRefuses, WhileAFiberIsRunnable) {
  VirtualTime time;
  std::atomic<bool> slept{false};
  {
    IOManager iom(on(time, workers()));
    const VirtualTime::Hold hold(time);
    iom.schedule([&] {
      sleep(3600);
      slept = true;
    });
    iom.schedule([&] {
      for (int i = 0; i < 1000; ++i) {
        Fiber::YieldToReady();
        EXPECT_EQ(time.elapsed(), 0s);
      }
      EXPECT_FALSE(slept);
    });
  }
  EXPECT_EQ(time.elapsed(), 1h);
}

// Work that runs: a fiber that computes keeps the clock, while all other workers are asleep.
TEST_P(VirtualTimeRefuses, WhileAFiberComputes) {
  VirtualTime time;
  std::atomic<bool> sleeps{false};
  Gate computes;
  Gate done;
  IOManager iom(on(time, workers()));
  {
    const VirtualTime::Hold both_begin(time);
    iom.schedule([&] {
      sleeps = true;
      sleep(3600);
    });
    EXPECT_TRUE(eventually([&] { return sleeps.load(); }));
    iom.schedule([&] {
      computes.open();
      EXPECT_TRUE(done.wait());
    });
    EXPECT_TRUE(computes.wait());
  }
  EXPECT_TRUE(awaitAsleep(iom, workers() - 1));
  EXPECT_TRUE(standsStill(time));
  EXPECT_EQ(time.elapsed(), 0s);
  done.open();
}

// Queued work: what was placed on a worker that has not woken yet keeps the clock.
TEST_P(VirtualTimeRefuses, WhileWorkIsQueued) {
  VirtualTime time;
  IOManager iom(on(time, workers()));
  for (int i = 0; i < 200; ++i) {
    const auto before = time.elapsed();
    std::chrono::nanoseconds ran{-1};
    std::atomic<bool> over{false};
    {
      const VirtualTime::Hold hold(time);
      iom.schedule([] { sleep(1); });
      iom.place([&] {
        ran = time.elapsed();
        over = true;
      });
    }
    time.awaitIdle();
    ASSERT_TRUE(over);
    ASSERT_EQ(ran, before);
    ASSERT_EQ(time.elapsed(), before + 1s);
  }
}

// Ready I/O: bytes that wait for a parked fiber keep the clock, though every worker is asleep when they come.
TEST_P(VirtualTimeRefuses, WhileADescriptorIsReady) {
  for (int i = 0; i < 100; ++i) {
    VirtualTime time;
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    const UniqueFd here(fds[0]);
    const UniqueFd there(fds[1]);
    const timeval minute{60, 0};
    ASSERT_EQ(setsockopt(here.get(), SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof minute), 0);
    {
      Gate begun;
      IOManager iom(on(time, workers()));
      const VirtualTime::Hold hold(time);
      iom.schedule([&] {
        begun.open();
        char byte;
        EXPECT_EQ(read(here.get(), &byte, 1), 1);
      });
      ASSERT_TRUE(begun.wait());
      ASSERT_TRUE(awaitAsleep(iom, workers()));
      ASSERT_EQ(write(there.get(), "x", 1), 1);  // and the hold ends before anybody can have read it
    }
    ASSERT_EQ(time.elapsed(), 0s);
  }
}

/// Both ends of a TCP connection over loopback; as usual, with Nagle's algorithm.
struct TcpPair {
  TcpPair() {
    const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    client = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    server = UniqueFd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const timeval minute{60, 0};
    EXPECT_EQ(setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof minute), 0);
  }
  UniqueFd client;
  UniqueFd server;
};

// Bytes that TCP keeps back keep the clock: an answer in two small pieces, of which the second waits for an acknowledgement.
TEST_P(VirtualTimeRefuses, WhileTcpKeepsBytesBack) {
  VirtualTime time;
  const TcpPair pair;
  {
    IOManager iom(on(time, workers()));
    const VirtualTime::Hold both_begin(time);
    iom.schedule([&] {
      char question;
      while (read(pair.server.get(), &question, 1) == 1) {
        EXPECT_EQ(write(pair.server.get(), "a", 1), 1);
        EXPECT_EQ(write(pair.server.get(), "b", 1), 1);
      }
    });
    iom.schedule([&] {
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(write(pair.client.get(), "?", 1), 1);
        char answer[2];
        EXPECT_EQ(recv(pair.client.get(), answer, 2, MSG_WAITALL), 2);
      }
      EXPECT_EQ(shutdown(pair.client.get(), SHUT_WR), 0);
    });
  }
  EXPECT_EQ(time.elapsed(), 0s);
}

// Bytes for which the receiver has no room do not keep it: he may be asleep.
TEST_P(VirtualTimeRefuses, ButNotWhileAReceiverHasNoRoom) {
  VirtualTime time;
  const TcpPair pair;
  size_t sent = 0;
  size_t received = 0;
  {
    IOManager iom(on(time, workers()));
    const VirtualTime::Hold both_begin(time);
    iom.schedule([&] {
      const std::vector<char> much(16 << 20);
      sent = static_cast<size_t>(write(pair.client.get(), much.data(), much.size()));
      EXPECT_EQ(shutdown(pair.client.get(), SHUT_WR), 0);
    });
    iom.schedule([&] {
      sleep(3600);
      std::vector<char> buffer(1 << 20);
      for (ssize_t count; (count = read(pair.server.get(), buffer.data(), buffer.size())) > 0;)
        received += static_cast<size_t>(count);
    });
  }
  EXPECT_EQ(sent, size_t{16 << 20});
  EXPECT_EQ(received, sent);
  EXPECT_EQ(time.elapsed(), 1h);
}

// Nor does a thread that awaits the clock prolong it: its own looks are nothing that came.
TEST_P(VirtualTimeRefuses, ButNotForEverWhileAThreadAwaitsTheClock) {
  for (const auto moves : {VirtualTime::kByItself, VirtualTime::kByHand}) {
    VirtualTime time(moves);
    const TcpPair pair;
    const timeval minute{60, 0};
    ASSERT_EQ(setsockopt(pair.client.get(), SOL_SOCKET, SO_SNDTIMEO, &minute, sizeof minute), 0);
    std::atomic<ssize_t> sent{0};
    IOManager iom(on(time, workers()));
    iom.schedule([&] {
      const std::vector<char> much(16 << 20);
      sent = write(pair.client.get(), much.data(), much.size());
    });
    if (moves == VirtualTime::kByHand) time.advance(1min);
    time.awaitIdle();
    EXPECT_GT(sent, 0);
    EXPECT_LT(sent, ssize_t{16 << 20});
    EXPECT_EQ(time.elapsed(), 1min);
    EXPECT_LT(iom.getWorkerStats().polls, 1000U);  // it waited, and did not look all the time
  }
}

// A function on a helper thread keeps the clock, though every fiber waits.
TEST_P(VirtualTimeRefuses, WhileAHelperThreadWorks) {
  BlockingPool pool;
  VirtualTime time;
  {
    IOManager iom(on(time, workers()));
    const VirtualTime::Hold both_begin(time);
    iom.schedule([] { sleep(60); });
    iom.schedule([&] {
      EXPECT_EQ(pool.run([&] {
        EXPECT_TRUE(awaitAsleep(iom, workers()));
        EXPECT_TRUE(standsStill(time));
        EXPECT_EQ(time.elapsed(), 0s);
      }),
                0);
      sleep(60);
      EXPECT_EQ(time.elapsed(), 1min);
    });
  }
  EXPECT_EQ(time.elapsed(), 1min);
}

// The functions of one fiber after the other, and a refused one, leave nothing behind that would keep it forever.
TEST(VirtualTimeHelpers, TheClockGoesOnAfterThem) {
  VirtualTime time;
  BlockingPool pool({.max_threads = 1, .max_queued = 0});
  time.run([&] {
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(pool.run([] {}), 0);
      EXPECT_THROW((void)pool.run([] { throw 1; }), int);
      sleep(60);
    }
    Gate started;
    Gate refused;
    IOManager::GetThis()->schedule([&] {
      EXPECT_EQ(pool.run([&] {
        started.open();
        EXPECT_TRUE(refused.wait());
      }),
                0);
    });
    while (started.count() == 0) Fiber::YieldToReady();
    EXPECT_EQ(pool.run([] {}), -EAGAIN);
    refused.open();
    sleep(60);
  });
  EXPECT_EQ(time.elapsed(), 11min);
}

// A function that outlasts its fiber, which a stop abandoned, keeps the clock until it ends, and no longer.
TEST(VirtualTimeHelpers, AFunctionThatOutlastsItsFiberKeepsTheClockUntilItEnds) {
  Gate go_on;
  BlockingPool pool;
  VirtualTime time;
  {
    Gate started;
    IOManager iom(on(time, 1));
    iom.schedule([&] {
      (void)pool.run([&] {
        started.open();
        EXPECT_TRUE(go_on.wait());
      });
      ADD_FAILURE() << "it was abandoned";
    });
    ASSERT_TRUE(started.wait());
    EXPECT_FALSE(iom.stop(Deadline::after(0s)).clean);
  }
  IOManager iom(on(time, 1));
  iom.schedule([] { sleep(60); });
  ASSERT_TRUE(awaitAsleep(iom, 1));
  EXPECT_TRUE(standsStill(time));
  go_on.open();
  time.awaitIdle();
  EXPECT_EQ(time.elapsed(), 1min);
}

// It may outlast the clock, too.
TEST(VirtualTimeHelpers, AFunctionMayOutlastTheClock) {
  Gate go_on;
  BlockingPool pool;
  {
    VirtualTime time;
    Gate started;
    IOManager iom(on(time, 1));
    iom.schedule([&] {
      (void)pool.run([&] {
        started.open();
        EXPECT_TRUE(go_on.wait());
      });
      ADD_FAILURE() << "it was abandoned";
    });
    ASSERT_TRUE(started.wait());
    EXPECT_FALSE(iom.stop(Deadline::after(0s)).clean);
  }
  go_on.open();
}

// run() says that something it has begun goes on; the clock is usable when that has ended.
TEST(VirtualTimeHelpers, RunReportsAFunctionThatDoesNotEnd) {
  Gate started;
  Gate go_on;
  BlockingPool pool;
  VirtualTime time;
  try {
    time.run([&] {
      IOManager::GetThis()->schedule([&] {
        (void)pool.run([&] {
          started.open();
          EXPECT_TRUE(go_on.wait());
        });
        ADD_FAILURE() << "it was abandoned";
      });
      while (started.count() == 0) Fiber::YieldToReady();
    });
    ADD_FAILURE() << "it returned";
  } catch (const std::runtime_error& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("abandoned"), std::string::npos) << what;
    EXPECT_NE(what.find("helper"), std::string::npos) << what;
  }
  go_on.open();
  time.run([] { sleep(60); });
  EXPECT_EQ(time.elapsed(), 1min);
}

// A Hold keeps it for what the clock cannot see; they nest.
TEST_P(VirtualTimeRefuses, WhileItIsHeld) {
  VirtualTime time;
  IOManager iom(on(time, workers()));
  {
    const VirtualTime::Hold outer(time);
    iom.schedule([] { sleep(60); });
    ASSERT_TRUE(awaitAsleep(iom, workers()));
    EXPECT_TRUE(standsStill(time));
    EXPECT_EQ(time.elapsed(), 0s);
  }
  time.awaitIdle();
  EXPECT_EQ(time.elapsed(), 1min);
}

// stop(deadline) counts real time: a clock that stands still does not keep it.
TEST_P(VirtualTimeRefuses, StopWithADeadlineEndsUnderAHold) {
  VirtualTime time;
  const VirtualTime::Hold hold(time);
  std::atomic<int> ended{0};
  IOManager iom(on(time, workers()));
  for (int i = 0; i < 10; ++i) {
    iom.schedule([&] {
      sleep(3600);
      ++ended;
    });
  }
  EXPECT_TRUE(iom.stop(Deadline::after(10s)).clean);
  EXPECT_EQ(ended, 10);
  EXPECT_EQ(time.elapsed(), 0s);
}

// A worker that is left behind in its fiber keeps nobody's clock.
TEST(VirtualTime, ADetachedWorkerDoesNotKeepTheClock) {
  static Gate& s_never = *new Gate;  // they outlive the thread
  static VirtualTime& s_time = *new VirtualTime;
  Gate computes;
  {
    IOManager iom(on(s_time, 1));
    iom.schedule([&] {
      computes.open();
      (void)s_never.wait();
      for (;;) Fiber::YieldToReady();
    });
    EXPECT_TRUE(computes.wait());
    EXPECT_FALSE(iom.stop(Deadline::after(0s)).clean);
  }
  const auto before = s_time.elapsed();
  s_time.run([] { sleep(3600); });
  EXPECT_EQ(s_time.elapsed() - before, 1h);
}

// run() leaves a body behind that neither waits nor ends. When it ends all the same, it keeps nobody's clock, and uses nothing
// that has gone.
TEST(VirtualTime, RunReportsABodyThatDoesNotEnd) {
  static Gate& s_go_on = *new Gate;  // they outlive the thread
  static Gate& s_over = *new Gate;
  static VirtualTime& s_time = *new VirtualTime;
  struct Over {
    ~Over() { s_over.open(); }
  };
  EXPECT_THROW(s_time.run([] {
    const Over over;
    Wait wait;
    EXPECT_EQ(wait.park(), WakeReason::kCanceled);
    (void)s_go_on.wait();
    throw std::out_of_range("to nobody");
  }),
               std::runtime_error);
  s_go_on.open();
  ASSERT_TRUE(s_over.wait());
  for (int i = 0; i < 100; ++i) {  // while the rest of it runs
    const auto before = s_time.elapsed();
    s_time.run([] { sleep(60); });
    ASSERT_EQ(s_time.elapsed() - before, 1min);
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, VirtualTimeRefuses, kWorkerCounts);

}  // namespace
}  // namespace sylar::test
