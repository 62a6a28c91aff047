// Internal. A thread of libc's that no kernel thread runs, but a fiber (ThreadsAreFibers).
//
// libc makes the thread, with a kernel thread that has nothing to do but to leave: it notes where it stands, on the new
// stack, and exits behind libc's back. libc's record of the thread, its stack and its thread_local variables stay, and wait for
// whoever runs them. That is a fiber: it takes over the stack and sets the thread pointer, and so is the thread for all compiled
// code. Whenever it gives its worker back, it sets the worker's own thread pointer (ThreadFibers::leaveSpecially).
//
// When the thread's function is over, or pthread_exit or a cancel has unwound it, a new kernel thread takes over stack and record,
// and ends as threads do: it runs the destructors, gives back the memory, and tells libc's joiners.
//
//   creator (a fiber)            kernel thread 1          fiber              kernel thread 2
//   pthread_create ------------> begin(), leaves
//   schedules the fiber ---------------------------------> goes on in begin():
//                                                          the program's function
//                                                          leaves -----------> goes on in begin(): end of the thread
//
// Source: pthread_create(3), clone(2), set_tid_address(2); glibc, nptl/pthread_create.c.
#pragma once

#include <pthread.h>

#include <span>

#include "sylar/base/internal.h"
#include "sylar/base/os_mutex.h"
#include "sylar/fiber/thread_pointer.h"

namespace sylar::detail {

#ifdef SYLAR_THREAD_POINTER

/// Held while a kernel thread exits behind libc's back, or takes over a thread at its end. Who makes libc signal every thread and
/// wait for each holds it as well. Signals are blocked under it.
extern constinit OsMutex g_births;
/// Returns the kernel threads that end threads, and are perhaps gone. An unused entry is 0.
std::span<const pid_t> endingThreads() SYLAR_REQUIRES(g_births);
/// Returns true if this process has that kernel thread.
bool exists(pid_t kernel_thread);

/// Returns true if the caller is a fiber whose threads are to be fibers.
bool makesFiberThreads();
/// Does what pthread_create does. Only where makesFiberThreads(). May suspend: no.
int createFiberThread(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*), void* argument);

/// Called when main is left. If pthread_exit does that, waits until no thread is left that is a fiber. May suspend: yes.
void awaitThreadsOfMain();

/// Calls `act` as if the kernel thread were running `thread`: with its thread_local variables and its signal mask. `thread` is a
/// fiber that has not left, or that of the calling fiber's worker. If another worker runs it, that one makes the call, later. Does
/// nothing outside workers, nor if the thread has not begun. May suspend: no.
void asThread(pthread_t thread, void (*act)(long), long argument);
bool hasBegun(pthread_t thread);
/// Sends `signal` to the calling thread, whose handler runs here, and ends its wait.
void raiseHere(long signal);
/// Raises what was sent to the calling thread by pthread_kill while it could not get it.
void raiseSent();
/// Returns the thread of the worker of the calling fiber, which is main's as well.
pthread_t threadOfWorker();

#endif

}  // namespace sylar::detail
