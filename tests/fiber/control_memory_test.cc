#include "sylar/fiber/control_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "sylar/base/sanitizers.h"
#include "sylar/fiber.h"
#include "sylar/fiber/fiber_control.h"

namespace sylar {
namespace {

constexpr size_t kSize = 200;

// P-8: with the handle, and what malloc adds to each, 256 bytes.
TEST(ControlMemory, AFiberHasItsPartsInSmallPieces) {
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
  GTEST_SKIP() << "a sanitizer has its own malloc";
#endif
  constexpr size_t kSharedCounts = 16;
  EXPECT_LE(kSharedCounts + sizeof(Fiber), 40u);
  EXPECT_LE(sizeof(FiberControl), 200u);
}

TEST(ControlMemory, LastInIsFirstOut) {
  if (ControlMemory::kKept == 0) GTEST_SKIP() << "a sanitizer sees each piece end";
  ControlMemory memory;
  void* const first = memory.take(kSize);
  void* const second = memory.take(kSize);
  memory.put(first);
  memory.put(second);
  EXPECT_EQ(memory.take(kSize), second);
  EXPECT_EQ(memory.take(kSize), first);
  memory.put(first);
  memory.put(second);
}

TEST(ControlMemory, KeepsABoundedNumber) {
  ControlMemory memory;
  std::vector<void*> pieces;
  for (size_t i = 0; i < ControlMemory::kKept + 3; ++i) pieces.push_back(memory.take(kSize));
  for (void* const piece : pieces) memory.put(piece);
  for (size_t i = ControlMemory::kKept; i > 0; --i) {  // those beyond went back at once
    ASSERT_EQ(memory.take(kSize), pieces[i - 1]);
  }
  for (size_t i = 0; i < ControlMemory::kKept; ++i) memory.put(pieces[i]);
}

// More fibers than a thread keeps the memory of end on a thread that made none of them, and one ends on a thread that keeps
// nothing.
TEST(ControlMemory, FibersEndOnOtherThreadsThanTheyWereMadeOn) {
  const uint64_t before = Fiber::TotalFibers();
  std::vector<Fiber::ptr> fibers;
  std::thread([&fibers] {
    Fiber::GetThis();
    for (size_t i = 0; i < ControlMemory::kKept + 100; ++i) fibers.push_back(std::make_shared<Fiber>([] {}));
  }).join();
  std::thread([last = std::move(fibers.back())]() mutable { last.reset(); }).join();  // runs no fibers
  fibers.pop_back();
  std::thread([&fibers] {
    Fiber::GetThis();
    fibers.clear();
    bool ran = false;
    std::make_shared<Fiber>([&ran] { ran = true; })->resume();
    EXPECT_TRUE(ran);
  }).join();
  EXPECT_EQ(Fiber::TotalFibers(), before);
}

}  // namespace
}  // namespace sylar
