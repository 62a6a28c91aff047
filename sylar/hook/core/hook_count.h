// Internal. Counts of hooked calls, and of the waits in them (hookStats).
//
// A hook counts its call in the counters of the worker, and leaves its name in the fiber. The wait, often many calls deeper, reads
// the name from the fiber.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "sylar/base/counter.h"
#include "sylar/base/internal.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook/core/handler_scope.h"
#include "sylar/hook/core/real.h"
#include "sylar/sched/park.h"
#include "sylar/sched/worker_slot.h"

namespace sylar::detail {

#define SYLAR_COUNTED_(name) name,
enum class Hook : uint8_t { SYLAR_COUNTED_NAMES(SYLAR_COUNTED_) kCount };
#undef SYLAR_COUNTED_

/// The counters of one worker slot, which are kept when its worker ends.
struct HookCounters {
  struct alignas(32) One {  // a power of two, which a shift finds
    Counter calls;
    Counter parks;
    Counter parked_ns;
  };
  One of[static_cast<size_t>(Hook::kCount)];
};

/// Gives the slot its counters, by mmap, because a signal handler may come here. Without memory the slot has none, and the call is
/// not counted.
HookCounters* makeHookCounters(WorkerSlot& slot);

/// Counts a call of `me`, the running fiber, which has a home.
[[gnu::always_inline]] inline void countCallOf(FiberCore& me, Hook hook) {
  SYLAR_DCHECK(&me == t_running && me.home != nullptr && hook < Hook::kCount);
  const tsan::Exempt of_this_thread;
  auto& slot = static_cast<WorkerSlot&>(*me.home);
  me.hook = static_cast<uint8_t>(hook);
  HookCounters* counters = slot.hook_counters.load(std::memory_order_relaxed);
  if (counters == nullptr) [[unlikely]]
    counters = makeHookCounters(slot);
  if (counters != nullptr) [[likely]]
    counters->of[static_cast<size_t>(hook)].calls.add();
}
/// Counts a call, if it is one of a fiber. To be called first in a hook.
[[gnu::always_inline]] inline void countCall(Hook hook) {
  FiberCore* const me = t_running;
  if (me == nullptr || !me->hook_enabled || me->home == nullptr || HandlerScope::running()) return;
  countCallOf(*me, hook);
}

/// True if a wait begins with its own look at the clock. Otherwise the one that its worker's iteration began with must do.
extern constinit std::atomic<bool> g_times_each_wait;

/// A wait of the hook in which the fiber is. Begins when it is made, and is counted if the fiber was suspended and goes on.
class HookPark {
 public:
  HookPark() : HookPark(*runningFiber()) {}
  explicit HookPark(const FiberCore& me) : m_me(me), m_begin_ns(beginNs()) {}
  void count() const {
    SYLAR_DCHECK(&m_me == runningFiber());
    const tsan::Exempt of_this_thread;
    HookCounters* const counters = slot().hook_counters.load(std::memory_order_relaxed);
    if (counters == nullptr) [[unlikely]]
      return;
    HookCounters::One& mine = counters->of[m_me.hook];
    mine.parks.add();
    mine.parked_ns.add(static_cast<uint64_t>(std::max<int64_t>(slot().iteration_ns - m_begin_ns, 0)));
  }

 private:
  const WorkerSlot& slot() const {
    SYLAR_DCHECK(m_me.home != nullptr);
    return *static_cast<const WorkerSlot*>(m_me.home);
  }
  int64_t beginNs() const {
    if (g_times_each_wait.load(std::memory_order_relaxed)) [[unlikely]]
      return waitClock().nowNs();
    const tsan::Exempt of_this_thread;
    return slot().iteration_ns;
  }

  const FiberCore& m_me;
  const int64_t m_begin_ns;
};

}  // namespace sylar::detail
