// Who holds a lock: what dump() says of it, and what becomes of one whose fiber ends.
#include "sylar/fiber/held_locks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/mutex.h"
#include "sylar/sync/event.h"
#include "tests/support/fibers.h"
#include "tests/sync/waiter.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::waiterOn;

std::vector<uintptr_t> namedOf(const HeldLocks& held) {
  std::vector<uintptr_t> named;
  for (uint32_t i = 0; i < held.named(); ++i) named.push_back(held.at(i));
  return named;
}

TEST(HeldLocks, AreReleasedInAnyOrder) {
  using Named = std::vector<uintptr_t>;
  HeldLocks held;
  for (const uintptr_t lock : {1, 2, 3}) held.add(lock);
  held.remove(2);
  EXPECT_EQ(namedOf(held), (Named{1, 3}));
  held.remove(3);
  EXPECT_EQ(namedOf(held), (Named{1}));
  held.remove(1);
  EXPECT_EQ(held.count(), 0u);
}

TEST(HeldLocks, OfManySomeAreOnlyCounted) {
  using Named = std::vector<uintptr_t>;
  HeldLocks held;
  for (const uintptr_t lock : {1, 2, 3, 4, 5}) held.add(lock);
  EXPECT_EQ(namedOf(held), (Named{1, 2, 3}));
  held.remove(1);
  EXPECT_EQ(namedOf(held), (Named{2, 3, 0}));
  held.remove(5);
  EXPECT_EQ(held.count(), 3u);
  held.remove(4);
  EXPECT_EQ(namedOf(held), (Named{2, 3}));
  held.add(6);
  EXPECT_EQ(namedOf(held), (Named{2, 3, 6}));
}

std::string dumpOf(const Scheduler& scheduler) {
  std::ostringstream out;
  scheduler.dump(out);
  return out.str();
}

class DumpTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, DumpTest, test::kWorkerCounts);

TEST_P(DumpTest, SaysWhoHoldsTheLock) {
  Mutex mutex;
  RWMutex data;
  Semaphore done;
  IOManager iom(workers(), false, "dump");
  const auto named = [&](const char* name, auto body) {
    return waiterOn(iom, [name, body] {
      Fiber::GetThis()->setName(name);
      body();
    });
  };
  const Fiber::ptr holder = named("holder", [&] {
    const Mutex::Lock lock(mutex);
    const RWMutex::WriteLock write(data);
    done.wait();
  });
  const Fiber::ptr locker = named("locker", [&] { const Mutex::Lock lock(mutex); });
  const Fiber::ptr reader = named("reader", [&] { const RWMutex::ReadLock read(data); });
  const std::string dump = dumpOf(iom);
  const auto says = [&](const std::string& line) { EXPECT_NE(dump.find(line), std::string::npos) << line << " in\n" << dump; };
  const std::string held = fmt::format(", which fiber {} holder holds\n", holder->getId());
  says(fmt::format("locker: locks Mutex {}{}", fmt::ptr(&mutex), held));
  says(fmt::format("reader: locks RWMutex {}{}", fmt::ptr(&data), held));
  says(fmt::format("holder: waits for Semaphore "));
  EXPECT_EQ(dump.find("deadlock"), std::string::npos) << dump;
  done.notify();
  for (const Fiber::ptr& fiber : {holder, locker, reader}) fiber->join();
}

