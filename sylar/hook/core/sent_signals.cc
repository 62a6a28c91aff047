#include "sylar/hook/core/sent_signals.h"

#ifdef SYLAR_THREAD_POINTER

#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstring>

#include "sylar/base/sys.h"
#include "sylar/hook/core/thread_record.h"

namespace sylar::detail {

namespace {

/// Returns the kernel's part of a set.
uint64_t bitsOf(const sigset_t& set) {
  uint64_t bits;
  std::memcpy(&bits, &set, sizeof bits);
  return bits;
}

/// Takes the first of `signals` that was sent to the calling thread. Returns its number, or 0.
int takeFirst(uint64_t signals) {
  std::atomic<uint64_t>& sent = FiberThread::mine().sent;
  uint64_t now = sent.load(std::memory_order_seq_cst);
  while ((now & signals) != 0) {
    const uint64_t first = (now & signals) & -(now & signals);
    if (sent.compare_exchange_weak(now, now & ~first, std::memory_order_seq_cst)) return std::countr_zero(first) + 1;
  }
  return 0;
}

}  // namespace

void raiseOfSent(uint64_t signals) {
  while (const int signal = takeFirst(signals)) raiseHere(signal);
}

void raiseSent() { raiseOfSent(~keptSignalMask()); }

bool isSentThrough(const sigset_t& mask) {
  return (FiberThread::mine().sent.load(std::memory_order_seq_cst) & ~bitsOf(mask)) != 0;
}

void passSentToKernel(const sigset_t& mask) {
  if (const int signal = takeFirst(~bitsOf(mask))) raiseHere(signal);
}

int takeSent(const sigset_t& set, siginfo_t* info) {
  const int signal = takeFirst(bitsOf(set));
  if (signal != 0 && info != nullptr) {
    *info = {};
    info->si_signo = signal;
    info->si_code = SI_USER;  // which glibc makes of SI_TKILL here
    info->si_pid = ::getpid();
    info->si_uid = ::getuid();
  }
  return signal;
}

void raiseHere(long signal) {
  bool& gets_signal = FiberThread::mine().gets_signal;
  gets_signal = true;
  sys::call(SYS_tgkill, ::getpid(), sys::call(SYS_gettid), signal);
  gets_signal = false;
}

}  // namespace sylar::detail

#endif
