// What is done as another thread that is a fiber, and the signals that are sent to one.
#include "sylar/hook/thread/fiber_thread.h"

#ifdef SYLAR_THREAD_POINTER

#include <unistd.h>

#include <csignal>

#include "sylar/base/sys.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/sched/worker.h"
#include "sylar/scheduler.h"

namespace sylar::detail {
namespace {

[[gnu::noinline]] void asThreadHere(pthread_t thread, void (*act)(long), long argument) {
  const uintptr_t mine = threadPointer();
  ThreadFibers& fibers = ThreadFibers::current();
  thread == fibers.ownThreadPointer() ? fibers.becomeWorker(runningFiber()) : becomeThread(thread);
  act(argument);
  becomeThread(mine);
}

}  // namespace

void asThread(pthread_t thread, void (*act)(long), long argument) {
  const Worker* const mine = Worker::current();
  if (mine == nullptr) return;
  const FiberThread& target = FiberThread::of(thread);
  const pid_t worker = target.worker.load(std::memory_order_acquire);
  if (!target.isFiber() || worker == mine->threadId()) {
    asThreadHere(thread, act, argument);
  } else if (worker != 0) {
    const auto runs = [](pthread_t id) {
      return FiberThread::of(id).state.load(std::memory_order_acquire) == FiberThread::kRuns;
    };
    Scheduler::GetThis()->schedule([=] { runs(thread) ? asThreadHere(thread, act, argument) : void(); }, worker);
  }
}

bool hasBegun(pthread_t thread) { return FiberThread::of(thread).worker.load(std::memory_order_acquire) != 0; }

void raiseSent() {
  std::atomic<uint64_t>& sent = FiberThread::mine().sent;
  if (sent.load(std::memory_order_relaxed) == 0) return;
  for (int signal = 1; signal < NSIG; ++signal) {
    const uint64_t bit = uint64_t{1} << (signal - 1);
    if ((keptSignalMask() & bit) == 0 && (sent.fetch_and(~bit, std::memory_order_acq_rel) & bit) != 0) raiseHere(signal);
  }
}

void raiseHere(long signal) {
  bool& gets_signal = FiberThread::mine().gets_signal;
  gets_signal = true;
  sys::call(SYS_tgkill, ::getpid(), sys::call(SYS_gettid), signal);
  gets_signal = false;
}

pthread_t threadOfWorker() { return ThreadFibers::current().ownThreadPointer(); }

}  // namespace sylar::detail

#endif
