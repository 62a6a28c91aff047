// sigaction, signal and similar calls. The kernel runs a trampoline instead of the program's handler, so the hooks know that a
// handler runs, and that one has run. Source: sigaction(2), signal(2), sysv_signal(3), sigset(3), siginterrupt(3).
//
// Each handler has a trampoline of its own. So the kernel's record of an action stays the whole record, and is changed as a whole:
// only the address in it is another. Nothing is locked, so handlers and forked children may install handlers, too.
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook/core/handler_scope.h"
#include "sylar/hook/core/interruptible.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/sent_signals.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/thread/fiber_thread.h"
#include "sylar/sched/worker.h"

namespace sylar::detail {
namespace {

using Handler = void (*)(int signal, siginfo_t* info, void* context);

/// What a program installs with SA_RESTART counts as another handler than without. Further handlers are installed as they are, and
/// the hooks do not notice when they run.
constexpr size_t kMostHandlers = 256;
constexpr uintptr_t kRestarts = uintptr_t{1} << 63;  // no address has this bit
constinit std::array<std::atomic<uintptr_t>, kMostHandlers> g_handlers{};

/// Returns true for a signal by which the kernel reports what the running code has done. Where fibers run, it ends no wait.
bool isFault(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGTRAP || signal == SIGSYS;
}

/// Called in a forked child whose handler has interrupted the loop of a worker, with the handler's arguments. The loop is the
/// parent's, and so are its epoll and all that it would run. Returns only if the loop has to go on to the end of a switch.
void leaveLoop(int signal, bool restarts, [[maybe_unused]] const void* context) {
  Interruptible::handlerRan(signal, restarts);
#ifdef __x86_64__  // where every handler gets the context
  const sigset_t& before = static_cast<const ucontext_t*>(context)->uc_sigmask;
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof(uint64_t));
#endif
  Worker::leaveLoopInChild();
}

/// Ends the wait that the handler ends. Of the threads of a process, the kernel prefers main for a signal that is sent to no
/// thread.
void endWait(int signal, bool restarts) {
#ifdef SYLAR_THREAD_POINTER
  if (Interruptible::letsThrough()) return;  // it ends the call that it runs in
  if (FiberThread::mine().isFiber() && !FiberThread::mine().gets_signal) {
    const auto end = [](long ran) { Interruptible::handlerRan(static_cast<int>(ran >> 1), (ran & 1) != 0); };
    asThread(threadOfWorker(), end, (long{signal} << 1) | (restarts ? 1 : 0));
    return;
  }
#endif
  Interruptible::handlerRan(signal, restarts);
}

#ifdef __clang__
#define SYLAR_CALLS_AS_THE_KERNEL_ clang::no_sanitize("function")
#else
#define SYLAR_CALLS_AS_THE_KERNEL_
#endif

/// Arguments that the handler does not take (SA_SIGINFO) are passed on all the same, as the kernel does.
[[gnu::noinline, SYLAR_CALLS_AS_THE_KERNEL_]] void runHandler(size_t index, int signal, siginfo_t* info, void* context) {
  const uintptr_t handler = g_handlers[index].load(std::memory_order_acquire);
  const bool restarts = (handler & kRestarts) != 0;
  {
    const HandlerScope scope;
    reinterpret_cast<Handler>(handler & ~kRestarts)(signal, info, context);
    if (sys::inForkedChild() && scope.interruptsLoop()) leaveLoop(signal, restarts, context);
  }
  if (isFault(signal) && !onThreadStack()) return;
  endWait(signal, restarts);
#ifdef SYLAR_THREAD_POINTER
  if (FiberThread::mine().isFiber()) raiseSent();  // what came while the handler's mask held it back
#endif
}

template <size_t kIndex>
void trampoline(int signal, siginfo_t* info, void* context) {
  runHandler(kIndex, signal, info, context);
}

template <size_t... kIndex>
constexpr std::array<Handler, kMostHandlers> makeTrampolines(std::index_sequence<kIndex...>) {
  return {trampoline<kIndex>...};
}
constexpr std::array<Handler, kMostHandlers> kTrampolines = makeTrampolines(std::make_index_sequence<kMostHandlers>());

/// Returns the program's handler if this is a trampoline, or else the same.
uintptr_t addressOf(uintptr_t installed) {
  const auto* const found = std::ranges::find(kTrampolines, reinterpret_cast<Handler>(installed));
  if (found == kTrampolines.end()) return installed;
  return g_handlers[static_cast<size_t>(found - kTrampolines.begin())].load(std::memory_order_acquire) & ~kRestarts;
}

/// `Function` is one of the two types that a handler may have.
template <class Function>
Function handlerOf(Function installed) {
  return reinterpret_cast<Function>(addressOf(reinterpret_cast<uintptr_t>(installed)));
}

/// Returns what to install for a handler of the program. SIG_DFL, SIG_IGN and their like stay as they are.
template <class Function>
Function toInstall(Function handler, bool restarts) {
  constexpr uintptr_t kLeastAddress = 4096;
  const uintptr_t address = addressOf(reinterpret_cast<uintptr_t>(handler));
  if (address < kLeastAddress || address >= kRestarts) return handler;
  const uintptr_t wanted = address | (restarts ? kRestarts : 0);
  for (size_t i = 0; i < kMostHandlers; ++i) {
    uintptr_t present = g_handlers[i].load(std::memory_order_acquire);
    if (present == 0 && g_handlers[i].compare_exchange_strong(present, wanted, std::memory_order_acq_rel)) present = wanted;
    if (present == wanted) return reinterpret_cast<Function>(reinterpret_cast<uintptr_t>(kTrampolines[i]));
  }
  return handler;
}

/// The signals for which siginterrupt has asked that signal() install handlers without SA_RESTART.
constinit std::atomic<uint64_t> g_interrupting{0};
uint64_t bitOf(int signal) { return signal >= 1 && signal < NSIG ? uint64_t{1} << (signal - 1) : 0; }

/// Returns true for a signal that the library has for itself. A program that sets all signals believes that it has set this one.
bool isReserved([[maybe_unused]] int signal) {
#ifdef SYLAR_THREAD_POINTER
  return (g_never_blocked.load(std::memory_order_relaxed) & bitOf(signal)) != 0;
#else
  return false;
#endif
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
  struct sigaction ours;
  if (isReserved(signal)) {
    if (old != nullptr) *old = {};
    return 0;
  }
  if (action != nullptr) {
    ours = *action;
    ours.sa_sigaction = toInstall(action->sa_sigaction, (action->sa_flags & SA_RESTART) != 0);
  }
  const int result = real::sigaction(signal, action != nullptr ? &ours : nullptr, old);
  if (result == 0 && old != nullptr) old->sa_sigaction = handlerOf(old->sa_sigaction);
  return result;
}
int __sigaction(int signal, const struct sigaction* action, struct sigaction* old) { return sigaction(signal, action, old); }

sighandler_t signal(int signal, sighandler_t handler) noexcept {
  if (isReserved(signal)) return SIG_DFL;
  const bool restarts = (g_interrupting.load(std::memory_order_relaxed) & bitOf(signal)) == 0;
  return handlerOf(real::signal(signal, toInstall(handler, restarts)));
}
sighandler_t bsd_signal(int number, sighandler_t handler) { return signal(number, handler); }
sighandler_t ssignal(int number, sighandler_t handler) noexcept { return signal(number, handler); }

sighandler_t sysv_signal(int signal, sighandler_t handler) noexcept {
  if (isReserved(signal)) return SIG_DFL;
  return handlerOf(real::sysv_signal(signal, toInstall(handler, false)));
}
sighandler_t __sysv_signal(int signal, sighandler_t handler) noexcept { return sysv_signal(signal, handler); }

sighandler_t sigset(int signal, sighandler_t handler) noexcept {
  if (isReserved(signal)) return SIG_DFL;
  return handlerOf(real::sigset(signal, handler == SIG_HOLD ? handler : toInstall(handler, false)));
}

int siginterrupt(int signal, int interrupts) noexcept {
  const int result = real::siginterrupt(signal, interrupts);
  if (result != 0) return result;
  if (interrupts != 0) {
    g_interrupting.fetch_or(bitOf(signal), std::memory_order_relaxed);
  } else {
    g_interrupting.fetch_and(~bitOf(signal), std::memory_order_relaxed);
  }
  struct sigaction action;
  return sigaction(signal, nullptr, &action) == 0 ? sigaction(signal, &action, nullptr) : 0;  // another trampoline
}

}  // extern "C"
