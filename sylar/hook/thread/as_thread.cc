// What is done as another thread that is a fiber, and the signals that are sent to one.
//
// A signal is noted in the record of the thread. The fiber that runs it is then asked to look (FiberControl::kThread), which its
// worker does in its place, as that thread. So the handler runs while the fiber is suspended, and ends its wait.
//
//   word      who writes it                                                        order
//   sent      who sends; the thread                                                seq_cst
//   fiber     the thread: when a fiber begins to run it; isLeft()                  seq_cst, but release for one that is borrowed
//   senders   who sends, around its look at `fiber`; isLeft() waits until it is 0  seq_cst
//
// A sender sets a bit, and then looks at `fiber`. A new thread sets `fiber`, and then looks at the bits. So one of them sees the
// other. A borrowed one does not look, since what was sent before it was borrowed was meant for its last task.
#include "sylar/hook/thread/fiber_thread.h"

#ifdef SYLAR_THREAD_POINTER

#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook/core/handler_scope.h"
#include "sylar/hook/core/interruptible.h"
#include "sylar/hook/core/sent_signals.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/lock/lock_wait.h"
#include "sylar/hook/thread/set_ids.h"
#include "sylar/sched/worker.h"

namespace sylar::detail {
namespace {

/// While it exists, the fiber of a thread, if it has one, does not end.
class Sending {
 public:
  explicit Sending(FiberThread& to) : m_to(to) { m_to.senders.fetch_add(1, std::memory_order_seq_cst); }
  ~Sending() { m_to.senders.fetch_sub(1, std::memory_order_seq_cst); }
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;

  Fiber* fiber() const { return m_to.fiber.load(std::memory_order_seq_cst); }

 private:
  FiberThread& m_to;
};

/// Takes what was sent to the calling thread. What its worker blocks as well is for the kernel, where signalfd finds it. What only
/// the thread blocks stays.
void take(long) {
  FiberThread& mine = FiberThread::mine();
  raiseOfSent(~keptSignalMask() | keptSignalMaskOf(threadOfWorker()));
  const Waker& waiting = mine.signal_wait;
  const bool stays = mine.sent.load(std::memory_order_relaxed) != 0;
  if (stays && waiting.core != nullptr && waiting.claim(WakeReason::kReady)) Waker::deliverByMail(*waiting.core);
  if (mine.isCancelled()) Interruptible::cancelled();
}

/// Returns true if the calling fiber's worker has run `thread`, and has it still. A handler must not act as another thread, whose
/// mask the kernel has not.
bool isAtHome(const Fiber& fiber, const FiberThread& target, pthread_t thread) {
  const Worker* const mine = outsideFibers() ? nullptr : Worker::current();
  if (mine == nullptr || target.worker.load(std::memory_order_acquire) != mine->threadId()) return false;
  if (HandlerScope::running() && thread != ::pthread_self()) return false;
  return ThreadFibers::homeOf(fiber) == &mine->slot();
}

}  // namespace

[[gnu::noinline]] void asThread(pthread_t thread, void (*act)(long), long argument) {
  const uintptr_t mine = threadPointer();
  ThreadFibers& fibers = ThreadFibers::current();
  thread == fibers.ownThreadPointer() ? fibers.becomeWorker(runningFiber()) : becomeThread(thread);
  act(argument);
  becomeThread(mine);
}

void tell(pthread_t thread) {
  FiberThread& target = FiberThread::of(thread);
  {
    const Sending to(target);
    Fiber* const fiber = to.fiber();
    if (fiber == nullptr) return;
    if (!isAtHome(*fiber, target, thread)) {
      ThreadFibers::post(*fiber, FiberControl::kThread);
      const FiberState state = stateOf(*fiber);
      const bool runs = state == FiberState::kRunning || state == FiberState::kResuming;
      if (runs) interruptThread(target.worker.load(std::memory_order_relaxed));
      return;
    }
  }
  asThread(thread, &take, 0);  // at home, it does not leave while its worker is here
}

void takeIfHere(pthread_t thread) {
  const Worker* const mine = Worker::current();
  if (mine != nullptr && FiberThread::of(thread).worker.load(std::memory_order_relaxed) == mine->threadId())
    asThread(thread, &take, 0);
}

pthread_t threadOfWorker() { return ThreadFibers::current().ownThreadPointer(); }

}  // namespace sylar::detail

#endif
