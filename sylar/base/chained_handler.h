// Internal. A signal handler that passes signals it does not deal with on to the previously installed handler.
//
// Thread safety: install() is called once, before any passOn(), and once more in the child of a fork that has met it halfway.
// passOn() may run in the handler of any thread.
#pragma once

#include <pthread.h>

#include <csignal>

#include "sylar/base/internal.h"

namespace sylar::detail {

inline void unblockSignal(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

class ChainedHandler {
 public:
  /// Installs `handler`, which runs on the alternate signal stack if its thread has one.
  void install(int signal, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction ours {};
    ours.sa_sigaction = handler;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    struct sigaction present {};
    sigaction(signal, nullptr, &present);
    if (present.sa_sigaction != handler) m_previous = present;  // saved before ours can run
    sigaction(signal, &ours, nullptr);
  }

  /// Does what the previous handler, with its mask and flags, or the default action would have done. Source: sigaction(2).
  void passOn(int signal, siginfo_t* info, void* context) {
    const struct sigaction action = m_previous;
    const bool sent = info->si_code <= 0;  // by a process; a signal that the kernel raised cannot be ignored
    if (action.sa_handler == SIG_IGN && sent) return;
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) {
      struct sigaction standard {};
      standard.sa_handler = SIG_DFL;
      sigaction(signal, &standard, nullptr);
      raise(signal);  // delivered on the return from here, at the place of the fault
      return;
    }
    if ((action.sa_flags & SA_RESETHAND) != 0) m_previous.sa_handler = SIG_DFL;
    if ((action.sa_flags & SA_NODEFER) != 0) unblockSignal(signal);
    pthread_sigmask(SIG_BLOCK, &action.sa_mask, nullptr);  // the return from the signal restores it
    if ((action.sa_flags & SA_SIGINFO) != 0) {
      action.sa_sigaction(signal, info, context);
    } else {
      action.sa_handler(signal);
    }
  }

 private:
  struct sigaction m_previous {};
};

}  // namespace sylar::detail
