// A fiber gives back all that it owns.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/fiber.h"
#include "sylar/fiber/stack.h"
#include "tests/fiber/make.h"

namespace sylar {
namespace {

using test::make;

#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
constexpr size_t kMany = 2'000;  // ThreadSanitizer has room for 8 000
#else
constexpr size_t kMany = 20'000;
#endif

/// As many fibers at its end as at its beginning; what the library logs in between.
class FiberLifetime : public testing::Test {
 protected:
  FiberLifetime() : m_before((Fiber::GetThis(), Fiber::TotalFibers())) { testing::internal::CaptureStderr(); }
  ~FiberLifetime() override {
    if (!m_taken) {
      EXPECT_EQ(log(), "");
    }
    EXPECT_EQ(Fiber::TotalFibers(), m_before);
  }
  std::string log() {
    m_taken = true;
    return testing::internal::GetCapturedStderr();
  }
  uint64_t fibers() const { return Fiber::TotalFibers() - m_before; }

 private:
  const uint64_t m_before;
  bool m_taken = false;
};

TEST_F(FiberLifetime, TotalCountsFibersInEveryState) {
  EXPECT_EQ(fibers(), 0u);
  auto unstarted = make([] {});
  auto held = make([] { Fiber::YieldToHold(); });
  held->resume();
  auto ended = make([] {});
  ended->resume();
  EXPECT_EQ(fibers(), 3u);
  unstarted.reset();
  ended.reset();
  EXPECT_EQ(fibers(), 1u);
  held->resume();
}

TEST_F(FiberLifetime, HandleOfTheOwnStackGoesWithItsThread) {
  std::thread([] { Fiber::GetThis(); }).join();
  EXPECT_EQ(fibers(), 0u);
}

// CD-F9
TEST_F(FiberLifetime, CapturesAreDestroyedWhenTheFunctionReturns) {
  auto capture = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = capture;
  const auto fiber = make([capture = std::move(capture)] { Fiber::YieldToHold(); });
  fiber->resume();
  EXPECT_FALSE(watch.expired());
  fiber->resume();
  EXPECT_TRUE(watch.expired());
}

// CD-F9: sylar kept them until reset().
TEST_F(FiberLifetime, CapturesAreDestroyedWhenAnExceptionLeavesTheFunction) {
  auto capture = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = capture;
  const auto fiber = make([capture = std::move(capture)] { throw *capture; });
  fiber->resume();
  EXPECT_TRUE(watch.expired());
  EXPECT_THROW(fiber->join(), int);
}

/// Where it was destroyed.
struct NotesItsEnd {
  explicit NotesItsEnd(uint64_t* out) : where(out) {}
  NotesItsEnd(NotesItsEnd&& other) noexcept : where(std::exchange(other.where, nullptr)) {}
  ~NotesItsEnd() {
    if (where != nullptr) *where = Fiber::GetFiberId();
  }
  uint64_t* where;
};

// A capture's destructor may block: in the fiber that costs nobody anything.
TEST_F(FiberLifetime, CapturesAreDestroyedInTheFiber) {
  for (const bool fails : {false, true}) {
    uint64_t where = 0;
    const auto fiber = make([fails, note = std::make_shared<NotesItsEnd>(&where)] {
      if (fails) throw 1;
    });
    fiber->resume();
    EXPECT_EQ(where, fiber->getId()) << fails;
    if (fails) {
      EXPECT_THROW(fiber->join(), int);
    }
  }
}

TEST_F(FiberLifetime, CapturesOfOneThatNeverRanAreDestroyedWithIt) {
  auto capture = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = capture;
  make([capture = std::move(capture)] {});
  EXPECT_TRUE(watch.expired());
}

TEST_F(FiberLifetime, CapturesGoWhenResetReplacesTheFunction) {
  auto capture = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = capture;
  const auto fiber = make([capture = std::move(capture)] {});
  fiber->reset([] {});
  EXPECT_TRUE(watch.expired());
}

// CD-F9
TEST_F(FiberLifetime, ExceptionThatNobodyTookIsReportedOnce) {
  make([] { throw std::runtime_error("lost cause"); })->resume();
  make([] { throw 7; })->resume();
  const std::string text = log();
  const size_t first = text.find("ended by an exception: lost cause\n");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("lost cause", first + 40), std::string::npos) << text;
  EXPECT_NE(text.find("ended by an exception that is no std::exception\n"), std::string::npos) << text;
}

// CD-F6
TEST_F(FiberLifetime, SuspendedOneThatIsDroppedIsReportedAndItsStackReclaimed) {
  const char* first_stack = nullptr;
  const char* second_stack = nullptr;
  bool destroyed = false;
  struct OnTheStack {
    ~OnTheStack() { *flag = true; }
    bool* flag;
  };
  {
    const auto fiber = make([&] {
      const OnTheStack guard{&destroyed};
      first_stack = static_cast<const char*>(__builtin_frame_address(0));  // a local's place may be ASan's own
      Fiber::YieldToHold();
    });
    fiber->resume();
    EXPECT_EQ(fibers(), 1u);
  }
  EXPECT_EQ(fibers(), 0u);
  EXPECT_FALSE(destroyed);  // never by force: that would terminate in a noexcept frame
  const std::string text = log();
  EXPECT_NE(text.find("is dropped while suspended: its stack is reclaimed"), std::string::npos) << text;

  const auto next = make([&] { second_stack = static_cast<const char*>(__builtin_frame_address(0)); });
  next->resume();
  EXPECT_LT(std::abs(first_stack - second_stack), 4096);
}

// CD-F6: what the function captured goes even so.
TEST_F(FiberLifetime, CapturesOfADroppedOneAreDestroyed) {
  auto capture = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = capture;
  auto fiber = make([capture = std::move(capture)] { Fiber::YieldToHold(); });
  fiber->resume();
  fiber.reset();
  EXPECT_TRUE(watch.expired());
  EXPECT_NE(log(), "");
}

TEST_F(FiberLifetime, DroppedOnAnotherThreadIsReclaimedThere) {
  auto fiber = make([] { Fiber::YieldToHold(); });
  fiber->resume();
  std::thread([fiber = std::move(fiber)] {}).join();
  EXPECT_EQ(fibers(), 0u);
  EXPECT_NE(log().find("dropped while suspended"), std::string::npos);
}

// A stack belongs to a started fiber only; unstarted ones cost their object and no more.
TEST_F(FiberLifetime, UnstartedOnesHaveNoStack) {
  std::vector<Fiber::ptr> unstarted;
  for (size_t i = 0; i < kMany; ++i) unstarted.push_back(make([] {}, kMaxStackSize));
  EXPECT_EQ(fibers(), kMany);
}

TEST_F(FiberLifetime, ManyAreSuspendedAtOnceAndAllEnd) {
  std::vector<Fiber::ptr> all;
  size_t begun = 0;
  size_t ended = 0;
  for (size_t i = 0; i < kMany; ++i) {
    all.push_back(make(
        [&] {
          ++begun;
          Fiber::YieldToHold();
          ++ended;
        },
        kMinStackSize));
    all.back()->resume();
  }
  EXPECT_EQ(begun, kMany);
  EXPECT_EQ(fibers(), kMany);
  for (const auto& fiber : all) fiber->resume();
  EXPECT_EQ(ended, kMany);
}

TEST_F(FiberLifetime, EndedOnesGiveTheirStackToTheNext) {
  std::vector<Fiber::ptr> all;
  const char* where = nullptr;
  for (size_t i = 0; i < 1000; ++i) {
    all.push_back(make([&] {
      const char local = 0;
      if (where == nullptr) where = &local;
      EXPECT_LT(std::abs(where - &local), 4096);
    }));
    all.back()->resume();
  }
}

// CD-F9, FM-48: pthread_exit and pthread_cancel unwind by force. The fiber does not swallow that; the thread that ends so, in the
// midst of a fiber, is a programmer error.
TEST(FiberLifetimeDeathTest, ForcedUnwindingIsPassedOn) {
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
  GTEST_SKIP() << "the sanitizers do not follow the jump from one stack to another that glibc makes";
#endif
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto exit_in_a_fiber = [] {
    std::thread([] {
      make([] {
        try {
          pthread_exit(nullptr);
        } catch (const std::exception&) {  // not one of these
        }
      })->resume();
      std::_Exit(0);  // it was swallowed
    }).join();
  };
  EXPECT_DEATH(exit_in_a_fiber(), "t_running == nullptr");
}

/// Runs a fiber at the end of its thread.
struct RunsAtTheEnd {
  ~RunsAtTheEnd() {
    if (where != nullptr) make([this] { *where = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)); })->resume();
  }
  uintptr_t* where = nullptr;
};

// A destructor of a thread_local that was made before the thread ran fibers runs after they have been put away.
TEST(FiberThreads, FibersOfLateDestructorsLeaveNothing) {
  const auto keeps_the_stack = [] {
    uintptr_t on_stack = 0;
    std::thread([&on_stack] {
      thread_local RunsAtTheEnd last;
      last.where = &on_stack;
      make([] {})->resume();
    }).join();
    EXPECT_NE(on_stack, 0u) << "the fiber ran";
    unsigned char resident;
    return mincore(reinterpret_cast<void*>(on_stack & ~uintptr_t{4095}), 4096, &resident) == 0;
  };
  int kept = 0;  // or something else came to lie there, as a sanitizer's runtime
  while (kept < 20 && keeps_the_stack()) ++kept;
  EXPECT_LT(kept, 20) << "its stack is still mapped";
}

}  // namespace
}  // namespace sylar
