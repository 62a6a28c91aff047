// The runs of timers with an id, on the bare protocol: what one of them costs does not depend on how many others there are.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <new>
#include <vector>

#include "sylar/base/os_mutex.h"
#include "sylar/timer/timer_pool.h"
#include "sylar/timer/timer_state.h"

namespace sylar {
namespace {

/// Callbacks that wait, each on a stack of its own, which can be taken away.
class WaitingRuns {
  using Run = TimerRuns<>::Run;

 public:
  explicit WaitingRuns(size_t count)
      : m_page(static_cast<size_t>(::sysconf(_SC_PAGESIZE))),
        m_count(count),
        m_memory(static_cast<std::byte*>(
            ::mmap(nullptr, count * m_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    for (size_t i = 0; i < count; ++i) {
      PoolTimer* const timer = m_pool.allocate();
      m_ids.push_back(m_pool.idOf(*timer));
      Lock lock(m_mutex);
      EXPECT_TRUE(m_runs.begin(*::new (page(i)) Run, *timer));
    }
  }
  ~WaitingRuns() { ::munmap(m_memory, m_count * m_page); }
  WaitingRuns(const WaitingRuns&) = delete;
  WaitingRuns& operator=(const WaitingRuns&) = delete;

  /// Ends one while nobody may touch the others. A touch of one is the end of the program.
  void endAlone(size_t i) {
    allow(PROT_NONE);
    ::mprotect(page(i), m_page, PROT_READ | PROT_WRITE);
    m_runs.end(*reinterpret_cast<Run*>(page(i)));
    EXPECT_EQ(m_runs.await(m_ids[i], m_threads), TimerStop::kDone) << "its id is stale";
    allow(PROT_READ | PROT_WRITE);
  }
  size_t inUse() const { return m_pool.inUse(); }

 private:
  std::byte* page(size_t i) { return m_memory + i * m_page; }
  void allow(int protection) { ASSERT_EQ(::mprotect(m_memory, m_count * m_page, protection), 0); }

  const size_t m_page;
  const size_t m_count;
  std::byte* const m_memory;
  Spinlock m_mutex;
  TimerPool<> m_pool;
  ThreadRunWaits<> m_threads;
  TimerRuns<> m_runs{m_mutex, m_pool};
  std::vector<TimerId> m_ids;
};

// Forty thousand callbacks that sleep equally long end one after the other, each under the manager's lock.
TEST(TimerRunsTest, TheEndOfARunTouchesNoOther) {
  constexpr size_t kRuns = 100;
  WaitingRuns runs(kRuns);
  for (size_t i = 0; i < kRuns / 2; ++i) {
    runs.endAlone(i);
    runs.endAlone(kRuns - 1 - i);
  }
  EXPECT_EQ(runs.inUse(), 0u);
}

}  // namespace
}  // namespace sylar
