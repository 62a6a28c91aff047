// addEvent and similar calls, on pipes and sockets; over several counts of workers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sylar/base/sys.h"
#include "sylar/io/fd_table.h"
#include "sylar/iomanager.h"
#include "tests/io/descriptors.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using test::Ends;
using test::eventually;
using test::Gate;
using test::LeakCheck;
using test::makePipe;
using test::makeSockets;

constexpr auto READ = IOManager::READ;
constexpr auto WRITE = IOManager::WRITE;

class EventTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, EventTest, test::kWorkerCounts);

// P-13: a worker's loop runs next what it queues, so it calls nobody for that.
TEST(Event, ACallbackOrATimerThatOneWorkerServesWakesNoOther) {
  const Ends pipe = makePipe();
  IOManager iom(4, false, "io");
  Gate ran;
  for (size_t round = 1; round <= 50; ++round) {
    ASSERT_EQ(iom.addEvent(pipe[0], READ, [&] { ran.open(); }), 0);
    pipe.put(1);
    ASSERT_TRUE(ran.wait(2 * round - 1));
    pipe.get(0);
    iom.startTimer(std::chrono::nanoseconds(1), [&] { ran.open(); });
    ASSERT_TRUE(ran.wait(2 * round));
  }
  EXPECT_EQ(iom.getWorkerStats().tickles, 0u);
}

// Cause: a forked child's registration lands in the parent's epoll, and tells of a number that the table does not know.
TEST(Event, OfANumberThatIsInNoTableIsPassedOver) {
  const Ends pipe = makePipe();
  const int high = ::fcntl(pipe[0], F_DUPFD_CLOEXEC, 900);
  ASSERT_EQ(FdTable::find(high), nullptr);
  Gate turned;
  {
    IOManager iom(1, false, "io");
    iom.schedule([&] {
      EXPECT_EQ(EpollEngine::current()->add(high, 0, EPOLLIN | EPOLLET), 0);
      pipe.put(1);
      const uint64_t polls = iom.getWorkerStats().polls;
      while (iom.getWorkerStats().polls == polls) Fiber::YieldToReady();
      turned.open();
    });
    EXPECT_TRUE(turned.wait());
  }
  ::close(high);
}

// ---- Events fire. ------------------------------------------------------------------------------------------------------------

// CD-I4: from a plain thread, too.
TEST_P(EventTest, ACallbackRunsOnceInAFiberOfTheManagerThatWasAsked) {
  const Ends pipe = makePipe();
  IOManager iom(workers(), false, "io");
  Gate fired;
  ASSERT_EQ(iom.addEvent(pipe[0], READ,
                         [&] {
                           EXPECT_EQ(IOManager::GetThis(), &iom);
                           EXPECT_NE(Fiber::GetFiberId(), 0u);
                           fired.open();
                         }),
            0);
  pipe.put(1);
  ASSERT_TRUE(fired.wait());
  pipe.put(1);
  iom.stop();
  EXPECT_EQ(fired.count(), 1u);
}

TEST_P(EventTest, WhatIsReadyAlreadyFiresAtOnce) {
  const Ends pipe = makePipe();
  pipe.put(1);
  IOManager iom(workers(), false, "io");
  Gate fired;
  for (size_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(iom.addEvent(pipe[0], READ, [&] { fired.open(); }), 0);
    ASSERT_TRUE(fired.wait(i)) << "although no new byte came";
    ASSERT_EQ(iom.addEvent(pipe[1], WRITE, [&] { fired.open(); }), 0);
    ASSERT_TRUE(fired.wait(++i));
  }
  iom.stop();  // while what the fibers use is alive
}

TEST_P(EventTest, AFiberWithoutACallbackGoesOnOnItsThread) {
  const Ends sockets = makeSockets();
  IOManager iom(workers(), false, "io");
  Gate waiting;
  Gate done;
  iom.schedule([&] {
    const int home = sys::threadId();
    for (int i = 0; i < 10; ++i) {
      ASSERT_EQ(iom.addEvent(sockets[0], READ), 0);
      waiting.open();
      Fiber::YieldToHold();
      EXPECT_EQ(sys::threadId(), home);
      sockets.get(0);
    }
    done.open();
  });
  for (size_t i = 1; i <= 10; ++i) {
    ASSERT_TRUE(waiting.wait(i));
    sockets.put(1);
  }
  EXPECT_TRUE(done.wait());
  iom.stop();  // while what the fibers use is alive
}

