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
/// Makes those that `mask` does not block, though the thread does, pending for the kernel, so that its next call can take them.
void passSentToKernel(const sigset_t& mask);

#else

inline void passSentToKernel(const sigset_t&) {}

#endif

}  // namespace sylar::detail
