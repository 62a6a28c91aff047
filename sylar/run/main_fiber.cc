#include "sylar/run/main_fiber.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string_view>

#include "sylar/base/sys.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook.h"
#include "sylar/hook/core/interruptible.h"
#include "sylar/hook/core/jump.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/thread/fiber_thread.h"
#include "sylar/iomanager.h"
#include "sylar/run/preempt.h"
#include "sylar/run/report.h"
#include "sylar/sched/worker.h"
#include "sylar/sync/blocking_pool.h"
#include "sylar/threads_are_fibers.h"

namespace sylar::detail {
namespace {

/// As large as the usual stack of a program, because signal handlers that come while main waits run on it.
constexpr size_t kLoopStackSize = size_t{8} << 20;
/// What the fiber begins on. It never comes back there.
constexpr size_t kFirstStackSize = size_t{16} << 10;

Stack g_loop_stack;
Stack g_main_stack;
Context g_main;   // where main goes on
Context g_loop;   // left for good at the end of becomeFiber, if that fails
Context g_first;  // left for good when main goes on as the fiber
FiberCore* g_main_fiber = nullptr;

/// Returns where main's stack, which ends at `top`, may grow to.
Stack mainStack(void* top) {
  rlimit limit{};
  ::getrlimit(RLIMIT_STACK, &limit);
  return stackBelow(static_cast<char*>(top), limit.rlim_cur);
}

/// Returns true if `at` is in a frame of main, which may be on a stack that the program has made, and not in one of a handler that
/// has interrupted the loop.
bool isInMain(const void* at) {
  stack_t signals{};
  sys::signalStack(nullptr, &signals);
  const auto in_signals = reinterpret_cast<uintptr_t>(at) - reinterpret_cast<uintptr_t>(signals.ss_sp);
  return in_signals >= signals.ss_size && !g_loop_stack.contains(at);
}

/// Makes main the fiber that runs, as if its wait were over. The loop, which the caller is in, must not go on.
void takeOver() {
  (void)g_main_fiber->wait.claim(g_main_fiber->wait.epoch(), WakeReason::kReady);
  control(*g_main_fiber->fiber).move(FiberState::kRunning);
  t_running = g_main_fiber;
}

/// In a forked child main goes on, where a handler has interrupted the loop. A handler on a stack of main's has interrupted the
/// switch to the loop.
SYLAR_SWITCHES void goOnInChild() {
  if (isInMain(__builtin_frame_address(0))) return;
  takeOver();
  Context::exitTo(g_loop, g_main_fiber->context, ThreadLocals::ofThisThread());
}

/// The fiber's function. From here on the fiber is main.
SYLAR_SWITCHES void goOnAsMain() {
  static const WorkGuard main_may_wait_for_threads(*IOManager::GetThis());
  g_main_fiber = t_running;
  g_main_fiber->stack = g_main_stack;
  Worker::setNextInChild(goOnInChild);
  Context::exitTo(g_first, g_main, ThreadLocals::ofThisThread());
}

/// Runs the scheduler, whose only fiber does not end.
void runLoop() {
  const std::unique_ptr<IOManager> iom = std::make_unique<IOManager>(SchedulerOptions{
      .threads = 1,
      .use_caller = true,
      .name = "main",
      .timer_slack = std::chrono::nanoseconds(0),  // it is inherited by what the program starts
      .identity = FiberIdentity::kWorker,          // that is main's thread
  });
  beginReport(*iom);
  iom->schedule(std::make_shared<Fiber>(goOnAsMain, kFirstStackSize));
  iom->stop();
}

SYLAR_SWITCHES void beginLoop() {
  try {
    runLoop();
  } catch (const std::exception&) {  // memory or descriptors do not suffice, so main goes on without fibers
  }
  Context::exitTo(g_loop, g_main, ThreadLocals::ofThisThread());
}

/// Lets main be cancelled like a thread that is a fiber. libc must not do it, because the loop has the same record of the thread.
void hearCancels() {
#ifdef SYLAR_THREAD_POINTER
  int before;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  FiberThread::mine().hears_cancel = true;
#endif
}

/// A signal handler that comes while main waits has interrupted the loop. If it jumps back into main, the wait has no end and the
/// loop goes on no more, so from there on the program runs without fibers: every hooked call is libc's.
void leaveFibersIfToMain(uintptr_t to) {
  if (!onThreadStack() || Worker::currentHere() == nullptr || !isInMain(reinterpret_cast<const void*>(to))) return;
  takeOver();
  Interruptible::leaveAll();
  static constinit std::atomic<uint32_t> none{0};  // as in a forked child, which has no workers either
  sys::detail::g_claim.store(&none, std::memory_order_release);
}

}  // namespace

void leaveMain() {
#ifdef SYLAR_THREAD_POINTER
  awaitThreadsOfMain();
#endif
}

SYLAR_SWITCHES void becomeFiber(void* stack_top) {
  g_main_stack = mainStack(stack_top);
  g_loop_stack = StackPool().take(kLoopStackSize);
  if (!g_loop_stack) return;
  setConnectTimeout(std::chrono::milliseconds(0));  // the kernel's alone
  setHookEintr(HookEintr::kPosix);
  setHookClose(HookClose::kPosix);
  g_before_jump.store(leaveFibersIfToMain, std::memory_order_relaxed);
  if (const char* const threads = ::getenv(kThreadsVariable); threads != nullptr && std::string_view(threads) == "fibers") {
    static const ThreadsAreFibers for_ever;
    hearCancels();
    preemptFiberThreads();
  } else {
    BlockingPool::process().setLimits({.max_threads = 0, .max_queued = 0});  // no other fiber could use the time
    setHookFiles(false);
  }
  g_loop.make<beginLoop>(g_loop_stack);
  Context::switchTo(g_main, g_loop, ThreadLocals::ofThisThread());
}

}  // namespace sylar::detail