// CD-I2
TEST(EventOrder, SeveralThatWaitForOneEventRunInTheirOrder) {
  const LeakCheck leaks;
  const Ends pipe = makePipe();
  IOManager iom(1, false, "io");
  std::vector<int> order;  // plain: one worker
  std::vector<Fiber::ptr> fibers;
  for (int i = 0; i < 10; ++i) {
    fibers.push_back(std::make_shared<Fiber>([&, i] {
      ASSERT_EQ(iom.addEvent(pipe[0], READ), 0);
      Fiber::YieldToHold();
      order.push_back(i);
    }));
    iom.schedule(fibers.back());
    ASSERT_TRUE(eventually([&] { return fibers.back()->getState() == Fiber::HOLD; }));
  }
  for (int i = 10; i < 20; ++i) ASSERT_EQ(iom.addEvent(pipe[0], READ, [&order, i] { order.push_back(i); }), 0);
  pipe.put(1);
  iom.stop();
  ASSERT_EQ(order.size(), 20u);
  // Callbacks are unstarted work, fibers are woken ones: each kind in its order.
  std::stable_partition(order.begin(), order.end(), [](int i) { return i < 10; });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

// CD-I2, FM-18
TEST_P(EventTest, AHundredThatWaitForOneEventAllRun) {
  const Ends sockets = makeSockets();
  IOManager iom(workers(), false, "io");
  std::atomic<int> ran{0};
  Gate waiting;
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(iom.addEvent(sockets[0], READ, [&] { ran.fetch_add(1); }), 0);
    iom.schedule([&] {
      ASSERT_EQ(iom.addEvent(sockets[0], READ), 0);
      waiting.open();
      Fiber::YieldToHold();
      ran.fetch_add(1);
    });
  }
  ASSERT_TRUE(waiting.wait(50));
  sockets.put(1);
  iom.stop();
  EXPECT_EQ(ran.load(), 100);
}

TEST_P(EventTest, ManyDescriptorsFireEachTheirOwn) {
  std::vector<Ends> pipes;
  for (int i = 0; i < 200; ++i) pipes.push_back(makePipe());
  IOManager iom(workers(), false, "io");
  std::vector<std::atomic<int>> fired(pipes.size());
  for (size_t i = 0; i < pipes.size(); ++i) {
    ASSERT_EQ(iom.addEvent(pipes[i][0], READ,
                           [&, i] {
                             pipes[i].get(0);
                             fired[i].fetch_add(1);
                           }),
              0);
  }
  for (const Ends& pipe : pipes) pipe.put(1);
  iom.stop();
  for (const auto& count : fired) EXPECT_EQ(count.load(), 1);
}

TEST_P(EventTest, ACallbackMayRegisterAgain) {
  const Ends sockets = makeSockets();
  IOManager iom(workers(), false, "io");
  std::atomic<int> bytes{0};
  std::function<void()> read = [&] {
    char byte;  // an event that another worker has collected, but not told yet, may be of a byte that the last callback has taken
    if (::read(sockets[0], &byte, 1) == 1 && bytes.fetch_add(1) + 1 == 100) return;
    ASSERT_EQ(iom.addEvent(sockets[0], READ, read), 0);
  };
  ASSERT_EQ(iom.addEvent(sockets[0], READ, read), 0);
  for (int i = 0; i < 100; ++i) sockets.put(1);
  iom.stop();
  EXPECT_EQ(bytes.load(), 100);
}

