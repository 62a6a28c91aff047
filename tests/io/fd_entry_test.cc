// Protocol P3 on one thread, against an engine that only writes down what it is asked.
#include "sylar/io/fd_entry.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sylar/fiber/fiber_control.h"
#include "sylar/sched/park.h"
#include "sylar/scheduler.h"
#include "tests/io/fake_engine.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using test::eventually;
using test::FakeEngine;
using test::Gate;
using test::kFd;
using test::ZeroMemory;
using Calls = test::EngineCalls;

constexpr uint32_t kReadEvents = EPOLLIN | EPOLLRDHUP | EPOLLPRI | EPOLLET;
constexpr uint32_t kBothEvents = kReadEvents | EPOLLOUT;
constexpr auto kRead = Direction::kRead;
constexpr auto kWrite = Direction::kWrite;

using FakeEntry = FdEntry<FakeEngine>;
using Waiter = FdWaiter<FakeEngine>;

class FdEntryTest : public testing::Test {
 protected:
  /// A waiter that writes `name` down when it is woken.
  struct Named : Waiter {
    Named(FdEntryTest& owner, FakeEngine& its_engine, std::string what) : test(owner), name(std::move(what)) {
      engine = &its_engine;
      fire = [](Waiter* waiter, WakeReason /*reason*/) {
        auto& me = *static_cast<Named*>(waiter);
        EXPECT_FALSE(me.linked);
        me.test.woken.push_back(me.name);
      };
    }
    FdEntryTest& test;
    const std::string name;
  };

  uint32_t generation() { return FakeEntry::generationOf(entry.life()); }
  int enqueue(Waiter& waiter, Direction direction = kRead, bool ask_kernel = false) {
    return entry.enqueue(kFd, generation(), direction, entry.edges(direction), ask_kernel, waiter);
  }
  void event(uint32_t events) { entry.onEvent(generation(), events); }
  int close(const std::function<int()>& real_close = [] { return 0; }) { return entry.close(kFd, real_close); }
  std::vector<std::string> takeWoken() { return std::exchange(woken, {}); }

  ZeroMemory memory;
  FakeEntry& entry = memory.entry();
  FakeEngine engine;
  FakeEngine other;
  std::vector<std::string> woken;
  Named a{*this, engine, "a"}, b{*this, engine, "b"}, c{*this, engine, "c"};
  Named elsewhere{*this, other, "elsewhere"};
};

using Names = std::vector<std::string>;

// ---- The start, and readiness. -----------------------------------------------------------------------------------------------

TEST_F(FdEntryTest, ZeroMemoryIsAnOpenReadyEntryOfUnknownKind) {
  EXPECT_FALSE(FakeEntry::isClosing(entry.life()));
  EXPECT_EQ(generation(), 0u);
  EXPECT_FALSE(entry.registered());
  EXPECT_FALSE(entry.sticky());
  EXPECT_EQ(entry.kind(), FdKind::kUnknown);
  EXPECT_FALSE(entry.isPrivate());
  EXPECT_FALSE(entry.nonblocking());
  for (const Direction direction : {kRead, kWrite}) {
    EXPECT_EQ(entry.edges(direction), 0u);
    EXPECT_FALSE(entry.knownEmpty(direction, 0)) << "ready: ask the kernel";
    EXPECT_EQ(entry.timeoutNs(direction), 0);
    EXPECT_FALSE(entry.wakeAll(direction));
  }
  EXPECT_TRUE(entry.pin(0));
  entry.unpin();
  EXPECT_EQ(enqueue(a), 0);
}

TEST_F(FdEntryTest, DrainedMeansEmptyUntilTheNextEvent) {
  entry.setDrained(kRead, entry.edges(kRead));
  EXPECT_TRUE(entry.knownEmpty(kRead, entry.edges(kRead)));
  EXPECT_FALSE(entry.knownEmpty(kWrite, entry.edges(kWrite)));
  event(EPOLLIN);
  EXPECT_FALSE(entry.knownEmpty(kRead, entry.edges(kRead)));
}

// A proof of emptiness from before an event says nothing after it.
TEST_F(FdEntryTest, AStaleProofOfEmptinessHidesNoEvent) {
  const uint64_t before = entry.edges(kRead);
  event(EPOLLIN);
  entry.setDrained(kRead, before);
  EXPECT_FALSE(entry.knownEmpty(kRead, entry.edges(kRead)));
}

