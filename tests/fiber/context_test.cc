#include "sylar/fiber/context.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cfenv>
#include <csignal>
#include <exception>
#include <stdexcept>

#include "sylar/base/sys.h"
#include "sylar/fiber/stack.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace sylar {
namespace {

StackPool g_stacks;
Context g_main;
Context g_made;
void (*g_body)() = nullptr;

void suspend() { Context::switchTo(g_made, g_main, ThreadLocals::ofThisThread()); }
void enter() { Context::switchTo(g_main, g_made, ThreadLocals::ofThisThread()); }

void entry() {
  g_body();
  Context::exitTo(g_made, g_main, ThreadLocals::ofThisThread());
}

/// One made context beside the thread's own.
class ContextTest : public testing::Test {
 protected:
  ContextTest() : m_stack(g_stacks.take(kDefaultStackSize)) { g_main.adoptThread(); }
  ~ContextTest() override {
    g_made.release();
    g_stacks.put(m_stack);
  }

  void start(void (*body)()) {
    g_body = body;
    g_made.make<&entry>(m_stack);
    enter();
  }

  const Stack m_stack;
};

// RD-1
TEST_F(ContextTest, RunsOnItsOwnStackAndComesBack) {
  static const char* where;
  start([] {
    const char local = 0;
    where = &local;
    asm volatile("" : : "r"(where) : "memory");
    suspend();
    where = nullptr;
  });
  EXPECT_GE(where, m_stack.base);
  EXPECT_LT(where, m_stack.top());
  enter();
  EXPECT_EQ(where, nullptr);
}

TEST_F(ContextTest, FramesAreAlignedAsTheAbiDemands) {
  static uintptr_t frame;
  start([] { frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)); });
  EXPECT_EQ(frame % 16, 0u);
}

TEST_F(ContextTest, ErrnoBelongsToTheComputation) {
  sys::errnoRef() = EDOM;
  static int at_start, after_switch;
  start([] {
    at_start = sys::errnoRef();
    sys::errnoRef() = ERANGE;
    suspend();
    after_switch = sys::errnoRef();
  });
  EXPECT_EQ(sys::errnoRef(), EDOM);
  sys::errnoRef() = EBUSY;
  enter();
  EXPECT_EQ(sys::errnoRef(), EBUSY);
  EXPECT_EQ(at_start, 0);
  EXPECT_EQ(after_switch, ERANGE);
}

// RT-3.3
TEST_F(ContextTest, HandledExceptionBelongsToTheComputation) {
  static bool none_at_start, own_after_switch;
  const auto body = [] {
    none_at_start = std::current_exception() == nullptr;
    try {
      throw 2;
    } catch (int) {
      suspend();
      try {
        throw;
      } catch (int again) {
        own_after_switch = again == 2;
      }
    }
  };
  try {
    throw 1;
  } catch (int) {
    start(body);
    try {
      throw;
    } catch (int again) {
      EXPECT_EQ(again, 1);
    }
    enter();
    try {
      throw;
    } catch (int again) {
      EXPECT_EQ(again, 1);
    }
  }
  EXPECT_TRUE(none_at_start);
  EXPECT_TRUE(own_after_switch);
  EXPECT_EQ(std::current_exception(), nullptr);
}

// RT-3.7
TEST_F(ContextTest, RoundingModeBelongsToTheComputation) {
  static int at_start, after_switch;
  ASSERT_EQ(fegetround(), FE_TONEAREST);
  start([] {
    at_start = fegetround();
    fesetround(FE_UPWARD);
    suspend();
    after_switch = fegetround();
  });
  EXPECT_EQ(fegetround(), FE_TONEAREST);
  fesetround(FE_DOWNWARD);
  enter();
  EXPECT_EQ(fegetround(), FE_DOWNWARD);
  fesetround(FE_TONEAREST);
  EXPECT_EQ(at_start, FE_TONEAREST);
  EXPECT_EQ(after_switch, FE_UPWARD);
}

#if defined(__x86_64__)
uint16_t x87Control() {
  uint16_t word;
  asm volatile("fnstcw %0" : "=m"(word));
  return word;
}
void setX87Control(uint16_t word) { asm volatile("fldcw %0" : : "m"(word)); }

// RT-3.7
TEST_F(ContextTest, X87AndSseControlWordsBelongToTheComputation) {
  static const uint16_t x87 = x87Control();
  static const uint32_t sse = _mm_getcsr();
  static constexpr uint16_t kX87Single = 0x0300;  // the precision field; all set is the default, none is single
  static constexpr uint32_t kFlushToZero = 0x8000;
  static bool kept_x87, kept_sse;
  start([] {
    setX87Control(x87 & ~kX87Single);
    _mm_setcsr(sse | kFlushToZero);
    suspend();
    kept_x87 = x87Control() == (x87 & ~kX87Single);
    kept_sse = (_mm_getcsr() & kFlushToZero) != 0;
  });
  EXPECT_EQ(x87Control(), x87);
  EXPECT_EQ(_mm_getcsr() & kFlushToZero, 0u);
  enter();
  EXPECT_EQ(x87Control(), x87);
  EXPECT_EQ(_mm_getcsr() & kFlushToZero, 0u);
  EXPECT_TRUE(kept_x87);
  EXPECT_TRUE(kept_sse);
}

