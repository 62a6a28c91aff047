// Internal. The nodes of timers that have an id instead of an owner: a cache line each, in pages that never move.
//
// A TimerId is generation << 32 | page * 64 + place, of which the latter takes 24 bits. Place 0 is the page's own header, so no
// id is 0. A node's generation goes up when it is *freed*, so from then on no id made before finds it. A stale id can do no harm
// until one node was reused as often as there are generations. Free nodes are reused oldest first, and none before kSpread of them
// exist, so that takes 2^32 * kSpread reuses.
//
// Memory follows the largest number of timers at once.
//
// Thread safety: none, except for prefetch(); the owner brings the lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/check.h"
#include "sylar/timer/armed_timer.h"
#include "sylar/timer_task.h"

namespace sylar::detail {

struct PoolTimer : ManagedTimer {
  /// kArmed    in the queue, and nothing else
  /// kQueued   handed out, not begun. A recurring one is also in the queue
  /// kRunning  its callback runs. A recurring one that was not stopped is also in the queue
  /// kStopped  handed out, but stopped since: to be freed instead of run
  ///
  /// kFree -> kArmed -> kQueued -> kRunning -> kFree | kArmed (recurring); kArmed -> kFree; kQueued -> kStopped -> kFree
  enum class State : uint8_t { kFree, kArmed, kQueued, kRunning, kStopped };

  PoolTimer() : ManagedTimer(true) {}
  State state = State::kFree;
  uint32_t generation = 0;
  int64_t period_ns = 0;  ///< 0: once; negative: recurring, with Repeat::kSkip
  TimerTask task;         ///< while its callback runs, that run has the task, and this notes where the run is
};
static_assert(sizeof(PoolTimer) == 64);

/// `GenerationBits` < 32 is for tests that want to see generations wrap.
template <unsigned GenerationBits = 32>
class TimerPool {
 public:
  static constexpr uint32_t kNodesPerPage = 63;
  static constexpr uint32_t kSpread = 1024;
  static constexpr uint32_t kMaxPages = 1 << 18;  ///< 16.5 million timers, 1 GiB

  explicit TimerPool(uint32_t max_pages = kMaxPages) : m_max_pages(max_pages) {}
  TimerPool(const TimerPool&) = delete;
  TimerPool& operator=(const TimerPool&) = delete;
  ~TimerPool() {
    for (uint32_t number = 0; number < m_page_count; ++number) delete pageAt(number);
    for (auto& chapter : m_chapters) delete chapter.load(std::memory_order_relaxed);
  }

  /// Returns a node to arm, or null if there are as many as are allowed. Its id is idOf(). May throw std::bad_alloc.
  PoolTimer* allocate() {
    if (m_free_count == 0 && !grow()) [[unlikely]]
      return nullptr;
    while (m_page_count * kNodesPerPage < kSpread && grow()) [[unlikely]] continue;
    auto* const timer = static_cast<PoolTimer*>(m_free.pop());
    SYLAR_DCHECK(timer != nullptr && timer->state == PoolTimer::State::kFree && !timer->task);
    --m_free_count;
    timer->state = PoolTimer::State::kArmed;
    return timer;
  }

  /// Frees `timer`. The ids that it had are stale from here on. Its task must be empty, because destroying one is foreign code.
  void free(PoolTimer& timer) {
    SYLAR_DCHECK(timer.state != PoolTimer::State::kFree && !timer.task);
    timer.state = PoolTimer::State::kFree;
    timer.generation = (timer.generation + 1) & (~uint32_t{0} >> (32 - GenerationBits));
    m_free.push(&timer);
    ++m_free_count;
  }

  TimerId idOf(const PoolTimer& timer) const {
    const auto address = reinterpret_cast<uintptr_t>(&timer);
    const auto* const page = reinterpret_cast<const Page*>(address & ~(sizeof(Page) - 1));
    const size_t place = (address % sizeof(Page)) / sizeof(PoolTimer);
    SYLAR_DCHECK(place > 0 && page->number < m_page_count);
    return TimerId{timer.generation} << 32 | (page->number * 64 + place);
  }

  /// Returns the timer that has this id now, or null.
  PoolTimer* find(TimerId id) {
    const auto index = static_cast<uint32_t>(id);
    if (index / 64 >= m_page_count || index % 64 == 0) return nullptr;
    PoolTimer& timer = pageAt(index / 64)->timers[index % 64 - 1];
    return timer.state != PoolTimer::State::kFree && timer.generation == id >> 32 ? &timer : nullptr;
  }

  /// Starts to fetch the node, without the lock, for a caller that is about to find(). Any id is allowed.
  void prefetch(TimerId id) const {
    const auto index = static_cast<uint32_t>(id);
    const Page* const page = pageAt(index / 64 % kMaxPages);
    if (page != nullptr) __builtin_prefetch(reinterpret_cast<const char*>(page) + index % 64 * sizeof(PoolTimer), 1);
  }

  size_t inUse() const {
    SYLAR_DCHECK(m_free_count <= m_page_count * kNodesPerPage);
    return m_page_count * kNodesPerPage - m_free_count;
  }

 private:
  struct alignas(4096) Page {
    alignas(64) uint32_t number;
    alignas(64) PoolTimer timers[kNodesPerPage];
  };
  static_assert(sizeof(Page) == 4096);

  /// The table of pages, in two levels that never move, because prefetch() looks while a page is added.
  struct Chapter {
    std::array<std::atomic<Page*>, 512> pages{};
  };

  /// Returns the page, or null if there is none.
  Page* pageAt(uint32_t number) const {
    const Chapter* const chapter = m_chapters[number / 512].load(std::memory_order_acquire);
    return chapter == nullptr ? nullptr : chapter->pages[number % 512].load(std::memory_order_acquire);
  }

  /// Adds a page if that is allowed. Its nodes are the last to be used.
  [[gnu::noinline]] bool grow() {
    if (m_page_count == m_max_pages) return false;
    auto& chapter = m_chapters[m_page_count / 512];
    if (chapter.load(std::memory_order_relaxed) == nullptr) chapter.store(new Chapter, std::memory_order_release);
    auto* const page = new Page;
    chapter.load(std::memory_order_relaxed)->pages[m_page_count % 512].store(page, std::memory_order_release);
    page->number = m_page_count++;
    for (PoolTimer& timer : page->timers) m_free.push(&timer);
    m_free_count += kNodesPerPage;
    return true;
  }

  const uint32_t m_max_pages;
  uint32_t m_page_count = 0;
  std::array<std::atomic<Chapter*>, kMaxPages / 512> m_chapters{};
  TimerList m_free;
  size_t m_free_count = 0;
};

}  // namespace sylar::detail
