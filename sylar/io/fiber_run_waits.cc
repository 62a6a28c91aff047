#include "sylar/io/fiber_run_waits.h"

#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/sched/park.h"
#include "sylar/sched/worker.h"

namespace sylar::detail {
namespace {

constinit const ThreadRunWaits<> s_threads;

class FiberWaiter final : public RunWaiter {
 public:
  void wake() override {
    Lock lock(m_mutex);
    m_woken = true;
    const Waker waker = m_waker;
    const bool won = waker.core != nullptr && waker.claim(WakeReason::kReady);
    lock.unlock();  // from here on the fiber may be gone, if another waker woke it
    if (won) Waker::deliver(*waker.core);
  }

  /// Waits until wake(). Not even the last phase of cancelling ends the wait, because the waiter is linked; the fiber is
  /// abandoned instead.
  void wait(WaitFor what) {
    SYLAR_DCHECK(mayPark());
    const this_fiber::CancelShield shield;
    for (;;) {
      Wait wait;
      Lock lock(m_mutex);
      m_waker = wait.waker();
      const bool over = m_woken;
      lock.unlock();
      if (over) {
        wait.withdraw();
        return;
      }
      if (wait.park(Deadline::never(), what) == WakeReason::kReady) return;
    }
  }

 private:
  OsMutex m_mutex;
  Waker m_waker SYLAR_GUARDED_BY(m_mutex);
  bool m_woken SYLAR_GUARDED_BY(m_mutex) = false;
};

class FiberRunWaits final : public RunWaits {
 public:
  Flow here() const override {
    const FiberCore* const me = runningFiber();
    if (me == nullptr) return s_threads.here();
    const Worker* const worker = Worker::current();
    return {.id = idOf(*me), .scheduler = worker == nullptr ? nullptr : &worker->scheduler()};
  }

  bool isHere(const Flow& flow) const override {
    const tsan::Exempt of_this_thread;
    for (const FiberCore* core = runningFiber(); core != nullptr; core = core->resumer) {
      if (idOf(*core) == flow.id) return true;
    }
    // While a worker runs code outside fibers (an exception handler, a destructor), its own fibers stand still.
    const Worker* const worker = Worker::current();
    if (runningFiber() == nullptr && worker != nullptr && flow.scheduler == &worker->scheduler()) return true;
    return s_threads.isHere(flow);
  }

  void wait(const Enlist& enlist) const override {
    if (!mayPark() || sys::inForkedChild()) return s_threads.wait(enlist);
    FiberWaiter waiter;
    const std::optional<Flow> flow = enlist(waiter);
    if (!flow.has_value()) return;
    SYLAR_DCHECK(Worker::current() != nullptr);
    const bool ours = flow->scheduler == &Worker::current()->scheduler();
    waiter.wait(ours ? WaitFor::kFibers : WaitFor::kOutside);
  }

 private:
  static uintptr_t idOf(const FiberCore& core) { return reinterpret_cast<uintptr_t>(&core); }
};

constinit const FiberRunWaits s_fibers;

}  // namespace

const RunWaits& fiberRunWaits() { return s_fibers; }

}  // namespace sylar::detail
