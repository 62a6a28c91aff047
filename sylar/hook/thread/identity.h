// Internal. Threads of libc's that fibers borrow, so that to a library each fiber is a thread: with its own thread_local variables,
// keys, errno, exceptions, locale and signal mask, on a stack of which libc knows the bounds (SchedulerOptions::identity).
//
// To libraries they are a pool of threads. What one leaves in its thread_local variables is found by the next fiber that gets the
// thread, and its destructors run when the thread ends. What belongs to the task is set back: mask, locale, cancel state and name.
//
// A borrowed thread is one whose kernel thread has left (left_thread.h). A free one stands in serve(), and goes on there when a
// fiber runs it. A worker takes the one that it gave back last, whose memory is the warmest.
#pragma once

#include "sylar/base/internal.h"
#include "sylar/fiber/thread_pointer.h"

namespace sylar::detail {

/// Calls `body(argument)` in the running fiber, as a thread that it borrows meanwhile. `body` throws nothing. If it calls
/// pthread_exit, that ends the thread and returns here. Makes a thread if none is free; if that fails, throws
/// std::bad_alloc or, where libc's threads cannot be run by fibers at all, calls `body` as the worker. May suspend: as `body`.
void callAsBorrowedThread(void (*body)(void*), void* argument);

}  // namespace sylar::detail