TEST_F(FdEntryTest, AfterALastingEventNothingIsKnownToBeEmpty) {
  for (const uint32_t bit : {uint32_t{EPOLLRDHUP}, uint32_t{EPOLLHUP}, uint32_t{EPOLLERR}, uint32_t{EPOLLPRI}}) {
    SCOPED_TRACE(bit);
    entry.open(kFd, FdKind::kTcp, true, false);
    entry.setDrained(kRead, entry.edges(kRead));
    ASSERT_TRUE(entry.knownEmpty(kRead, entry.edges(kRead)));
    event(bit);
    EXPECT_TRUE(entry.sticky());
    entry.setDrained(kRead, entry.edges(kRead));
    EXPECT_FALSE(entry.knownEmpty(kRead, entry.edges(kRead)));
    event(EPOLLIN);
    EXPECT_TRUE(entry.sticky());
  }
}

TEST_F(FdEntryTest, AnEventBetweenTheCallAndTheQueueMeansAskAgain) {
  const uint64_t seen = entry.edges(kRead);
  event(EPOLLIN);
  EXPECT_EQ(entry.enqueue(kFd, generation(), kRead, seen, false, a), -EAGAIN);
  EXPECT_FALSE(a.linked);
  EXPECT_FALSE(entry.wakeAll(kRead));
}

// Some wait for other things than bytes to read, and some leave the bytes that they have seen where they are.
TEST_F(FdEntryTest, WhoIsQueuedHasProvedNothing) {
  ASSERT_EQ(enqueue(a), 0);
  EXPECT_TRUE(a.linked);
  EXPECT_FALSE(entry.knownEmpty(kRead, entry.edges(kRead)));
}

// ---- Events. -----------------------------------------------------------------------------------------------------------------

// CD-I2, FM-18
TEST_F(FdEntryTest, AnEventWakesAllOfItsDirectionOldestFirst) {
  ASSERT_EQ(enqueue(a), 0);
  ASSERT_EQ(enqueue(b), 0);
  ASSERT_EQ(enqueue(c, kWrite), 0);
  event(EPOLLIN);
  EXPECT_EQ(takeWoken(), (Names{"a", "b"}));
  event(EPOLLOUT);
  EXPECT_EQ(takeWoken(), Names{"c"});
  event(EPOLLIN | EPOLLOUT);
  EXPECT_EQ(takeWoken(), Names{});
}

// FM-11
TEST_F(FdEntryTest, EachEventConcernsItsDirections) {
  struct Case {
    uint32_t event;
    Names woken;
  };
  const std::vector<Case> cases = {
      {EPOLLIN, {"a"}},
      {EPOLLPRI, {"a"}},
      {EPOLLRDHUP, {"a"}},
      {EPOLLOUT, {"b"}},
      {EPOLLERR, {"a", "b"}},
      {EPOLLHUP, {"a", "b"}},
      {EPOLLIN | EPOLLOUT, {"a", "b"}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.event);
    ASSERT_EQ(enqueue(a, kRead), 0);
    ASSERT_EQ(enqueue(b, kWrite), 0);
    event(one.event);
    EXPECT_EQ(takeWoken(), one.woken);
    entry.dequeue(kRead, a);
    entry.dequeue(kWrite, b);
  }
}

// CD-I6, FM-14, RD-4
TEST_F(FdEntryTest, AnEventOfAnotherGenerationIsIgnored) {
  const uint32_t before = generation();
  entry.open(kFd, FdKind::kTcp, true, false);
  ASSERT_EQ(enqueue(a), 0);
  const uint64_t edges = entry.edges(kRead);
  entry.onEvent(before, EPOLLIN | EPOLLHUP);
  EXPECT_EQ(takeWoken(), Names{});
  EXPECT_EQ(entry.edges(kRead), edges);
  EXPECT_FALSE(entry.sticky());
}

TEST_F(FdEntryTest, AnEventWhileClosingIsIgnored) {
  const uint64_t edges = entry.edges(kRead);
  close([&] {
    event(EPOLLIN | EPOLLHUP);
    EXPECT_EQ(entry.edges(kRead), edges);
    EXPECT_FALSE(entry.sticky());
    return 0;
  });
}

