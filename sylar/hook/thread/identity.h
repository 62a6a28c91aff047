// Internal. How fibers borrow threads of libc's (sylar/fiber/borrowed_thread.h), and how those are made.
//
// A free one stands in serve(), and goes on there when a fiber runs it. Unstarted fibers for which there is none wait in their
// scheduler (ThreadAwaiter), where an idle worker gets them when one has been made.
#pragma once

#include "sylar/base/internal.h"
#include "sylar/fiber/thread_pointer.h"

namespace sylar::detail {

#ifdef SYLAR_THREAD_POINTER

/// Calls `body(argument)` in the running fiber, as a thread that it borrows meanwhile. Calls it as it is if it runs as a thread of
/// its own already, or if its scheduler's fibers run as their worker. `body` throws nothing. If it calls pthread_exit, that ends
/// the thread and returns here. Throws std::bad_alloc if no thread is free and none can be made. May suspend: yes.
void callAsBorrowedThread(void (*body)(void*), void* argument);

#else

inline void callAsBorrowedThread(void (*body)(void*), void* argument) { body(argument); }

#endif

}  // namespace sylar::detail
