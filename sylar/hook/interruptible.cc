#include "sylar/hook/interruptible.h"

#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"

namespace sylar {
namespace {

/// Keeps the compiler from moving what a handler looks at.
void asHandlersSeeIt() { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace

constinit std::atomic<HookEintr> Interruptible::s_mode{HookEintr::kRestart};

void setHookEintr(HookEintr mode) { Interruptible::s_mode.store(mode, std::memory_order_relaxed); }
HookEintr hookEintr() { return Interruptible::s_mode.load(std::memory_order_relaxed); }

/// One wait, on the stack of its fiber. Handlers follow `next` only.
struct Interruptible::Parked {
  const Interruptible& call;
  const Waker waker;
  std::atomic<bool> ended{false};
  std::atomic<Parked*> next{nullptr};
  Parked* prev = nullptr;
};

/// The waits of a thread, the one that has lasted longest first.
struct Interruptible::Queue {
  constexpr Queue() = default;

  void clear() {
    first.store(nullptr, std::memory_order_relaxed);
    last = nullptr;
  }
  void append(Parked& one) {
    one.prev = last;
    asHandlersSeeIt();
    (last != nullptr ? last->next : first).store(&one, std::memory_order_relaxed);
    last = &one;
  }
  void remove(Parked& one) {
    Parked* const following = one.next.load(std::memory_order_relaxed);
    (one.prev != nullptr ? one.prev->next : first).store(following, std::memory_order_relaxed);
    (following != nullptr ? following->prev : last) = one.prev;
    asHandlersSeeIt();
  }
  /// Ends the first wait that a handler may end. Returns false if there is none.
  bool endOne(int signal, bool restarts) {
    for (Parked* one = first.load(std::memory_order_relaxed); one != nullptr; one = one->next.load(std::memory_order_relaxed)) {
      if (!one->call.endsWith(signal, restarts) || !one->waker.claim(WakeReason::kReady)) continue;
      one->ended.store(true, std::memory_order_relaxed);
      Waker::deliverByMail(*one->waker.core);
      return true;
    }
    return false;
  }

  std::atomic<Parked*> first{nullptr};
  Parked* last = nullptr;
};

constinit thread_local Interruptible::Queue Interruptible::t_queues[2];
constinit thread_local Interruptible::Count Interruptible::t_unused[2];
constinit thread_local std::atomic<bool> Interruptible::t_lets_through{false};

/// Returns the number of handlers that have ended nothing, of those that end such a call.
const Interruptible::Count& Interruptible::unused() const { return t_unused[m_by == EndedBy::kNoRestart ? 1 : 0]; }

bool Interruptible::endsWith(int signal, bool restarts) const {
  if (restarts && m_by == EndedBy::kNoRestart) return false;
  return m_mask == nullptr || ::sigismember(m_mask, signal) == 0;
}

void Interruptible::beginNow() {
  if (m_active || m_by == EndedBy::kNone) return;
  m_active = true;
  m_unused_before = unused().load(std::memory_order_relaxed);
}

[[gnu::noinline]] WakeReason Interruptible::parkActive(Wait& wait, Deadline until) {
  Queue& queue = t_queues[m_by == EndedBy::kAwaited ? 0 : 1];
  Parked parked{*this, wait.waker()};
  {
    const tsan::Exempt of_this_thread;
    queue.append(parked);
  }
  WakeReason reason = WakeReason::kReady;
  if (handlerHasRun()) {
    m_interrupted = true;
    wait.withdraw();
  } else {
    reason = wait.park(until);
  }
  const tsan::Exempt of_this_thread;
  queue.remove(parked);
  m_interrupted = m_interrupted || parked.ended.load(std::memory_order_relaxed);
  return reason;
}

void Interruptible::leaveAll() {
  for (Queue& queue : t_queues) queue.clear();
}

void Interruptible::handlerRan(int signal, bool restarts) {
  if (t_lets_through.load(std::memory_order_relaxed)) return;
  const tsan::Exempt of_this_thread;
  for (Queue& queue : t_queues) {
    if (queue.endOne(signal, restarts)) return;
  }
  for (int i = 0; i <= (restarts ? 0 : 1); ++i)
    t_unused[i].store(t_unused[i].load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace sylar