TEST_F(FdEntryTest, WhoWasTakenOutIsNotWoken) {
  ASSERT_EQ(enqueue(a), 0);
  ASSERT_EQ(enqueue(b), 0);
  ASSERT_EQ(enqueue(c), 0);
  entry.dequeue(kRead, b);
  entry.dequeue(kRead, b);
  event(EPOLLIN);
  EXPECT_EQ(takeWoken(), (Names{"a", "c"}));
  entry.dequeue(kRead, a);
  ASSERT_EQ(enqueue(b), 0);
  event(EPOLLIN);
  EXPECT_EQ(takeWoken(), Names{"b"});
}

TEST_F(FdEntryTest, ThoseThatAreWantedAreTakenOut) {
  for (Named* waiter : {&a, &b, &c}) ASSERT_EQ(enqueue(*waiter), 0);
  Names removed;
  entry.dequeueIf(
      kRead, [&](const Waiter& waiter) { return &waiter != &b; },
      [&](Waiter& waiter) { removed.push_back(static_cast<Named&>(waiter).name); });
  EXPECT_EQ(removed.size(), 2u);
  event(EPOLLIN);
  EXPECT_EQ(takeWoken(), Names{"b"});
}

TEST_F(FdEntryTest, WakeAllIsAnEventOfOneDirection) {
  ASSERT_EQ(enqueue(a), 0);
  ASSERT_EQ(enqueue(b, kWrite), 0);
  const uint64_t edges = entry.edges(kRead);
  EXPECT_TRUE(entry.wakeAll(kRead));
  EXPECT_EQ(takeWoken(), Names{"a"});
  EXPECT_EQ(entry.edges(kRead), edges + 1);
  EXPECT_FALSE(entry.wakeAll(kRead));
}

// ---- Registration. -----------------------------------------------------------------------------------------------------------

// CD-I9: no epoll_ctl per wait.
TEST_F(FdEntryTest, ItRegistersOnceAndAddsWritingAtTheFirstBlockedWrite) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(enqueue(a), 0);
    event(EPOLLIN);
  }
  EXPECT_EQ(engine.calls, (Calls{{"add", 0, kReadEvents}}));
  EXPECT_TRUE(entry.registered());
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(enqueue(a, kWrite), 0);
    ASSERT_EQ(enqueue(b, kRead), 0);
    event(EPOLLIN | EPOLLOUT);
  }
  EXPECT_EQ(engine.calls, (Calls{{"add", 0, kReadEvents}, {"modify", 0, kBothEvents}}));
}

TEST_F(FdEntryTest, TheKernelIsAskedWhereTheNumberMayBeAnothers) {
  ASSERT_EQ(enqueue(a), 0);
  ASSERT_EQ(enqueue(b, kRead, true), 0);
  EXPECT_EQ(engine.calls, (Calls{{"add", 0, kReadEvents}, {"modify", 0, kReadEvents}}));
  engine.calls.clear();
  engine.answers["modify"] = -ENOENT;  // it is another open file than the one that was registered
  ASSERT_EQ(enqueue(c, kRead, true), 0);
  EXPECT_EQ(engine.calls, (Calls{{"modify", 0, kReadEvents}, {"add", 0, kReadEvents}}));
}

TEST_F(FdEntryTest, WhatTheKernelHasAlreadyIsModified) {
  engine.answers["add"] = -EEXIST;
  ASSERT_EQ(enqueue(a), 0);
  EXPECT_EQ(engine.calls, (Calls{{"add", 0, kReadEvents}, {"modify", 0, kReadEvents}}));
}

// FM-12: no state is left.
TEST_F(FdEntryTest, WhatCannotBeRegisteredIsNotQueued) {
  for (const int error : {-EPERM, -ENOSPC, -ENOMEM, -EBADF}) {
    engine.answers["add"] = error;
    EXPECT_EQ(enqueue(a), error);
    EXPECT_EQ(entry.enqueueAnew(kFd, kRead, a), error);
    EXPECT_FALSE(a.linked);
    EXPECT_FALSE(entry.registered());
    EXPECT_FALSE(entry.wakeAll(kRead));
  }
  engine.answers.clear();
  EXPECT_EQ(enqueue(a), 0);
}

