#include "sylar/hook/thread/fiber_thread.h"

#include "sylar/threads_are_fibers.h"

#ifdef SYLAR_THREAD_POINTER

#include <atomic>
#include <cerrno>
#include <memory>
#include <new>

#include "sylar/base/own_thread.h"
#include "sylar/fiber.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/fiber_local.h"
#include "sylar/hook/core/sent_signals.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/core/wait_loop.h"
#include "sylar/hook/lock/parking_lot.h"
#include "sylar/hook/thread/left_thread.h"
#include "sylar/sched/worker.h"
#include "sylar/scheduler.h"

namespace sylar::detail {
namespace {

/// The fiber begins on it, and ends there when the thread has left.
constexpr size_t kFirstStackSize = size_t{16} << 10;

struct Start {
  void* (*function)(void*);
  void* argument;
};

/// The function of the thread.
void* begin(LeftThread*, void* argument) {
  const Start start = *static_cast<Start*>(argument);
  delete static_cast<Start*>(argument);
  FiberThread::mine().isRunBy(runningFiber()->fiber);
  raiseSent();
  return start.function(start.argument);
}

/// The function of the fiber.
void runThread(LeftThread& thread, pthread_t id) {
  ThreadFibers& fibers = ThreadFibers::current();
  FiberThread::of(id).worker_pointer.store(fibers.ownThreadPointer(), std::memory_order_relaxed);
  fibers.callOn(thread, *runningFiber(), false);
  FiberLocals::endHere();
  FiberThread::of(id).worker_pointer.store(0, std::memory_order_relaxed);
  FiberThread::of(id).state.store(FiberThread::kLeft, std::memory_order_release);
  endByKernelThread(thread);
  ParkingLot::wakeAll(reinterpret_cast<void*>(id));
  if (FiberThread::count().fetch_sub(1, std::memory_order_acq_rel) == 1) ParkingLot::wakeAll(&FiberThread::count());
}

}  // namespace

bool makesFiberThreads() {
  return g_threads_are_fibers.load(std::memory_order_relaxed) != 0 && !sys::detail::t_makes_own_thread && maySuspendHere() &&
         Scheduler::GetThis() != nullptr;
}

int createFiberThread(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*), void* argument) {
  struct Made {
    LeftThread* thread = nullptr;
    pthread_t id{};
  };
  Fiber::ptr fiber;
  std::shared_ptr<Made> made;
  Start* begun;
  try {
    made = std::make_shared<Made>();
    fiber = std::make_shared<Fiber>([made] { runThread(*made->thread, made->id); }, kFirstStackSize);
    fiber->setIdentity(FiberIdentity::kWorker);  // it is this thread
    auto start = std::make_unique<Start>(Start{function, argument});
    const int error = makeLeftThread(&made->id, &made->thread, attributes, {begin, start.get(), FiberThread::mine().name});
    if (error != 0) return error;
    begun = start.release();  // the thread's, if it begins
  } catch (const std::bad_alloc&) {
    return EAGAIN;
  }
  *thread = made->id;
  if (made->thread == nullptr) return 0;  // it is a thread
  FiberThread::of(made->id).state.store(FiberThread::kRuns, std::memory_order_release);
  FiberThread::count().fetch_add(1, std::memory_order_relaxed);
  if (Scheduler::GetThis()->trySchedule(fiber)) return 0;
  FiberThread::of(made->id).state.store(FiberThread::kLeft, std::memory_order_release);
  delete begun;
  ::pthread_detach(made->id);
  made->thread->over = true;
  endByKernelThread(*made->thread);
  FiberThread::count().fetch_sub(1, std::memory_order_acq_rel);
  return EAGAIN;
}

}  // namespace sylar::detail

namespace sylar {

ThreadsAreFibers::ThreadsAreFibers() { g_threads_are_fibers.fetch_add(1, std::memory_order_relaxed); }
ThreadsAreFibers::~ThreadsAreFibers() { g_threads_are_fibers.fetch_sub(1, std::memory_order_relaxed); }
bool ThreadsAreFibers::supported() { return true; }

}  // namespace sylar

#else

namespace sylar {

ThreadsAreFibers::ThreadsAreFibers() = default;
ThreadsAreFibers::~ThreadsAreFibers() = default;
bool ThreadsAreFibers::supported() { return false; }

}  // namespace sylar

#endif