TEST_P(DumpTest, NamesACircle) {
  Mutex first, second;
  Semaphore both;
  IOManager iom(workers(), false, "circle");
  Fiber::ptr a, b;
  a = waiterOn(iom, [&] {
    const Mutex::Lock lock(first);
    both.wait();
    EXPECT_FALSE(second.lock(Deadline::never())) << "ends by the cancel";
  });
  b = waiterOn(iom, [&] {
    const Mutex::Lock lock(second);
    const Mutex::Lock never(first);
  });
  const Fiber::ptr outside = waiterOn(iom, [&] { a->join(); });
  a->setName("a");
  b->setName("b");
  both.notify();
  const std::string wanted = fmt::format("deadlock: fiber {} b locks Mutex {}, fiber {} a locks Mutex {}, and so on\n",
                                         b->getId(), fmt::ptr(&first), a->getId(), fmt::ptr(&second));
  const std::string turned = fmt::format("deadlock: fiber {} a locks Mutex {}, fiber {} b locks Mutex {}, and so on\n",
                                         a->getId(), fmt::ptr(&second), b->getId(), fmt::ptr(&first));
  const auto isTold = [&] {
    const std::string dump = dumpOf(iom);
    return dump.find(wanted) != std::string::npos || dump.find(turned) != std::string::npos;
  };
  EXPECT_TRUE(test::eventually(isTold)) << dumpOf(iom);
  a->cancel();
  for (const Fiber::ptr& fiber : {a, b, outside}) fiber->join();
  EXPECT_EQ(dumpOf(iom).find("deadlock"), std::string::npos);
}

TEST_P(DumpTest, NamesOneOfTheReaders) {
  RWMutex data;
  Semaphore done;
  IOManager iom(workers(), false, "readers");
  std::vector<Fiber::ptr> fibers;
  for (int i = 0; i < 3; ++i) {
    fibers.push_back(waiterOn(iom, [&] {
      const RWMutex::ReadLock read(data);
      done.wait();
    }));
  }
  fibers.push_back(waiterOn(iom, [&] { const RWMutex::WriteLock write(data); }));
  const std::string dump = dumpOf(iom);
  const auto names = [&](const Fiber::ptr& reader) {
    return dump.find(fmt::format(": locks RWMutex {}, which fiber {} and 2 more hold\n", fmt::ptr(&data), reader->getId())) !=
           std::string::npos;
  };
  EXPECT_TRUE(names(fibers[0]) || names(fibers[1]) || names(fibers[2])) << dump;
  done.notify(3);
  for (const Fiber::ptr& fiber : fibers) fiber->join();
}

// One of the circle gives up, so it is none.
TEST_P(DumpTest, AWaitWithADeadlineEndsTheCircle) {
  Mutex first, second;
  Semaphore both;
  IOManager iom(workers(), false, "bounded");
  const Fiber::ptr a = waiterOn(iom, [&] {
    const Mutex::Lock lock(first);
    both.wait();
    EXPECT_FALSE(second.lock(Deadline::after(1h))) << "ends by the cancel";
  });
  const Fiber::ptr b = waiterOn(iom, [&] {
    const Mutex::Lock lock(second);
    const Mutex::Lock never(first);
  });
  both.notify();
  const std::string held = fmt::format("locks Mutex {}, which fiber {} holds\n", fmt::ptr(&second), b->getId());
  EXPECT_TRUE(test::eventually([&] { return dumpOf(iom).find(held) != std::string::npos; })) << dumpOf(iom);
  EXPECT_EQ(dumpOf(iom).find("deadlock"), std::string::npos) << dumpOf(iom);
  a->cancel();
  for (const Fiber::ptr& fiber : {a, b}) fiber->join();
}

TEST_P(DumpTest, JoinsMakeACircle) {
  Fiber::ptr a, b;
  IOManager iom(workers(), false, "joins");
  Semaphore made;
  a = waiterOn(iom, [&] {
    made.wait();
    b->join();
  });
  b = waiterOn(iom, [&] { a->join(); });
  made.notify();
  const std::string joins_a = fmt::format("fiber {} joins fiber {}, ", b->getId(), a->getId());
  const std::string joins_b = fmt::format("fiber {} joins fiber {}, ", a->getId(), b->getId());
  const auto isTold = [&] {
    const std::string dump = dumpOf(iom);
    return dump.find("deadlock: " + joins_a + joins_b + "and so on\n") != std::string::npos ||
           dump.find("deadlock: " + joins_b + joins_a + "and so on\n") != std::string::npos;
  };
  EXPECT_TRUE(test::eventually(isTold)) << dumpOf(iom);
  iom.stop();
}