TEST_F(FdEntryTest, TheRegistrationMovesWhenNobodyWaits) {
  ASSERT_EQ(enqueue(a), 0);
  event(EPOLLIN);
  ASSERT_EQ(enqueue(elsewhere), 0);
  EXPECT_EQ(engine.calls, (Calls{{"add", 0, kReadEvents}, {"remove"}}));
  EXPECT_EQ(other.calls, (Calls{{"add", 0, kReadEvents}}));
}

TEST_F(FdEntryTest, TheRegistrationStaysWhereSomebodyWaits) {
  ASSERT_EQ(enqueue(a, kWrite), 0);
  ASSERT_EQ(enqueue(elsewhere), 0);
  EXPECT_TRUE(other.calls.empty());
  EXPECT_EQ(engine.calls, (Calls{{"add", 0, kBothEvents}}));
  event(EPOLLIN | EPOLLOUT);
  EXPECT_EQ(takeWoken(), (Names{"elsewhere", "a"}));
}

TEST_F(FdEntryTest, AddEventMovesTheRegistrationLikeAnyWait) {
  ASSERT_EQ(entry.enqueueAnew(kFd, kRead, a), 0);
  event(EPOLLIN);
  ASSERT_EQ(entry.enqueueAnew(kFd, kRead, elsewhere), 0);
  EXPECT_EQ(engine.calls, (Calls{{"add", 0, kReadEvents}, {"remove"}}));
  EXPECT_EQ(other.calls, (Calls{{"add", 0, kReadEvents}}));
}

TEST_F(FdEntryTest, AddEventHasReadinessReportedAnew) {
  ASSERT_EQ(entry.enqueueAnew(kFd, kRead, a), 0);
  ASSERT_EQ(entry.enqueueAnew(kFd, kRead, b), 0);
  EXPECT_EQ(engine.calls, (Calls{{"add", 0, kReadEvents}, {"modify", 0, kReadEvents}}));
  event(EPOLLIN);
  EXPECT_EQ(takeWoken(), (Names{"a", "b"}));
}

// ---- An engine ends. ---------------------------------------------------------------------------------------------------------

TEST_F(FdEntryTest, AnEngineThatEndsTakesItsRegistrationAway) {
  ASSERT_EQ(enqueue(a), 0);
  event(EPOLLIN);
  entry.detachEngine(kFd, other);
  EXPECT_TRUE(entry.registered()) << "that was not its engine";
  entry.detachEngine(kFd, engine);
  EXPECT_FALSE(entry.registered());
  EXPECT_EQ(engine.calls.back(), (FakeEngine::Call{"remove"}));
}

TEST_F(FdEntryTest, WhoWaitsElsewhereTakesTheRegistrationOver) {
  ASSERT_EQ(enqueue(a, kWrite), 0);
  ASSERT_EQ(enqueue(elsewhere), 0);
  entry.dequeue(kWrite, a);
  entry.detachEngine(kFd, engine);
  EXPECT_EQ(other.calls, (Calls{{"add", 0, kReadEvents}}));
  event(EPOLLIN);
  EXPECT_EQ(takeWoken(), Names{"elsewhere"});
}

TEST_F(FdEntryTest, WhoCannotTakeItOverAsksTheKernelHimself) {
  ASSERT_EQ(enqueue(a, kWrite), 0);
  ASSERT_EQ(enqueue(elsewhere), 0);
  entry.dequeue(kWrite, a);
  other.answers["add"] = -ENOSPC;
  entry.detachEngine(kFd, engine);
  EXPECT_EQ(takeWoken(), Names{"elsewhere"});
}

// A fiber that a stop has left behind comes late: whoever waits elsewhere hears as if it had not come.
TEST_F(FdEntryTest, NobodyWaitsAtAnEngineThatHasEnded) {
  engine.ended = true;
  EXPECT_EQ(enqueue(a), -ECANCELED);
  EXPECT_FALSE(entry.registered());
  ASSERT_EQ(enqueue(elsewhere), 0);
  EXPECT_EQ(enqueue(a), -ECANCELED);
  EXPECT_EQ(other.calls, (Calls{{"add", 0, kReadEvents}}));
  EXPECT_TRUE(engine.calls.empty());
}

