#include "sylar/hook/core/sent_signals.h"

#ifdef SYLAR_THREAD_POINTER

#include <unistd.h>

#include <cstring>

#include "sylar/base/sys.h"
#include "sylar/hook/core/thread_record.h"

namespace sylar::detail {

void raiseOfSent(uint64_t signals) {
  std::atomic<uint64_t>& sent = FiberThread::mine().sent;
  if ((sent.load(std::memory_order_seq_cst) & signals) == 0) return;
  for (int signal = 1; signal < NSIG; ++signal) {
    const uint64_t bit = signals & (uint64_t{1} << (signal - 1));
    if ((sent.fetch_and(~bit, std::memory_order_seq_cst) & bit) != 0) raiseHere(signal);
  }
}

void raiseSent() { raiseOfSent(~keptSignalMask()); }

void passSentToKernel(const sigset_t& mask) {
  uint64_t passed;  // the kernel's part
  std::memcpy(&passed, &mask, sizeof passed);
  raiseOfSent(~passed);
}

void raiseHere(long signal) {
  bool& gets_signal = FiberThread::mine().gets_signal;
  gets_signal = true;
  sys::call(SYS_tgkill, ::getpid(), sys::call(SYS_gettid), signal);
  gets_signal = false;
}

}  // namespace sylar::detail

#endif