TEST_P(EventTest, WritingFiresWhenThereIsRoomAgain) {
  const Ends sockets = makeSockets();
  sockets.fill(0);
  IOManager iom(workers(), false, "io");
  Gate fired;
  ASSERT_EQ(iom.addEvent(sockets[0], WRITE, [&] { fired.open(); }), 0);
  Gate turned;
  iom.schedule([&] { turned.open(); });
  ASSERT_TRUE(turned.wait());
  EXPECT_EQ(fired.count(), 0u);
  sockets.empty(1);
  EXPECT_TRUE(fired.wait());
  iom.stop();  // while what the fibers use is alive
}

// FM-11: whoever waits, for whatever, learns that the peer is gone.
TEST_P(EventTest, HangUpFiresBothDirections) {
  Ends sockets = makeSockets();
  sockets.fill(0);
  IOManager iom(workers(), false, "io");
  Gate fired;
  ASSERT_EQ(iom.addEvent(sockets[0], READ, [&] { fired.open(); }), 0);
  ASSERT_EQ(iom.addEvent(sockets[0], WRITE, [&] { fired.open(); }), 0);
  sockets.close(1);
  EXPECT_TRUE(fired.wait(2));
  iom.stop();  // while what the fibers use is alive
}

TEST_P(EventTest, AWriterLearnsThatThePipesReaderIsGone) {
  Ends pipe = makePipe();
  pipe.fill(1);
  IOManager iom(workers(), false, "io");
  Gate fired;
  ASSERT_EQ(iom.addEvent(pipe[1], WRITE, [&] { fired.open(); }), 0);
  pipe.close(0);
  EXPECT_TRUE(fired.wait());
  iom.stop();  // while what the fibers use is alive
}

// Two managers wait for one descriptor; each runs its own.
TEST_P(EventTest, EachManagerRunsWhatItWasAsked) {
  const LeakCheck leaks;
  const Ends sockets = makeSockets();
  IOManager first(workers(), false, "first");
  IOManager second(workers(), false, "second");
  for (int round = 0; round < 20; ++round) {
    Gate fired;
    ASSERT_EQ(first.addEvent(sockets[0], READ,
                             [&] {
                               EXPECT_EQ(IOManager::GetThis(), &first);
                               fired.open();
                             }),
              0);
    ASSERT_EQ(second.addEvent(sockets[0], READ,
                              [&] {
                                EXPECT_EQ(IOManager::GetThis(), &second);
                                fired.open();
                              }),
              0);
    sockets.put(1);
    ASSERT_TRUE(fired.wait(2));
    sockets.get(0);
  }
  first.stop();
  second.stop();
}

// The numbers are reused without any hook: the kernel is asked each time.
TEST_P(EventTest, ANumberThatIsReusedFiresForItsNewOwner) {
  IOManager iom(workers(), false, "io");
  for (int i = 0; i < 50; ++i) {
    const Ends ends = i % 2 == 0 ? makePipe() : makeSockets();
    Gate fired;
    ASSERT_EQ(iom.addEvent(ends[0], READ, [&] { fired.open(); }), 0);
    ends.put(1);
    ASSERT_TRUE(fired.wait()) << i;
  }
}

// ---- Taking back, and firing by hand. ----------------------------------------------------------------------------------------

TEST_P(EventTest, DelEventDropsSilentlyAndLetsStopEnd) {
  const Ends pipe = makePipe();
  const auto capture = std::make_shared<int>(0);
  IOManager iom(workers(), false, "io");
  EXPECT_FALSE(iom.delEvent(pipe[0], READ));
  ASSERT_EQ(iom.addEvent(pipe[0], READ, [capture] { FAIL(); }), 0);
  ASSERT_EQ(iom.addEvent(pipe[0], READ, [capture] { FAIL(); }), 0);
  EXPECT_FALSE(iom.delEvent(pipe[0], WRITE));
  EXPECT_TRUE(iom.delEvent(pipe[0], READ));
  EXPECT_FALSE(iom.delEvent(pipe[0], READ));
  EXPECT_EQ(capture.use_count(), 1);
  pipe.put(1);
  iom.stop();
}