// ---- Life. -------------------------------------------------------------------------------------------------------------------

TEST_F(FdEntryTest, APinHoldsForItsGenerationOnly) {
  const uint32_t first = generation();
  EXPECT_FALSE(entry.pin(first + 1));
  EXPECT_TRUE(entry.pin(first));
  EXPECT_TRUE(entry.pin(first));
  entry.unpin();
  entry.unpin();
  entry.open(kFd, FdKind::kTcp, true, false);
  EXPECT_FALSE(entry.pin(first));
  EXPECT_TRUE(entry.pin(first + 1));
  entry.unpin();
  EXPECT_FALSE(FakeEntry::isClosing(entry.life()));
}

TEST_F(FdEntryTest, CloseComesAfterTheWaitersAndTheRegistrationAreGone) {
  ASSERT_EQ(enqueue(a), 0);
  ASSERT_EQ(enqueue(b, kWrite), 0);
  const uint32_t before = generation();
  const int result = close([&] {
    EXPECT_EQ(takeWoken(), (Names{"a", "b"}));
    EXPECT_EQ(engine.calls.back(), (FakeEngine::Call{"remove"}));
    EXPECT_FALSE(entry.registered());
    EXPECT_TRUE(FakeEntry::isClosing(entry.life()));
    EXPECT_FALSE(entry.pin(before));
    EXPECT_EQ(enqueue(c), -EBADF);
    EXPECT_EQ(entry.enqueueAnew(kFd, kRead, c), -EBADF);
    return 42;
  });
  EXPECT_EQ(result, 42);
  EXPECT_EQ(generation(), before + 1);
  EXPECT_FALSE(FakeEntry::isClosing(entry.life()));
  EXPECT_EQ(entry.enqueue(kFd, before, kRead, entry.edges(kRead), false, c), -EBADF);
}

// HA-10: calls may stay with the file, whose number is still open then. They are told of the close after that.
TEST_F(FdEntryTest, AtTheBeginningOfACloseTheEngineMayKeepTheFile) {
  ASSERT_EQ(enqueue(a), 0);
  FakeEngine::on_closing = [&](int fd, uint32_t closing) {
    EXPECT_EQ(fd, kFd);
    EXPECT_EQ(closing, generation());
    EXPECT_TRUE(FakeEntry::isClosing(entry.life()));
    woken.push_back("engine");
  };
  EXPECT_EQ(close(), 0);
  EXPECT_EQ(takeWoken(), (Names{"engine", "a"}));
  ASSERT_EQ(enqueue(b), 0);
  const auto real_close = [] { return 0; };
  EXPECT_EQ(entry.close(kFd, real_close, AtClose::kEnd), 0);
  EXPECT_EQ(takeWoken(), Names{"b"}) << "nobody may stay with it";
  FakeEngine::on_closing = nullptr;
}

TEST_F(FdEntryTest, CloseForgetsWhatWasKnown) {
  entry.open(kFd, FdKind::kTcp, true, true);
  entry.setTimeoutNs(kRead, 5);
  entry.setTimeoutNs(kWrite, 6);
  event(EPOLLHUP);
  entry.setDrained(kRead, entry.edges(kRead));
  close();
  EXPECT_EQ(entry.kind(), FdKind::kUnknown);
  EXPECT_FALSE(entry.isPrivate());
  EXPECT_FALSE(entry.nonblocking());
  EXPECT_EQ(entry.timeoutNs(kRead), 0);
  EXPECT_EQ(entry.timeoutNs(kWrite), 0);
  EXPECT_FALSE(entry.sticky());
  EXPECT_FALSE(entry.knownEmpty(kRead, entry.edges(kRead)));
}

// A second close is of whatever has the number when the first has ended.
TEST_F(FdEntryTest, OnlyOneClosesAtATime) {
  std::atomic<int> closed{0};
  std::thread second;
  close([&] {
    second = std::thread([&] {
      EXPECT_EQ(close([&] {
                  EXPECT_EQ(closed.fetch_add(1), 1);
                  return -7;
                }),
                -7);
    });
    EXPECT_EQ(closed.fetch_add(1), 0);
    return 0;
  });
  second.join();
  EXPECT_EQ(closed, 2);
  EXPECT_FALSE(FakeEntry::isClosing(entry.life()));
}

