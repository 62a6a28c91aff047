// Tools see a fiber's stack: backtraces end, frame pointers end, and an exception that nobody catches leaves a trace.
#include <execinfo.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "sylar/fiber.h"
#include "sylar/fiber/context.h"
#include "sylar/fiber/fiber_core.h"
#include "sylar/fiber/stack.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/iomanager.h"
#include "tests/fiber/make.h"

namespace sylar {
namespace {

using test::byHand;

constexpr int kMaxFrames = 100;

void inAWorker(std::function<void()> body) {
  IOManager iom(1, false, "frames");
  iom.schedule(std::move(body));
}

int depthOfBacktrace() {
  void* frames[kMaxFrames];
  return backtrace(frames, kMaxFrames);
}

/// Calls `body` below `levels` frames.
[[gnu::noinline]] void below(int levels, const std::function<void()>& body) {
  levels == 0 ? body() : below(levels - 1, body);
  asm volatile("" : : : "memory");  // no tail call
}

[[gnu::noinline]] void throwFive() { throw 5; }

// RT-3.4
TEST(FiberFrames, BacktraceEndsAtTheEntry) {
  for (const auto& run : {&byHand, &inAWorker}) {
    run([] {
      int shallow = 0, deep = 0;
      below(0, [&] { shallow = depthOfBacktrace(); });
      below(10, [&] { deep = depthOfBacktrace(); });
      EXPECT_GT(shallow, 2);
      EXPECT_LT(shallow, 40);
      EXPECT_EQ(deep, shallow + 10);
    });
  }
}

// RT-3.4: there is nobody above the entry: std::terminate, where it was thrown.
TEST(FiberFramesDeathTest, ExceptionThatNobodyCatchesEndsTheProcessWithAUsableTrace) {
  const auto run = [] {
    std::set_terminate([] {
      const int depth = depthOfBacktrace();
      bool kept = false;
      try {
        std::rethrow_exception(std::current_exception());
      } catch (int value) {
        kept = value == 5;
      }
      _exit(kept && depth > 12 && depth < 60 ? 3 : 1);
    });
    byHand([] { below(10, []() noexcept { throwFive(); }); });
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(3), "");
}

// RT-3.4: the same for a context, whose entry nothing guards.
TEST(FiberFramesDeathTest, ExceptionThatLeavesAnEntryIsNotUnwoundPastIt) {
  const auto run = [] {
    std::set_terminate([] { _exit(depthOfBacktrace() < 40 ? 4 : 1); });
    StackPool stacks;
    Context own, made;
    own.adoptThread();
    made.make<&throwFive>(stacks.take(kDefaultStackSize));
    Context::switchTo(own, made, ThreadLocals::ofThisThread());
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(4), "");
}

/// The frames that a walker by frame pointers sees from here on, or -1 if it leaves the fiber's stack.
[[gnu::noinline]] int framesByPointer() {
  const Stack stack = runningFiber()->stack;
  int count = 0;
  for (auto* frame = static_cast<char**>(__builtin_frame_address(0)); frame != nullptr; ++count) {
    auto* const at = reinterpret_cast<char*>(frame);
    if (at < stack.base || at + 2 * sizeof(char*) > stack.top() || count == kMaxFrames) return -1;
    frame = reinterpret_cast<char**>(*frame);
  }
  return count;
}

// RT-3.6
TEST(FiberFrames, ChainOfFramePointersEndsInZeroAtTheEntry) {
  for (const auto& run : {&byHand, &inAWorker}) {
    run([] {
      int shallow = 0, deep = 0;
      below(0, [&] { shallow = framesByPointer(); });
      below(10, [&] { deep = framesByPointer(); });
      EXPECT_GT(shallow, 2);
      EXPECT_EQ(deep, shallow + 10);
    });
  }
}

}  // namespace
}  // namespace sylar
