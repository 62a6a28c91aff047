// No memory for a stack: whoever wanted the fiber learns it, and nothing is left behind. This program brings its own calls for
// memory; they fail at will and count what is mapped.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/fiber.h"
#include "sylar/fiber/fiber_core.h"
#include "sylar/fiber/stack.h"
#include "sylar/iomanager.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

constexpr int kAdviceGuardInstall = 102;

std::atomic<long> g_mapped{0};
std::atomic<long> g_calls{0};
std::atomic<long> g_failing_call{0};  // counted from 1; 0: none
std::atomic<bool> g_old_kernel{false};
std::atomic<long> g_unmappings{0};
std::function<bool(long)> g_refused;                      // which of them
std::vector<std::pair<char*, size_t>>* g_gone = nullptr;  // where and how much the others have unmapped

thread_local size_t t_refused_size = 0;

/// A stack that is refused with a wide guard is refused with a narrow one, too.
bool refused(size_t size, bool fails) {
  fails = fails || size + kGuardSize - kLeastGuardSize == std::exchange(t_refused_size, 0);
  if (fails) t_refused_size = size;
  return fails;
}

bool fails() { return ++g_calls == g_failing_call; }

/// Runs `round` with the first of its calls for memory failing, then with the second, and so on until all succeed; returns how
/// many of these rounds lost something because of that, as `round` says.
int withEachCallFailing(const std::function<bool()>& round) {
  int lost = 0;
  for (long n = 1;; ++n) {
    const long mapped = g_mapped;
    g_calls = 0;
    g_failing_call = n;
    const bool failed = !round();
    const bool reached = g_calls >= n;
    g_failing_call = 0;
    EXPECT_EQ(g_mapped, mapped) << "call " << n;
    EXPECT_TRUE(reached || !failed);
    if (!reached) return lost;
    lost += failed ? 1 : 0;
  }
}

/// On a thread of its own: what it pools is given back at its end.
bool onItsThread(const std::function<bool()>& round) {
  bool result = false;
  std::thread([&] { result = round(); }).join();
  return result;
}

/// Whatever a process and its first thread keep forever exists before each test.
class StackFailure : public testing::Test {
 protected:
  StackFailure() {
    log::setLevel(static_cast<log::Level>(100));
    std::make_shared<Fiber>([] {})->resume();
    test::inFiber([] {});
  }
  ~StackFailure() override { log::setLevel(log::Level::kInfo); }

 private:
  test::LeakCheck m_leaks;
};

/// Resumes a fiber until it ends; false if it got no stack, and then it can still be run.
bool resumed() {
  int runs = 0;
  const auto fiber = std::make_shared<Fiber>([&runs] { ++runs; });
  try {
    fiber->resume();
  } catch (const std::bad_alloc&) {
    EXPECT_EQ(runs, 0);
    EXPECT_EQ(fiber->getState(), Fiber::INIT);
    fiber->resume();
    EXPECT_EQ(runs, 1);
    return false;
  }
  EXPECT_EQ(runs, 1);
  return true;
}

// RT-4.4, FM-03: the mapping and its guard. Without a signal stack, or with huge pages, it runs.
TEST_F(StackFailure, ResumeThrowsAndTheFiberIsAsBefore) {
  EXPECT_EQ(withEachCallFailing([] { return onItsThread(resumed); }), 2);
}

// RT-4.4
TEST_F(StackFailure, CorePoolWithoutMemorySaysSo) {
  CorePool pool;
  std::vector<FiberCore*> cores;
  g_calls = 0;
  g_failing_call = 1;
  while (FiberCore* core = pool.take()) cores.push_back(core);  // what ended threads have left
  g_failing_call = 0;
  cores.push_back(pool.take());
  EXPECT_NE(cores.back(), nullptr);
  for (FiberCore* core : cores) pool.put(core);
}

// RT-4.4
TEST_F(StackFailure, FiberMayCatchWhatItsResumeThrows) {
  const auto round = [] {
    bool result = true;
    const auto outer = std::make_shared<Fiber>([&result] { result = resumed(); });
    outer->resume();
    return result;
  };
  EXPECT_GT(withEachCallFailing([&] {
              return onItsThread([&] {
                try {
                  return round();
                } catch (const std::bad_alloc&) {
                  return false;  // the outer one
                }
              });
            }),
            2);
}

/// Another size than the pooled ones: its stack is mapped.
constexpr size_t kOtherSize = 2 * kDefaultStackSize;