TEST_F(FdEntryTest, AwaitOpenIsTheLifeOfANumberThatNobodyCloses) {
  EXPECT_EQ(entry.awaitOpen(kFd), entry.life());
  std::thread waiter;
  close([&] {
    waiter = std::thread([&] { EXPECT_EQ(FakeEntry::generationOf(entry.awaitOpen(kFd)), 1u); });
    return 0;
  });
  waiter.join();
}

// The number is free before a close that lingers has ended: nobody waits for that.
TEST_F(FdEntryTest, NobodyWaitsForTheEndOfACloseWhoseNumberIsFree) {
  EXPECT_EQ(close([&] {
              FakeEngine::number_is_open = false;
              std::thread([&] {
                EXPECT_TRUE(FakeEntry::isClosing(entry.awaitOpen(kFd)));
                EXPECT_EQ(close([] { return -7; }), -7);
              }).join();
              return -8;
            }),
            -8);
  FakeEngine::number_is_open = true;
  EXPECT_FALSE(FakeEntry::isClosing(entry.life()));
  EXPECT_EQ(generation(), 1u);
}

// pthreads(7): a thread may be cancelled in its close.
TEST_F(FdEntryTest, ACloseThatDoesNotComeBackIsOverAllTheSame) {
  entry.open(kFd, FdKind::kTcp, true, false);
  ASSERT_EQ(enqueue(a), 0);
  EXPECT_THROW(close([]() -> int { throw 1; }), int);
  EXPECT_EQ(takeWoken(), Names{"a"});
  EXPECT_FALSE(FakeEntry::isClosing(entry.life()));
  EXPECT_EQ(generation(), 2u);
  EXPECT_EQ(entry.kind(), FdKind::kUnknown);
  EXPECT_FALSE(entry.isPrivate());
  EXPECT_EQ(enqueue(b), 0);
}

// A creator may get the number between the real close and our last step; it is its own from then on.
TEST_F(FdEntryTest, ANumberThatIsReusedBeforeTheCloseHasEndedIsTheNewOwners) {
  const uint32_t before = generation();
  close([&] {
    entry.open(kFd, FdKind::kPipe, true, true);
    entry.setTimeoutNs(kRead, 9);
    EXPECT_FALSE(FakeEntry::isClosing(entry.life()));
    EXPECT_EQ(enqueue(a), 0);
    return 0;
  });
  EXPECT_EQ(generation(), before + 1);
  EXPECT_FALSE(FakeEntry::isClosing(entry.life()));
  EXPECT_EQ(entry.kind(), FdKind::kPipe);
  EXPECT_EQ(entry.timeoutNs(kRead), 9);
  event(EPOLLIN);
  EXPECT_EQ(takeWoken(), Names{"a"});
}