TEST_P(DumpTest, AFiberThatJoinsItsResumerMakesACircle) {
  Fiber::ptr outer, inner;
  IOManager iom(workers(), false, "resumer");
  outer = std::make_shared<Fiber>([&] { inner->resume(); });
  inner = std::make_shared<Fiber>([&] { outer->join(); });
  iom.schedule(outer);
  const std::string resumes = fmt::format("fiber {} waiting for a fiber that it resumed, ", outer->getId());
  const std::string joins = fmt::format("fiber {} joins fiber {}, ", inner->getId(), outer->getId());
  const auto isTold = [&] {
    const std::string dump = dumpOf(iom);
    return dump.find("deadlock: " + resumes + joins + "and so on\n") != std::string::npos ||
           dump.find("deadlock: " + joins + resumes + "and so on\n") != std::string::npos;
  };
  EXPECT_TRUE(test::eventually(isTold)) << dumpOf(iom);
  iom.stop();
}

TEST(HeldLockDeathTest, AFiberThatEndsWithALockIsNamedWithIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  static Mutex mutex;
  static RWMutex data;
  const auto endWith = [](auto lock) {
    const auto fiber = std::make_shared<Fiber>(lock);
    fiber->setName("careless");
    fiber->resume();
  };
  const char* const says = "careless ends, and holds the sylar lock at 0x[0-9a-f]+";  // elsewhere in the other process
  EXPECT_DEATH(endWith([] { mutex.lock(); }), says);
  EXPECT_DEATH(endWith([] { data.wrlock(); }), says);
  EXPECT_DEATH(endWith([] { data.rdlock(); }), says);
  EXPECT_DEATH(endWith([] { EXPECT_TRUE(data.try_lock_shared()); }), says);
  EXPECT_DEATH(endWith([] { EXPECT_TRUE(mutex.try_lock()); }), says);
}

TEST(HeldLockDeathTest, OneThatIsDroppedWithALockAsWell) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  static Mutex mutex;
  const auto drop = [] {
    const auto fiber = std::make_shared<Fiber>([] {
      const Mutex::Lock lock(mutex);
      Fiber::YieldToHold();
    });
    fiber->resume();
  };
  EXPECT_DEATH(drop(), "ends, and holds the sylar lock at");
}

/// Waits on when it was cancelled, until it is given up.
void waitRegardless() {
  Fiber::GetThis()->cancel();
  for (Event never;;) never.wait();
}

TEST(HeldLockDeathTest, OneThatIsAbandonedWithALockAsWell) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto abandon = [] {
    IOManager iom(1, false, "abandon");
    const auto fiber = std::make_shared<Fiber>([] {
      static Mutex mutex;
      Fiber::GetThis()->setName("careless");
      const Mutex::Lock lock(mutex);
      waitRegardless();
    });
    iom.schedule(fiber);
    fiber->join();
  };
  EXPECT_DEATH(abandon(), "careless is abandoned, and holds the sylar lock at");
}

// A stop ends fibers as they are, so that is no mistake of the program.
TEST(HeldLocks, OfAFiberThatAStopAbandonsAreReported) {
  Mutex mutex;
  Semaphore begun;
  IOManager iom(1, false, "stop");
  iom.schedule([&] {
    const Mutex::Lock lock(mutex);
    begun.notify();
    Fiber::YieldToHold();
    waitRegardless();
  });
  EXPECT_TRUE(begun.wait());
  const StopResult result = iom.stop(Deadline::after(0ns));
  ASSERT_EQ(result.abandoned.size(), 1u);
  const std::string held = fmt::format(", and holds the sylar lock at {}", fmt::ptr(&mutex));
  EXPECT_NE(result.abandoned[0].waits_for.find(held), std::string::npos) << result.abandoned[0].waits_for;
}

}  // namespace
}  // namespace sylar
