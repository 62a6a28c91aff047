// Internal. The signals that pthread_kill has sent to a thread that is a fiber, and that it has not got (FiberThread::sent).
#pragma once

#include <signal.h>

#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/fiber/thread_pointer.h"

namespace sylar::detail {

#ifdef SYLAR_THREAD_POINTER

/// Sends `signal` to the calling thread, whose handler runs here, and ends its wait.
void raiseHere(long signal);
/// Raises those of `signals` that were sent to the calling thread. One that it blocks is then pending for the kernel.
void raiseOfSent(uint64_t signals);
/// Raises what was sent to the calling thread and it does not block.
void raiseSent();
/// Returns true if one of those was sent to the calling thread that `mask` does not block.
bool isSentThrough(const sigset_t& mask);
/// Makes the first of them pending for the kernel, so that its next call under `mask` takes it. The thread must block it.
void passSentToKernel(const sigset_t& mask);
/// Takes one that is in `set`, as sigtimedwait(2) does. Returns its number, or 0 if there is none. `info` may be null.
int takeSent(const sigset_t& set, siginfo_t* info);

#else

inline bool isSentThrough(const sigset_t&) { return false; }
inline void passSentToKernel(const sigset_t&) {}
inline int takeSent(const sigset_t&, siginfo_t*) { return 0; }

#endif

}  // namespace sylar::detail
