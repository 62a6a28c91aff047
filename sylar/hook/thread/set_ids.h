// Internal. Calls that change a process's user and groups, where threads are fibers.
//
// The kernel has these for each thread, so libc sends each of its threads a signal (SIGSETXID, 33), whose handler makes the call
// there and takes a mark off the record of the thread that it runs in. libc repeats this until no marked thread can be signalled. A
// worker that runs a thread which is a fiber would take the mark off that thread's record, never off its own, and libc would not
// end.
//
// Source: setuid(2), "C library/kernel differences"; glibc, nptl/nptl_setxid.c.
#pragma once

#include <sys/types.h>

#include "sylar/base/internal.h"
#include "sylar/fiber/thread_pointer.h"

namespace sylar::detail {

#ifdef SYLAR_THREAD_POINTER

/// Lets libc's handler of SIGSETXID run as the worker's own thread. Call it when libc has made a thread, since it installs its
/// handler then. Any thread.
void hearSetIdsAsWorker();
/// Interrupts the call of libc in which the kernel thread of a worker is, by that signal, which no program can block or wait for.
/// The fiber that runs there raises what was sent to it and the call lets through. A call that signals restart goes on. Any thread,
/// and signal handlers.
void interruptThread(pid_t thread);

#endif

}  // namespace sylar::detail
