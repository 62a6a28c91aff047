#include "sylar/hook/thread/interrupt.h"

#include "sylar/fiber/thread_pointer.h"

#ifdef SYLAR_THREAD_POINTER

#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "sylar/base/sys.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/sent_signals.h"
#include "sylar/hook/thread/fiber_thread.h"

namespace sylar::detail {
namespace {

int signalNumber() { return SIGRTMAX - 5; }

/// Runs under the mask of the call that it has interrupted, so this lets through what the call does.
void interrupt(int) {
  uint64_t blocked = 0;
  sys::call(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &blocked, sizeof blocked);
  raiseOfSent(~blocked);
}

}  // namespace

void interruptRunning(pid_t worker, int signal) {
  struct sigaction present {};
  struct sigaction wanted {};
  if (real::sigaction(signal, nullptr, &wanted) != 0 || real::sigaction(signalNumber(), nullptr, &present) != 0) return;
  if (present.sa_handler != SIG_DFL && present.sa_handler != &interrupt) return;  // the program's
  wanted.sa_handler = &interrupt;
  wanted.sa_flags &= SA_RESTART;
  ::sigemptyset(&wanted.sa_mask);
  real::sigaction(signalNumber(), &wanted, nullptr);
  sys::call(SYS_tgkill, ::getpid(), worker, signalNumber());
}

}  // namespace sylar::detail

#endif
