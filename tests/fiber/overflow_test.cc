// A fiber that runs off its stack causes a report and then the end. Other faults happen as without fibers.
#include "sylar/fiber/overflow.h"

#include <alloca.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "sylar/fiber.h"
#include "sylar/fiber/stack.h"
#include "sylar/iomanager.h"
#include "tests/fiber/overflow_programs.h"

namespace sylar {
namespace {

using test::OverflowPrograms;

std::vector<OverflowPrograms>& builds() {
  static auto* const all = new std::vector<OverflowPrograms>;
  return *all;
}

void byHand(std::function<void()> body) { std::make_shared<Fiber>(std::move(body), kMinStackSize)->resume(); }

void inAFiberOfAFiber(std::function<void()> body) {
  byHand([&body] { byHand(body); });
}

void inAWorker(std::function<void()> body) {
  IOManager iom(2, false, "overflow");
  iom.schedule(std::make_shared<Fiber>(std::move(body), kMinStackSize));
}

#ifdef SYLAR_ASAN
/// A sanitizer catches the fault, names it and ends the process.
#define EXPECT_OVERFLOW(statement) EXPECT_DEATH(statement, "stack-overflow|SEGV")
#else
#define EXPECT_OVERFLOW(statement)                                                                                            \
  EXPECT_EXIT(statement, testing::KilledBySignal(SIGABRT),                                                                    \
              "stack overflow in fiber [1-9][0-9]*.*: stack of [0-9]+ bytes at \\[0x[0-9a-f]+, 0x[0-9a-f]+\\), fault at 0x.*" \
              "\\[0x[0-9a-f]+\\]\n.*\\[0x[0-9a-f]+\\]\n")
#define EXPECT_FAULT(statement) EXPECT_EXIT(statement, testing::KilledBySignal(SIGSEGV), "^$")
#endif

class EveryBuildDeathTest : public testing::TestWithParam<OverflowPrograms> {};

// RT-4.2, RG-17, CD-F2
TEST_P(EveryBuildDeathTest, OverflowIsReportedWhateverTheCodeAndWherever) {
  const OverflowPrograms& programs = GetParam();
  for (const auto& run : {&byHand, &inAFiberOfAFiber, &inAWorker}) {
    for (const auto& program : {programs.recursion, programs.one_frame, programs.large_frame, programs.allocas}) {
      EXPECT_OVERFLOW(run(program));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Builds, EveryBuildDeathTest, testing::ValuesIn(builds()),
                         [](const auto& programs) { return std::string(programs.param.build); });

#if !defined(SYLAR_ASAN) && !defined(SYLAR_TSAN)  // their runtimes guess what is a stack, and do not survive a fault in a switch

/// Recurses until the stack ends, with a switch to another stack and back at each level. `shift` moves all frames: for some
/// shift, any of the frames that lead to the switch is the one that no longer fits.
[[gnu::noinline]] void switchAndRecurse(void (*switchAway)(), size_t shift) {
  auto* const memory = static_cast<char*>(alloca(shift));
  asm volatile("" : : "r"(memory) : "memory");
  switchAway();
  if (switchAway != nullptr) switchAndRecurse(switchAway, 0);
  asm volatile("" : : "r"(memory) : "memory");  // no tail call
}

// RT-4.2
TEST(StackOverflowDeathTest, ReportNamesTheFiberAndItsStack) {
  const auto named = [](const std::string& name) {
    const auto fiber = std::make_shared<Fiber>([] { builds()[0].recursion(); }, kMinStackSize);
    fiber->setName(name);
    fiber->resume();
  };
  EXPECT_EXIT(named("reader of /etc/hosts"), testing::KilledBySignal(SIGABRT),
              "fiber [1-9][0-9]* \"reader of /etc/hosts\": stack");
  EXPECT_EXIT(named(std::string(1000, 'x')), testing::KilledBySignal(SIGABRT),
              "fiber [1-9][0-9]* \"x{127}\": stack of 16384 bytes");
}

// RT-4.2
TEST(StackOverflowDeathTest, IsReportedInsideASwitchToo) {
  for (size_t shift = 0; shift < 512; shift += 32) {
    const auto yields = [shift] {
      const auto fiber = std::make_shared<Fiber>([shift] { switchAndRecurse(&Fiber::YieldToReady, shift); }, kMinStackSize);
      for (;;) fiber->resume();
    };
    EXPECT_OVERFLOW(yields()) << shift;
    const auto resumes = [shift] {
      static Fiber::ptr other;
      other = std::make_shared<Fiber>([] {
        for (;;) Fiber::YieldToReady();
      });
      byHand([shift] { switchAndRecurse([] { other->resume(); }, shift); });
    };
    EXPECT_OVERFLOW(resumes()) << shift;
    const auto waits = [shift] { inAWorker([shift] { switchAndRecurse(&Fiber::YieldToReady, shift); }); };
    EXPECT_OVERFLOW(waits()) << shift;
  }
}

// ---- What is no overflow. ----------------------------------------------------------------------------------------------------

[[gnu::noinline]] void writeTo(void* address) { *static_cast<volatile char*>(address) = 1; }

/// Memory that cannot be written, far from any stack.
char* readOnlyMemory() {
  int error = 0;
  auto* const memory = static_cast<char*>(sys::mapMemory(4096, &error));
  EXPECT_EQ(sys::protectMemory(memory, 4096, PROT_READ), 0);
  return memory;
}

TEST(FaultDeathTest, OtherFaultsInAFiberEndTheProcessAsEver) {
  char* const memory = readOnlyMemory();
  for (const auto& run : {&byHand, &inAFiberOfAFiber, &inAWorker}) {
    EXPECT_FAULT(run([] { writeTo(nullptr); }));
    EXPECT_FAULT(run([memory] { writeTo(memory); }));
  }
}

TEST(FaultDeathTest, FaultsBesideFibersEndTheProcessAsEver) {
  byHand([] {});
  EXPECT_FAULT(writeTo(nullptr));
  EXPECT_FAULT(std::thread([] { writeTo(nullptr); }).join());
  EXPECT_FAULT(IOManager(1, false, "fault"); writeTo(nullptr));
}

#endif

}  // namespace
}  // namespace sylar

bool sylar::test::add(const OverflowPrograms& programs) {
  sylar::builds().push_back(programs);
  return true;
}
