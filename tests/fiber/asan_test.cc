// AddressSanitizer sees fibers as it should: each kind of fault that is planted in one, behind a switch, is reported.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "sylar/fiber.h"
#include "sylar/iomanager.h"

namespace sylar {
namespace {

// The compiler must not see through it.
template <class T>
[[gnu::noinline]] T* opaque(T* pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

void useAfterFree() {
  auto heap = std::make_unique<int>(1);
  int* const late = opaque(heap.get());
  Fiber::YieldToReady();
  heap.reset();
  *late = 2;
}

void overflowALocal() {
  int local[4] = {};
  Fiber::YieldToReady();
  opaque(local)[4] = 1;
}

// Called through a pointer, as a frame of its own; without asm, which would exempt it.
int* g_late = nullptr;
[[gnu::noinline]] void leaveALocal() {
  int local = 1;
  g_late = &local;
}
void useAfterReturn() {
  leaveALocal();
  Fiber::YieldToReady();
  *opaque(g_late) = 2;
}

[[gnu::noinline]] int recurse(int levels) {
  volatile char frame[256];
  frame[levels & 255] = 1;
  const int below = levels == 0 ? 0 : recurse(levels - 1);
  return below + frame[levels & 255];
}
void hitTheGuard() {
  Fiber::YieldToReady();
  recurse(1 << 20);
}

void leak() {
  auto* const lost = opaque(new int);
  Fiber::YieldToReady();
  *lost = 1;
}

void byHand(void (*fault)()) {
  const auto fiber = std::make_shared<Fiber>(fault);
  while (fiber->getState() != Fiber::TERM) fiber->resume();
}

void inAWorker(void (*fault)()) {
  IOManager iom(2, false, "fault");
  iom.schedule(fault);
  iom.schedule([] { Fiber::YieldToReady(); });
}

struct Fault {
  const char* name;
  void (*plant)();
  const char* report;
  friend std::ostream& operator<<(std::ostream& os, const Fault& fault) { return os << fault.name; }
};

class AsanDeathTest : public testing::TestWithParam<Fault> {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// RT-3.1
TEST_P(AsanDeathTest, ReportsAFaultBehindASwitch) {
  for (const auto& run : {&byHand, &inAWorker}) {
    const auto whole_process = [&] {
      run(GetParam().plant);
      std::exit(0);  // leaks are looked for here
    };
    EXPECT_EXIT(
        whole_process(), [](int status) { return status != 0; }, GetParam().report);
  }
}

// And there is none where there is no fault.
TEST(AsanDeathTest, ReportsNothingElse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const auto& run : {&byHand, &inAWorker}) {
    const auto whole_process = [&] {
      run([] { Fiber::YieldToReady(); });
      std::exit(0);
    };
    EXPECT_EXIT(whole_process(), testing::ExitedWithCode(0), "^$");
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, AsanDeathTest,
                         testing::Values(Fault{"UseAfterFree", &useAfterFree, "heap-use-after-free"},
                                         Fault{"LocalOverflow", &overflowALocal, "stack-buffer-overflow"},
                                         Fault{"UseAfterReturn", &useAfterReturn, "stack-use-after-return"},
                                         Fault{"Guard", &hitTheGuard, "stack-overflow"}, Fault{"Leak", &leak, "4 byte.* leaked"}),
                         [](const auto& fault) { return std::string(fault.param.name); });

}  // namespace
}  // namespace sylar