TEST_P(EventTest, DelEventFromAPlainThreadEndsAStopThatWaits) {
  const Ends pipe = makePipe();
  IOManager iom(workers(), false, "io");
  ASSERT_EQ(iom.addEvent(pipe[0], READ, [] { FAIL(); }), 0);
  std::atomic<bool> stopped{false};
  std::thread stopper([&] {
    iom.stop();
    stopped = true;
  });
  Gate turned;
  iom.schedule([&] { turned.open(); });
  ASSERT_TRUE(turned.wait());
  EXPECT_FALSE(stopped);
  EXPECT_TRUE(iom.delEvent(pipe[0], READ));
  stopper.join();
  iom.stop();  // while what the fibers use is alive
}

TEST_P(EventTest, DelEventConcernsItsOwnManagerOnly) {
  const LeakCheck leaks;
  const Ends pipe = makePipe();
  IOManager first(workers(), false, "first");
  IOManager second(workers(), false, "second");
  Gate fired;
  ASSERT_EQ(first.addEvent(pipe[0], READ, [&] { fired.open(); }), 0);
  EXPECT_FALSE(second.delEvent(pipe[0], READ));
  pipe.put(1);
  EXPECT_TRUE(fired.wait());
  first.stop();
  second.stop();
}

// A fiber whose event was taken back is held like any other, and cancelled at the end.
TEST_P(EventTest, AFiberWhoseEventIsTakenBackIsHeldUntilStop) {
  const Ends pipe = makePipe();
  IOManager iom(workers(), false, "io");
  Gate waiting;
  Gate ended;
  iom.schedule([&] {
    ASSERT_EQ(iom.addEvent(pipe[0], READ), 0);
    waiting.open();
    Fiber::YieldToHold();
    ended.open();
  });
  ASSERT_TRUE(waiting.wait());
  EXPECT_TRUE(iom.delEvent(pipe[0], READ));
  EXPECT_EQ(ended.count(), 0u);
  iom.stop();
  EXPECT_EQ(ended.count(), 1u);
}

TEST_P(EventTest, CancelEventFiresWhatWaits) {
  const Ends sockets = makeSockets();
  sockets.fill(0);
  IOManager iom(workers(), false, "io");
  EXPECT_FALSE(iom.cancelEvent(sockets[0], READ));
  EXPECT_FALSE(iom.cancelAll(sockets[0]));
  Gate read;
  Gate write;
  const auto add = [&] {
    ASSERT_EQ(iom.addEvent(sockets[0], READ, [&] { read.open(); }), 0);
    ASSERT_EQ(iom.addEvent(sockets[0], WRITE, [&] { write.open(); }), 0);
  };
  add();
  EXPECT_TRUE(iom.cancelEvent(sockets[0], READ));
  ASSERT_TRUE(read.wait(1));
  EXPECT_EQ(write.count(), 0u);
  EXPECT_TRUE(iom.cancelEvent(sockets[0], WRITE));
  ASSERT_TRUE(write.wait(1));
  add();
  EXPECT_TRUE(iom.cancelAll(sockets[0]));
  EXPECT_TRUE(read.wait(2));
  EXPECT_TRUE(write.wait(2));
  iom.stop();  // while what the fibers use is alive
}

// Closed through the table, as the hooks do: from any thread, and in the order of their registration.
TEST_P(EventTest, ACloseFiresWhatWaits) {
  const LeakCheck leaks;
  for (int round = 0; round < 100; ++round) {
    Ends sockets = makeSockets();
    sockets.fill(0);
    IOManager iom(workers(), false, "io");
    std::atomic<int> fired{0};
    for (int i = 0; i < 5; ++i) {
      ASSERT_EQ(iom.addEvent(sockets[0], i % 2 == 0 ? READ : WRITE, [&] { fired.fetch_add(1); }), 0);
    }
    EXPECT_EQ(FdTable::close(sockets[0], [] { return 7; }), 7);
    iom.stop();  // which waits for them
    EXPECT_EQ(fired.load(), 5);
    EXPECT_FALSE(iom.cancelAll(sockets[0]));
  }
}