// RT-4.4, FM-03
TEST_F(StackFailure, JoinOfAScheduledFiberThrows) {
  EXPECT_EQ(withEachCallFailing([] {
              const long failing = g_failing_call.exchange(0);
              IOManager iom(1, false, "failing");
              const auto first = std::make_shared<Fiber>([] {});
              iom.schedule(first);
              first->join();
              g_calls = 0;
              g_failing_call = failing;

              bool ran = false;
              auto captured = std::make_shared<int>();
              const std::weak_ptr<int> watch = captured;
              const auto fiber = std::make_shared<Fiber>([&ran, captured = std::move(captured)] { ran = true; }, kOtherSize);
              iom.schedule(fiber);
              bool failed = false;
              try {
                fiber->join();
              } catch (const std::bad_alloc&) {
                failed = true;
              }
              EXPECT_NE(ran, failed);

              const auto last = std::make_shared<Fiber>([] {});
              iom.schedule(last);
              last->join();                  // the worker goes on
              EXPECT_TRUE(watch.expired());  // the loop destroys that after it has told who joins
              return !failed;
            }),
            2);
}

// RT-4.4: nobody joins it: a log line, and its captures end.
TEST_F(StackFailure, ScheduledFunctionThatGetsNoStackIsLetGo) {
  EXPECT_GT(withEachCallFailing([] {
              const long failing = g_failing_call.exchange(0);
              bool ran = false;
              auto captured = std::make_shared<int>();
              const std::weak_ptr<int> watch = captured;
              {
                IOManager iom(1, false, "failing");
                const auto first = std::make_shared<Fiber>([] {}, kOtherSize);
                iom.schedule(first);
                first->join();
                g_calls = 0;
                g_failing_call = failing;
                iom.schedule([&ran, captured = std::move(captured)] { ran = true; });
              }
              EXPECT_TRUE(watch.expired());
              return ran;
            }),
            1);
}

/// As many free stacks of the smallest size as are kept.
constexpr size_t kKept = StackPool::kKeptBytes / (kGuardSize + kMinStackSize);

/// `count` stacks of one size; counts the calls that this takes.
std::vector<Stack> takeMany(StackPool& pool, size_t count, long* calls) {
  g_calls = 0;
  std::vector<Stack> stacks;
  for (size_t i = 0; i < count; ++i) stacks.push_back(pool.take(kMinStackSize));
  *calls = g_calls;
  return stacks;
}

// P-12: new stacks come with a mapping for many; of those that are too many, neighbours go by one call.
TEST_F(StackFailure, ManyStacksTakeFewChangesOfTheMappings) {
  constexpr size_t kCount = kKept + StackClass::kReturned + 1;
  StackPool pool;
  long calls;
  const std::vector<Stack> stacks = takeMany(pool, kCount, &calls);
  EXPECT_LT(calls, static_cast<long>(kCount + kCount / 10)) << "a guard each, and few others";
  g_unmappings = 0;
  for (const Stack& stack : stacks) pool.put(stack);
  EXPECT_GT(g_unmappings, 0);
  EXPECT_LT(g_unmappings, 16);
}

// RT-4.4: no memory for many at once, but for fewer.
TEST_F(StackFailure, FewerAreMappedIfManyAreRefused) {
  StackPool pool;
  long calls;
  std::vector<Stack> stacks = takeMany(pool, 3, &calls);  // mapped as 1 and 2: the next are 4
  for (const long expected : {4, 1, 3}) {                 // 4 refused, 2, advice, guard; guard; the next mapping
    g_calls = 0;
    g_failing_call = expected == 4 ? 1 : 0;
    stacks.push_back(pool.take(kMinStackSize));
    EXPECT_TRUE(stacks.back());
    EXPECT_EQ(g_calls, expected);
  }
  for (const Stack& stack : stacks) pool.put(stack);
}

// RT-4.4: to unmap what lies between others takes a mapping more, which the kernel may refuse. The stack is used again then, and
// the kernel is asked again when half as many more are free.
TEST_F(StackFailure, StacksThatCannotBeUnmappedStay) {
  StackPool pool;
  long calls;
  const std::vector<Stack> stacks = takeMany(pool, 2 * kKept, &calls);
  const long mapped = g_mapped;
  g_unmappings = 0;
  g_refused = [](long) { return true; };
  for (const Stack& stack : stacks) pool.put(stack);
  EXPECT_EQ(g_mapped, mapped);
  EXPECT_LE(g_unmappings, 2 * static_cast<long>(StackClass::kReturned)) << "at the bound, and at half as many more";
  g_refused = nullptr;

  std::set<char*> bases;
  for (const Stack& stack : takeMany(pool, stacks.size(), &calls)) bases.insert(stack.base);
  EXPECT_EQ(calls, 0) << "all of them are there";
  EXPECT_EQ(bases.size(), stacks.size());
  EXPECT_FALSE(bases.contains(nullptr));
  const Stack one_more = pool.take(kMinStackSize);
  for (const Stack& stack : stacks) pool.put(stack);
  pool.put(one_more);
  EXPECT_LT(g_mapped, mapped) << "and go when they may";
}