TEST_F(FdEntryTest, OpenRemembersAndStartsReady) {
  entry.setDrained(kRead, entry.edges(kRead));
  entry.setTimeoutNs(kRead, 1'000);
  entry.open(kFd, FdKind::kStream, true, true);
  EXPECT_EQ(generation(), 1u);
  EXPECT_EQ(entry.kind(), FdKind::kStream);
  EXPECT_TRUE(entry.isPrivate());
  EXPECT_TRUE(entry.nonblocking());
  EXPECT_EQ(entry.timeoutNs(kRead), 0);
  EXPECT_EQ(entry.timeoutNs(kWrite), 0);
  EXPECT_FALSE(entry.knownEmpty(kRead, entry.edges(kRead)));
  entry.share();
  EXPECT_FALSE(entry.isPrivate());
}

// The descriptor was closed behind our back, by a raw system call; those who wait for it learn it at last.
TEST_F(FdEntryTest, OpenOnANumberWithStaleWaitersEndsTheirWaits) {
  ASSERT_EQ(enqueue(a), 0);
  ASSERT_EQ(enqueue(b, kWrite), 0);
  entry.open(kFd, FdKind::kTcp, true, false);
  EXPECT_EQ(takeWoken(), (Names{"a", "b"}));
  EXPECT_EQ(engine.calls.back(), (FakeEngine::Call{"remove"}));
  ASSERT_EQ(enqueue(c), 0);
  EXPECT_EQ(engine.calls.back(), (FakeEngine::Call{"add", 1, kReadEvents}));
}

// A failing pin may be in flight when a generation begins: it must not spoil it.
TEST_F(FdEntryTest, AGenerationMayBeginWhileAPinIsHeld) {
  ASSERT_TRUE(entry.pin(0));
  std::thread([&] { entry.open(kFd, FdKind::kTcp, true, false); }).join();
  EXPECT_EQ(generation(), 1u);
  entry.unpin();
  EXPECT_EQ(generation(), 1u);
  EXPECT_FALSE(FakeEntry::isClosing(entry.life()));
  EXPECT_EQ(close(), 0);
}

// FM-13: the real close waits for the last pin.
TEST_F(FdEntryTest, CloseWaitsForThePins) {
  ASSERT_TRUE(entry.pin(0));
  ASSERT_TRUE(entry.pin(0));
  std::atomic<bool> closed{false};
  std::thread closer([&] {
    close([&] {
      closed = true;
      return 0;
    });
  });
  EXPECT_TRUE(eventually([&] { return FakeEntry::isClosing(entry.life()); }));
  EXPECT_FALSE(entry.pin(0)) << "no new ones";
  entry.unpin();
  EXPECT_FALSE(closed);
  entry.unpin();
  closer.join();
  EXPECT_TRUE(closed);
}

// ---- Fibers as waiters. ------------------------------------------------------------------------------------------------------

// CD-I1: each learns why its wait ended, once.
TEST_F(FdEntryTest, FibersLearnWhyTheirWaitEnded) {
  const test::LeakCheck leaks;
  Scheduler scheduler(1, false, "waiters");
  scheduler.start();
  const auto waitFor = [&](WakeReason expected) {
    const auto fiber = std::make_shared<Fiber>([&, expected] {
      Wait wait;
      Waiter waiter;
      waiter.waker = wait.waker();
      waiter.engine = &engine;
      ASSERT_EQ(enqueue(waiter), 0);
      EXPECT_EQ(wait.park(), expected);
      EXPECT_FALSE(waiter.linked);
      entry.dequeue(kRead, waiter);
    });
    scheduler.schedule(fiber);
    EXPECT_TRUE(eventually([&] { return stateOf(*fiber) == FiberState::kParked; }));
    return fiber;
  };
  const std::vector<Fiber::ptr> ready = {waitFor(WakeReason::kReady), waitFor(WakeReason::kReady)};
  event(EPOLLIN);
  for (const auto& fiber : ready) fiber->join();
  const std::vector<Fiber::ptr> closed = {waitFor(WakeReason::kClosed), waitFor(WakeReason::kClosed)};
  close([&] {
    for (const auto& fiber : closed) fiber->join();
    return 0;
  });
  const std::vector<Fiber::ptr> stale = {waitFor(WakeReason::kClosed)};
  entry.open(kFd, FdKind::kTcp, true, false);
  for (const auto& fiber : stale) fiber->join();
  scheduler.stop();
}

// A waiter whose wait was decided by somebody else is passed over, and unlinked for it.
TEST_F(FdEntryTest, AWaiterThatWasWokenOtherwiseIsPassedOver) {
  const test::LeakCheck leaks;
  Scheduler scheduler(1, false, "waiters");
  scheduler.start();
  Waker waker;
  const auto fiber = std::make_shared<Fiber>([&] {
    Wait wait;
    Waiter waiter;
    waiter.waker = waker = wait.waker();
    waiter.engine = &engine;
    ASSERT_EQ(enqueue(waiter), 0);
    EXPECT_EQ(wait.park(), WakeReason::kCanceled);
    EXPECT_FALSE(waiter.linked) << "the event came before";
  });
  scheduler.schedule(fiber);
  ASSERT_TRUE(eventually([&] { return stateOf(*fiber) == FiberState::kParked; }));
  ASSERT_TRUE(waker.claim(WakeReason::kCanceled));
  event(EPOLLIN);
  Waker::deliver(*waker.core);
  fiber->join();
  EXPECT_FALSE(entry.wakeAll(kRead));
  scheduler.stop();
}

}  // namespace
}  // namespace sylar