TEST_P(EventTest, CancelAllWakesAFiber) {
  const Ends pipe = makePipe();
  IOManager iom(workers(), false, "io");
  Gate waiting;
  Gate done;
  iom.schedule([&] {
    ASSERT_EQ(iom.addEvent(pipe[0], READ), 0);
    waiting.open();
    Fiber::YieldToHold();
    done.open();
  });
  ASSERT_TRUE(waiting.wait());
  EXPECT_TRUE(iom.cancelAll(pipe[0]));
  EXPECT_TRUE(done.wait());
  iom.stop();  // while what the fibers use is alive
}

// ---- What is refused. --------------------------------------------------------------------------------------------------------

/// addEvent with a callback that must not run; errno.
int errorOf(IOManager& iom, int fd, IOManager::Event event) {
  errno = 0;
  EXPECT_EQ(iom.addEvent(fd, event, [] { FAIL(); }), -1);
  return errno;
}

// CD-I4
TEST_P(EventTest, WhatIsNoDescriptorIsRefused) {
  IOManager iom(workers(), false, "io");
  const int closed = ::fcntl(2, F_DUPFD, 500);  // a number that nobody gets: sanitizers' runtimes take low ones
  ASSERT_GE(closed, 0);
  ::close(closed);
  for (const int fd : {-1, -2, INT_MIN, INT_MAX, closed, 1'000'000}) {
    EXPECT_EQ(errorOf(iom, fd, READ), EBADF) << fd;
    EXPECT_EQ(errorOf(iom, fd, WRITE), EBADF) << fd;
    EXPECT_FALSE(iom.delEvent(fd, READ));
    EXPECT_FALSE(iom.cancelEvent(fd, READ));
    EXPECT_FALSE(iom.cancelAll(fd));
  }
  iom.stop();  // nothing is pending
}

// FM-12
TEST_P(EventTest, ARegularFileIsAlwaysReadyAndIsRefused) {
  IOManager iom(workers(), false, "io");
  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  EXPECT_EQ(errorOf(iom, file, READ), EPERM);
  EXPECT_EQ(errorOf(iom, file, WRITE), EPERM);
  ::close(file);
}

TEST_P(EventTest, WhatIsNotOneEventIsRefused) {
  const Ends pipe = makePipe();
  IOManager iom(workers(), false, "io");
  const auto both = static_cast<IOManager::Event>(READ | WRITE);
  EXPECT_EQ(errorOf(iom, pipe[0], IOManager::NONE), EINVAL);
  EXPECT_EQ(errorOf(iom, pipe[0], both), EINVAL);
  EXPECT_FALSE(iom.delEvent(pipe[0], both));
  EXPECT_FALSE(iom.cancelEvent(pipe[0], IOManager::NONE));
  errno = 0;
  EXPECT_EQ(iom.addEvent(pipe[0], READ), -1) << "no callback and no fiber";
  EXPECT_EQ(errno, EINVAL);
}

TEST_P(EventTest, AfterTheEndOfStopItIsRefused) {
  const Ends pipe = makePipe();
  const auto capture = std::make_shared<int>(0);
  IOManager iom(workers(), false, "io");
  iom.stop();
  errno = 0;
  EXPECT_EQ(iom.addEvent(pipe[0], READ, [capture] { FAIL(); }), -1);
  EXPECT_EQ(errno, ECANCELED);
  EXPECT_EQ(capture.use_count(), 1);
  EXPECT_FALSE(iom.delEvent(pipe[0], READ));
}

// Trap 4, as sylar's users wrote it.
TEST_P(EventTest, TheMemberPointerCastWorksWithAnIOManager) {
  IOManager iom(workers(), false, "cast");
  Gate done;
  const auto fiber = std::make_shared<Fiber>([&] { done.open(); });
  std::bind((void(Scheduler::*)(Fiber::ptr, int)) & IOManager::schedule, &iom, fiber, -1)();
  EXPECT_TRUE(done.wait());
  iom.stop();  // while what the fibers use is alive
}

TEST(EventValues, EventsHaveEpollsValues) {  // Trap 9
  EXPECT_EQ(IOManager::NONE, 0);
  EXPECT_EQ(IOManager::READ, 0x1);
  EXPECT_EQ(IOManager::WRITE, 0x4);
}

