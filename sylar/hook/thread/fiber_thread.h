// Internal. A thread of the program's that a fiber runs for its whole life, and no kernel thread (ThreadsAreFibers). left_thread.h
// says how that comes about.
#pragma once

#include <pthread.h>

#include "sylar/base/internal.h"
#include "sylar/fiber/thread_pointer.h"

namespace sylar::detail {

#ifdef SYLAR_THREAD_POINTER

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
