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
/// fiber of the calling worker that has begun and not left, or the thread of that worker. May suspend: no.
void asThread(pthread_t thread, void (*act)(long), long argument);
/// Has `thread`, which is a fiber, take what was sent to it: at once if the calling fiber's worker runs it, else later. Any thread,
/// and signal handlers. Interrupts a call in which the fiber holds its worker. May suspend: no.
void tell(pthread_t thread);
/// Lets `thread`, which is suspended, take what was sent to it, if the calling worker has run it.
void takeIfHere(pthread_t thread);
/// Returns the thread of the worker of the calling fiber, which is main's as well.
pthread_t threadOfWorker();

#endif

}  // namespace sylar::detail