// RT-3.7: what was rounded on either side changes nothing in that.
TEST_F(ContextTest, ControlWordsAreKeptWhateverExceptionsWereRaised) {
  static constexpr uint32_t kFlags = 0x3f;
  static constexpr uint32_t kFlushToZero = 0x8000;
  static const uint32_t control = _mm_getcsr() & ~kFlags;
  static uint32_t at_start, after_switch, after_another;
  _mm_setcsr(control | kFlags);
  start([] {
    at_start = _mm_getcsr() & ~kFlags;
    _mm_setcsr(control | kFlushToZero);
    suspend();
    after_switch = _mm_getcsr() & ~kFlags;
    _mm_setcsr(control | 1);  // differs in flags alone
    suspend();
    after_another = _mm_getcsr() & ~kFlags;
  });
  EXPECT_EQ(_mm_getcsr() & ~kFlags, control);
  enter();
  EXPECT_EQ(_mm_getcsr() & ~kFlags, control);
  _mm_setcsr(control | kFlushToZero | 2);
  enter();
  EXPECT_EQ(_mm_getcsr() & ~kFlags, control | kFlushToZero);
  _mm_setcsr(control);
  EXPECT_EQ(at_start, control);
  EXPECT_EQ(after_switch, control | kFlushToZero);
  EXPECT_EQ(after_another, control);
}
#endif

TEST_F(ContextTest, CalleeSavedValuesSurvive) {
  static long sum;
  start([] {
    long a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    for (int i = 0; i < 10; ++i) {
      suspend();
      a += b += c += d += e += f;
    }
    sum = a + b + c + d + e + f;
  });
  long a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
  for (int i = 0; i < 10; ++i) {
    enter();
    a += b += c += d += e += f;
  }
  EXPECT_EQ(sum, a + b + c + d + e + f);
}

TEST_F(ContextTest, FloatingPointValuesSurvive) {
  static double sum;
  static long double long_sum;
  start([] {
    double a = 1, b = 2, c = 3;
    long double d = 4, e = 5;
    asm volatile("" : "+m"(a), "+m"(b), "+m"(c), "+m"(d), "+m"(e));
    for (int i = 0; i < 10; ++i) {
      suspend();
      a += b += c;
      d += e;
    }
    sum = a + b + c;
    long_sum = d + e;
  });
  double a = 1, b = 2, c = 3;
  long double d = 4, e = 5;
  asm volatile("" : "+m"(a), "+m"(b), "+m"(c), "+m"(d), "+m"(e));
  for (int i = 0; i < 10; ++i) {
    enter();
    a += b += c;
    d += e;
  }
  EXPECT_EQ(sum, a + b + c);
  EXPECT_EQ(long_sum, d + e);
}

TEST_F(ContextTest, StackMayBeUsedAgainByAnotherComputation) {
  static int runs;
  runs = 0;
  for (int i = 0; i < 100; ++i) {
    start([] {
      suspend();
      ++runs;
    });
    enter();
    if (i < 99) g_made.release();
  }
  EXPECT_EQ(runs, 100);
}

/// A frame larger than any guard, of which only the lowest byte is used.
[[gnu::noinline]] void useHugeFrame() {
  char frame[256 * 1024];
  frame[0] = 1;
  asm volatile("" : : "r"(frame) : "memory");
}

// RT-4.2: below this guard memory is mapped and writable, so only a frame that touches each page on its way down can fault.
TEST_F(ContextTest, FrameLargerThanTheGuardCannotJumpOverIt) {
  constexpr size_t kBelow = 1024 * 1024;
  constexpr size_t kSize = 64 * 1024;
  int error = 0;
  auto* const memory = static_cast<char*>(sys::mapMemory(kBelow + kGuardSize + kSize, &error));
  ASSERT_NE(memory, nullptr);
  ASSERT_EQ(sys::protectMemory(memory + kBelow, kGuardSize, PROT_NONE), 0);
  const auto run = [&] {
    g_body = &useHugeFrame;
    g_made.make<&entry>(Stack{memory + kBelow + kGuardSize, kSize});
    enter();
  };
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
  EXPECT_DEATH(run(), "stack-overflow|SEGV");
#else
  EXPECT_EXIT(run(), testing::KilledBySignal(SIGSEGV), "");
#endif
  start([] {});  // for the fixture's end
  sys::unmapMemory(memory, kBelow + kGuardSize + kSize);
}

TEST_F(ContextTest, EnteringWhatWasLeftForEverEndsTheProcess) {
  start([] {});
  EXPECT_DEATH(enter(), "left for ever is entered");
}

}  // namespace
}  // namespace sylar
