#include "sylar/base/os_mutex.h"

#include <sched.h>

#include "sylar/base/check.h"
#include "sylar/base/clock.h"
#include "sylar/base/memory.h"
#include "sylar/base/sys.h"

namespace sylar {
namespace {
constexpr uint32_t kWaiters = 0x8000'0000;
constexpr int kSpins = 64;
}  // namespace

[[gnu::noinline]] void OsMutex::lock() {
  const auto me = static_cast<uint32_t>(sys::threadIdHere());
  uint32_t free = 0;
  if (!m_word.compare_exchange_strong(free, me, std::memory_order_acquire, std::memory_order_relaxed)) lockContended(me);
}

void OsMutex::lockContended(uint32_t me) {
  uint32_t seen = m_word.load(std::memory_order_relaxed);
  SYLAR_CHECK((seen & ~kWaiters) != me);
  for (int spin = 0; spin < kSpins; ++spin) {
    if (seen == 0 && m_word.compare_exchange_weak(seen, me, std::memory_order_acquire, std::memory_order_relaxed)) return;
    StdMemory::relax();
    seen = m_word.load(std::memory_order_relaxed);
  }
  for (;;) {
    // From here on we may have slept beside others, so whoever of us gets the lock must assume that more sleep.
    if (seen == 0) {
      if (m_word.compare_exchange_weak(seen, me | kWaiters, std::memory_order_acquire, std::memory_order_relaxed)) return;
      continue;
    }
    if ((seen & kWaiters) == 0 && !m_word.compare_exchange_weak(seen, seen | kWaiters, std::memory_order_relaxed)) continue;
    sys::futexWait(m_word, seen | kWaiters, kNever);
    seen = m_word.load(std::memory_order_relaxed);
  }
}

bool OsMutex::tryLock() {
  uint32_t free = 0;
  return m_word.compare_exchange_strong(free, static_cast<uint32_t>(sys::threadId()), std::memory_order_acquire,
                                        std::memory_order_relaxed);
}

void OsMutex::unlock() {
  SYLAR_DCHECK(heldByThisThread());
  if ((m_word.exchange(0, std::memory_order_release) & kWaiters) != 0) sys::futexWake(m_word, 1);
}

bool OsMutex::heldByThisThread() const {
  return (m_word.load(std::memory_order_relaxed) & ~kWaiters) == static_cast<uint32_t>(sys::threadId());
}

void Spinlock::lockContended() {
  for (;;) {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (!m_held.load(std::memory_order_relaxed) && !m_held.exchange(true, std::memory_order_acquire)) return;
      StdMemory::relax();
    }
    sys::call(SYS_sched_yield);  // the holder was preempted
  }
}

}  // namespace sylar