// RT-4.4: what cannot be unmapped at the end of a thread's pool, or is too large for one, keeps no memory.
TEST_F(StackFailure, StacksThatCannotBeUnmappedAtTheEndAreEmptied) {
  const long before = g_mapped;
  std::vector<Stack> stacks;
  std::vector<std::pair<char*, size_t>> gone;
  {
    StackPool pool;
    long calls;
    stacks = takeMany(pool, 1 + 2 + 4 + 8 + 16 + 32, &calls);  // all that is mapped
    stacks.push_back(pool.take(StackPool::kMaxPooledSize + 1));
    for (const Stack& stack : stacks) stack.base[0] = stack.top()[-1] = 1;
    std::mt19937 random(1);
    std::shuffle(stacks.begin(), stacks.end(), random);
    g_unmappings = 0;
    g_refused = [](long n) { return n % 2 == 0; };
    g_gone = &gone;
    for (const Stack& stack : stacks) pool.put(stack);
  }
  g_refused = nullptr;
  g_gone = nullptr;
  size_t left = 0;
  for (const Stack& stack : stacks) {
    const auto holds = [&stack](const auto& piece) {
      return piece.first <= stack.base && stack.base < piece.first + piece.second;
    };
    if (std::any_of(gone.begin(), gone.end(), holds)) continue;  // the kernel may have given the place to somebody else since
    ++left;
    unsigned char lowest, highest;
    EXPECT_EQ(mincore(stack.base, 1, &lowest), 0);
    EXPECT_EQ(mincore(stack.base + (stack.size - 1) / 4096 * 4096, 1, &highest), 0);
    EXPECT_EQ((lowest | highest) & 1, 0) << "resident";
    const size_t mapped_size = (stack.size + 4095) / 4096 * 4096;
    EXPECT_EQ(sys::unmapMemory(stack.base - kGuardSize, kGuardSize + mapped_size), 0);
  }
  EXPECT_GT(left, 0u);
  EXPECT_LT(left, stacks.size());
  EXPECT_EQ(g_mapped, before);
}

// RT-4.1, RT-4.4: a kernel before 6.13 says EINVAL; from then on guards are made by mprotect, which may fail, too. The last test:
// the answer is remembered.
TEST_F(StackFailure, GuardsByMprotectFailInTheSameWay) {
  g_old_kernel = true;
  EXPECT_TRUE(onItsThread(resumed));
  EXPECT_EQ(withEachCallFailing([] { return onItsThread(resumed); }), 2);
  StackPool pool;
  long calls;
  for (const Stack& stack : takeMany(pool, 3, &calls)) {  // the last two share a mapping
    ASSERT_TRUE(stack);
    EXPECT_DEATH(*static_cast<volatile char*>(stack.base - kGuardSize) = 1, "");
    EXPECT_DEATH(*static_cast<volatile char*>(stack.base - 1) = 1, "");
    pool.put(stack);
  }
}

}  // namespace

void* sys::mapMemory(size_t size, int* error) {
  void* const memory = refused(size, fails())
                           ? MAP_FAILED
                           : ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    *error = ENOMEM;
    return nullptr;
  }
  g_mapped += static_cast<long>(size);
  return memory;
}

void* sys::growMemory(void* address, size_t old_size, size_t size) {
  void* const memory = fails() ? MAP_FAILED : ::mremap(address, old_size, size, MREMAP_MAYMOVE);
  if (memory == MAP_FAILED) return nullptr;
  g_mapped += static_cast<long>(size - old_size);
  return memory;
}

int sys::unmapMemory(void* address, size_t size) {
  const long n = ++g_unmappings;
  if (g_refused && g_refused(n)) return -ENOMEM;
  g_mapped -= static_cast<long>(size);
  if (g_gone != nullptr) g_gone->emplace_back(static_cast<char*>(address), size);
  return ::munmap(address, size) == 0 ? 0 : -EINVAL;
}

int sys::protectMemory(void* address, size_t size, int protection) {
  return !fails() && ::mprotect(address, size, protection) == 0 ? 0 : -ENOMEM;
}

int sys::adviseMemory(void* address, size_t size, int advice) {
  if (g_old_kernel && advice == kAdviceGuardInstall) return -EINVAL;
  return fails() ? -ENOMEM : ::madvise(address, size, advice) == 0 ? 0 : -EINVAL;
}

}  // namespace sylar
