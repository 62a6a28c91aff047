#include "sylar/hook/core/interruptible.h"

#include <memory>
#include <new>

#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/base/worker_local.h"
#include "sylar/check.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook/core/thread_record.h"

namespace sylar::detail {
namespace {

/// libc's own, which no mask blocks.
constexpr int kCancelSignal = 32;

#ifdef SYLAR_THREAD_POINTER
bool isCancelled() { return FiberThread::mine().isCancelled(); }
#else
bool isCancelled() { return false; }
#endif

/// Keeps the compiler from moving what a handler looks at.
void asHandlersSeeIt() { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace

constinit std::atomic<uint8_t> g_posix_modes{0};

/// One wait, on the stack of its fiber. Handlers follow `next` only.
struct Interruptible::Parked {
  const Interruptible& call;
  const Waker waker;
  std::atomic<bool> ended{false};
  const void* const thread = &t_lets_through;  // under whose thread pointer it waits
  std::atomic<Parked*> next{nullptr};
  Parked* prev = nullptr;
};

/// The waits of a thread, the one that has lasted longest first. Those of borrowed threads are with their worker's, whose kernel
/// thread runs the handlers.
struct Interruptible::Queue {
  constexpr Queue() = default;

  void clear() {
    first.store(nullptr, std::memory_order_relaxed);
    last = nullptr;
  }
  void append(Parked& one) {
    SYLAR_DCHECK(one.prev == nullptr && one.next.load(std::memory_order_relaxed) == nullptr);
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
  /// Ends the first wait that a handler may end: that of the calling thread, if it is borrowed, since a signal to the process is
  /// told to the worker. Returns false if there is none.
  bool endOne(int signal, bool restarts) {
    const void* const only = t_to_worker != 0 ? &t_lets_through : nullptr;
    for (Parked* one = first.load(std::memory_order_relaxed); one != nullptr; one = one->next.load(std::memory_order_relaxed)) {
      if (only != nullptr && one->thread != only) continue;
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

/// The handlers of a thread that have ended nothing, numbered from 1 on. Made for the first call that handlers may end.
struct Interruptible::Unused {
  using Number = std::atomic<uint64_t>;

  void add(int signal, bool restarts) {
    const uint64_t number = last.load(std::memory_order_relaxed) + 1;
    last_of[restarts][signal].store(number, std::memory_order_relaxed);
    last.store(number, std::memory_order_relaxed);
  }

  /// Makes it for the calling thread, or the worker that this is to the library. Returns null if there is no memory.
  static Unused* make() {
    ThreadFibers::callAsWorker([] {
      struct Forget {
        void operator()(Unused* mine) const {
          t_unused = nullptr;
          asHandlersSeeIt();
          delete mine;
        }
      };
      static thread_local const std::unique_ptr<Unused, Forget> s_mine(new (std::nothrow) Unused);
      t_unused = s_mine.get();
    });
    return ofWorker(t_unused);
  }

  Number last{0};
  Number last_of[2][NSIG]{};  ///< by whether it restarts calls, and by signal
};

constinit thread_local Interruptible::Queue Interruptible::t_queues[2];
constinit thread_local Interruptible::Unused* Interruptible::t_unused = nullptr;
constinit thread_local std::atomic<bool> Interruptible::t_lets_through{false};

bool Interruptible::endsWith(int signal, bool restarts) const {
  if (signal == kCancelSignal) return true;
  if (m_by == EndedBy::kCancel || (restarts && m_by == EndedBy::kNoRestart)) return false;
  return m_mask == nullptr || ::sigismember(m_mask, signal) == 0;
}

void Interruptible::noteBeforeChange() {
  noteHandlers();
  const tsan::Exempt of_this_thread;
  m_unused_before = ofWorker(t_unused)->last.load(std::memory_order_relaxed);
}

void Interruptible::beginNow() {
  if (m_active || m_by == EndedBy::kNone) return;
  const tsan::Exempt of_this_thread;
  const Unused* unused = ofWorker(t_unused);
  if (unused == nullptr) unused = Unused::make();
  if (unused == nullptr) return;
  m_active = true;
  m_unused_before = unused->last.load(std::memory_order_relaxed);
}

bool Interruptible::handlerHasRun() const {
  SYLAR_DCHECK(m_active);
  const tsan::Exempt of_this_thread;
  const Unused& unused = *ofWorker(t_unused);
  if (unused.last.load(std::memory_order_relaxed) == m_unused_before) return false;
  for (const bool restarts : {false, true}) {
    for (int signal = 1; signal < NSIG; ++signal) {
      const uint64_t number = unused.last_of[restarts][signal].load(std::memory_order_relaxed);
      if (number > m_unused_before && endsWith(signal, restarts)) return true;
    }
  }
  return false;
}

[[gnu::noinline]] WakeReason Interruptible::parkActive(Wait& wait, Deadline until) {
  SYLAR_DCHECK(m_active && wait.waker().core == runningFiber());
  Queue& queue = ofWorker(t_queues)[m_by == EndedBy::kAwaited ? 0 : 1];
  Parked parked{*this, wait.waker()};
  {
    const tsan::Exempt of_this_thread;
    queue.append(parked);
  }
  WakeReason reason = WakeReason::kReady;
  if (handlerHasRun() || isCancelled()) {
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

void Interruptible::cancelled() {
  for (Queue& queue : ofWorker(t_queues)) {
    if (queue.endOne(kCancelSignal, false)) return;
  }
}

void Interruptible::actOnCancel() {
#ifdef SYLAR_THREAD_POINTER
  if (isCancelled()) unwindCancelled();
#endif
}

void Interruptible::leaveAll() {
  for (Queue& queue : ofWorker(t_queues)) queue.clear();
}

void Interruptible::handlerRan(int signal, bool restarts) {
  SYLAR_DCHECK(signal > 0 && signal < NSIG);
  if (t_lets_through.load(std::memory_order_relaxed)) return;
  const tsan::Exempt of_this_thread;
  for (Queue& queue : ofWorker(t_queues)) {
    if (queue.endOne(signal, restarts)) return;
  }
  if (Unused* const unused = ofWorker(t_unused)) unused->add(signal, restarts);
}

}  // namespace sylar::detail

namespace sylar {

void setHookEintr(HookEintr mode) { setMode(PosixMode::kEintr, mode == HookEintr::kPosix); }
HookEintr hookEintr() { return isOn(PosixMode::kEintr) ? HookEintr::kPosix : HookEintr::kRestart; }

}  // namespace sylar
