#include "sylar/thread_mutex.h"

#include <algorithm>

#include "sylar/base/memory.h"
#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/clock.h"

namespace sylar {
namespace {
constexpr uint32_t kWaiters = 0x8000'0000;
constexpr int kSpins = 64;
constexpr int64_t kFirstSleepNs = 50'000;
constexpr int64_t kLongestSleepNs = 1'000'000;
}  // namespace

/// Needs no stack frame, because everything but the fast path is behind a tail call.
[[gnu::noinline]] void ThreadMutex::lock() {
  const auto me = static_cast<uint32_t>(sys::knownThreadIdHere());
  uint32_t free = 0;
  if (me != 0 && m_word.compare_exchange_strong(free, me, std::memory_order_acquire, std::memory_order_relaxed)) return;
  lockSlowly();
}

void ThreadMutex::lockSlowly() {
  const auto me = static_cast<uint32_t>(sys::threadIdHere());
  uint32_t seen = m_word.load(std::memory_order_relaxed);
  SYLAR_CHECK((seen & ~kWaiters) != me);
  for (int spin = 0; spin < kSpins; ++spin) {
    if (seen == 0 && m_word.compare_exchange_weak(seen, me, std::memory_order_acquire, std::memory_order_relaxed)) return;
    StdMemory::relax();
    seen = m_word.load(std::memory_order_relaxed);
  }
  for (;;) {
    // From here on this thread may have slept beside others, so it must set kWaiters with the lock, as if others still slept.
    if (seen == 0) {
      if (m_word.compare_exchange_weak(seen, me | kWaiters, std::memory_order_acquire, std::memory_order_relaxed)) return;
      continue;
    }
    if ((seen & kWaiters) == 0 && !m_word.compare_exchange_weak(seen, seen | kWaiters, std::memory_order_relaxed)) continue;
    sys::futexWait(m_word, seen | kWaiters, kNever);
    seen = m_word.load(std::memory_order_relaxed);
  }
}

bool ThreadMutex::try_lock() {
  uint32_t free = 0;
  return m_word.compare_exchange_strong(free, static_cast<uint32_t>(sys::threadId()), std::memory_order_acquire,
                                        std::memory_order_relaxed);
}

void ThreadMutex::unlock() {
  SYLAR_DCHECK(heldByThisThread());
  if ((m_word.exchange(0, std::memory_order_release) & kWaiters) != 0) sys::futexWake(m_word, 1);
}

bool ThreadMutex::heldByThisThread() const {
  return (m_word.load(std::memory_order_relaxed) & ~kWaiters) == static_cast<uint32_t>(sys::threadId());
}

// Sleeps instead of yielding: the holder may be a thread of a lower scheduling class, to which sched_yield never gives way, or of
// a lower weight, to which it hardly does.
void Spinlock::lockContended() {
  for (int64_t sleep_ns = kFirstSleepNs;; sleep_ns = std::min(2 * sleep_ns, kLongestSleepNs)) {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (!m_held.load(std::memory_order_relaxed) && !m_held.exchange(true, std::memory_order_acquire)) return;
      StdMemory::relax();
    }
    sys::sleepFor(sleep_ns);  // the holder was preempted
  }
}

void ThreadSemaphore::wait() {
  uint32_t count = m_count.load(std::memory_order_relaxed);
  for (;;) {
    if (count == 0) {
      sys::futexWait(m_count, 0, kNever);
      count = m_count.load(std::memory_order_relaxed);
    } else if (m_count.compare_exchange_weak(count, count - 1, std::memory_order_acquire, std::memory_order_relaxed)) {
      return;
    }
  }
}

void ThreadSemaphore::notify() {
  m_count.fetch_add(1, std::memory_order_release);
  sys::futexWake(m_count, 1);
}

}  // namespace sylar