// ---- The end. ----------------------------------------------------------------------------------------------------------------

TEST_P(EventTest, StopWaitsForWhatWillFire) {
  const Ends pipe = makePipe();
  IOManager iom(workers(), false, "io");
  std::atomic<bool> fired{false};
  ASSERT_EQ(iom.addEvent(pipe[0], READ, [&] { fired = true; }), 0);
  std::atomic<bool> stopped{false};
  std::thread stopper([&] {
    iom.stop();
    EXPECT_TRUE(fired);
    stopped = true;
  });
  Gate turned;
  iom.schedule([&] { turned.open(); });
  ASSERT_TRUE(turned.wait());
  EXPECT_FALSE(stopped);
  pipe.put(1);
  stopper.join();
  EXPECT_TRUE(stopped);
  iom.stop();  // while what the fibers use is alive
}

TEST_P(EventTest, TheCallersManagerServesEventsInsideStop) {
  const Ends pipe = makePipe();
  pipe.put(1);
  IOManager iom(workers(), true, "caller");
  EXPECT_EQ(IOManager::GetThis(), &iom);
  std::atomic<bool> fired{false};
  ASSERT_EQ(iom.addEvent(pipe[0], READ, [&] { fired = true; }), 0);
  iom.stop();
  EXPECT_TRUE(fired);
}

// The registration stood with the first manager's engine; that works no more, the descriptor does.
TEST_P(EventTest, AManagerThatHasStoppedKeepsNoEventFromAnother) {
  const LeakCheck leaks;
  const Ends sockets = makeSockets();
  IOManager first(workers(), false, "first");
  IOManager second(workers(), false, "second");
  Gate fired;
  sockets.put(1);
  ASSERT_EQ(first.addEvent(sockets[0], READ, [&] { fired.open(); }), 0);
  ASSERT_TRUE(fired.wait(1));
  first.stop();
  ASSERT_EQ(second.addEvent(sockets[0], READ, [&] { fired.open(); }), 0);
  EXPECT_TRUE(fired.wait(2));
  second.cancelAll(sockets[0]);
}

// The same, but the second waited already when the first ended.
TEST_P(EventTest, WhoWaitsTakesTheRegistrationOfAStoppedManagerOver) {
  const LeakCheck leaks;
  const Ends sockets = makeSockets();
  sockets.fill(0);
  IOManager first(workers(), false, "first");
  IOManager second(workers(), false, "second");
  Gate read;
  Gate write;
  ASSERT_EQ(first.addEvent(sockets[0], READ, [&] { read.open(); }), 0);
  ASSERT_EQ(second.addEvent(sockets[0], WRITE, [&] { write.open(); }), 0);
  sockets.put(1);
  ASSERT_TRUE(read.wait());
  first.stop();
  sockets.empty(1);
  EXPECT_TRUE(write.wait());
  second.cancelAll(sockets[0]);
}

// The same, but the first is destroyed.
TEST_P(EventTest, WhoWaitsTakesTheRegistrationOfADestroyedManagerOver) {
  const LeakCheck leaks;
  const Ends sockets = makeSockets();
  sockets.fill(0);
  IOManager second(workers(), false, "second");
  Gate read;
  Gate write;
  {
    IOManager first(workers(), false, "first");
    ASSERT_EQ(first.addEvent(sockets[0], READ, [&] { read.open(); }), 0);
    ASSERT_EQ(second.addEvent(sockets[0], WRITE, [&] { write.open(); }), 0);
    sockets.put(1);
    ASSERT_TRUE(read.wait());
  }
  sockets.empty(1);
  EXPECT_TRUE(write.wait());
  second.cancelAll(sockets[0]);
  second.stop();  // while what the fibers use is alive
}

// Cause: it was accepted, and fired into an IOManager that was gone.
TEST(AddEvent, IsRefusedAfterStop) {
  IOManager iom(1, false, "ended");
  iom.stop();
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  EXPECT_EQ(iom.addEvent(ends[0], IOManager::READ, [] {}), -1);
  EXPECT_EQ(errno, ECANCELED);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace sylar
