// Internal. Lets no thread that is a fiber keep the worker for itself: it computes for one tick of
// the kernel (4 ms, usually) while others wait for their turn.
//
// A clock of the CPU time that the worker has used sends a signal, whose handler gives the worker to the next fiber, right where
// the program is. That is a place between any two instructions, as it is for threads. It is not done in code that may hold a lock
// of libc, for which the other fibers would wait in the kernel: in libc and the loader, in whatever the program has for malloc, in
// the hooks, in calls that run with hooks off, and in signal handlers. There the handler leaves it to the next signal. It does not
// know who has called the interrupted code. So a callback that computes while libc holds a lock for it (dl_iterate_phdr,
// fopencookie, a constructor of dlopen) may be suspended, and whoever wants that lock then holds the worker.
//
// Source: timer_create(2), signal(7).
#pragma once

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Begins, for the calling thread, whose loop must not run yet. Without a timer, nothing is preempted.
void preemptFiberThreads();

}  // namespace sylar::detail
