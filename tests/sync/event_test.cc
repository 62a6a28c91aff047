#include "sylar/sync/event.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/sync/latch.h"
#include "tests/support/fibers.h"
#include "tests/sync/waiter.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::waiterOn;

class EventTest : public test::OverWorkers {};
class LatchTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, EventTest, test::kWorkerCounts);
INSTANTIATE_TEST_SUITE_P(Workers, LatchTest, test::kWorkerCounts);

TEST_P(EventTest, AllWhoWaitGoOnAndNobodyWaitsWhileItIsSet) {
  Event event;
  std::atomic<int> went_on{0};
  IOManager iom(workers(), false, "event");
  std::vector<Fiber::ptr> fibers;
  for (int i = 0; i < 10; ++i) fibers.push_back(waiterOn(iom, [&] { went_on += event.wait() ? 1 : 0; }));
  EXPECT_FALSE(event.isSet());
  EXPECT_EQ(went_on, 0);
  event.set();
  for (const Fiber::ptr& fiber : fibers) fiber->join();
  EXPECT_EQ(went_on, 10);
  EXPECT_TRUE(event.isSet());
  EXPECT_TRUE(event.wait(Deadline::after(0ns)));
  event.reset();
  EXPECT_FALSE(event.wait(Deadline::after(0ns)));
}

TEST_P(EventTest, AWaitEndsAtItsDeadlineOrWhenCancelled) {
  Event event;
  IOManager iom(workers(), false, "event");
  const Fiber::ptr fiber = waiterOn(iom, [&] { EXPECT_FALSE(event.wait()); });
  fiber->cancel();
  fiber->join();
  const auto late = std::make_shared<Fiber>([&] { EXPECT_FALSE(event.wait(Deadline::after(1ms))); });
  iom.schedule(late);
  late->join();
}

TEST_P(EventTest, AThreadWaitsForAFiberAndBack) {
  Event there, back;
  IOManager iom(workers(), false, "event");
  iom.schedule([&] {
    EXPECT_TRUE(there.wait());
    back.set();
  });
  there.set();
  EXPECT_TRUE(back.wait());
}

TEST_P(LatchTest, AllGoOnWithTheLast) {
  constexpr int kAll = 20;
  Latch latch(kAll + 1);
  std::atomic<int> arrived{0};
  IOManager iom(workers(), false, "latch");
  for (int i = 0; i < kAll; ++i) {
    iom.schedule([&] {
      ++arrived;
      EXPECT_TRUE(latch.arrive_and_wait());
      EXPECT_EQ(arrived, kAll);
    });
  }
  EXPECT_FALSE(latch.try_wait());
  EXPECT_FALSE(latch.wait(Deadline::after(0ns)));
  latch.count_down();
  EXPECT_TRUE(latch.wait());
  EXPECT_TRUE(latch.try_wait());
}

/// A page that nobody may touch any more once its latch has gone.
class LatchOnAPage {
 public:
  explicit LatchOnAPage(size_t count)
      : m_page(::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
        m_latch(new (m_page) Latch(count)) {}
  ~LatchOnAPage() { ::munmap(m_page, kSize); }
  LatchOnAPage(const LatchOnAPage&) = delete;
  LatchOnAPage& operator=(const LatchOnAPage&) = delete;

  Latch* operator->() { return m_latch; }
  void destroy() {
    m_latch->~Latch();
    EXPECT_EQ(::mprotect(m_page, kSize, PROT_NONE), 0);
  }

 private:
  static constexpr size_t kSize = 4096;
  void* const m_page;
  Latch* const m_latch;
};

// Cause: one whose wait a deadline or a cancel had ended looked at the latch once more, to take itself out, when the last one had
// let it go.
TEST(Latch, MayGoWithTheLastWhileAnotherIsAboutToLeave) {
  for (int i = 0; i < 100; ++i) {
    LatchOnAPage latch(2);
    IOManager iom(1, false, "leave");
    const Deadline deadline = Deadline::after(1ms);
    const Fiber::ptr leaving = std::make_shared<Fiber>([&] { (void)latch->arrive_and_wait(1, deadline); });
    iom.schedule(leaving);
    iom.schedule([&, deadline] {
      // In some of the rounds, the deadline has ended the wait, and that fiber stands behind this one.
      while (steadyClock().nowNs() < deadline.ns()) Fiber::YieldToReady();
      EXPECT_TRUE(latch->arrive_and_wait());
      latch.destroy();
    });
    leaving->join();
  }
}

TEST(LatchDeathTest, BelowZeroIsAProgrammersError) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Latch latch(2);
  EXPECT_DEATH(latch.count_down(3), "m_count >= count");
}

}  // namespace
}  // namespace sylar
