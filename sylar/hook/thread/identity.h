// Internal. How fibers borrow threads of libc's (sylar/fiber/borrowed_thread.h), and how those are made.
//
// A free one stands in serve(), and goes on there when a fiber runs it. Unstarted fibers for which there is none wait in their
// scheduler (ThreadAwaiter), where an idle worker gets them when one has been made.
#pragma once

#include <atomic>
#include <cstddef>

#include "sylar/base/internal.h"
#include "sylar/fiber/thread_pointer.h"

namespace sylar::detail {

#ifdef SYLAR_THREAD_POINTER
extern constinit std::atomic<size_t> g_lending;  ///< how many schedulers lend threads
void callAsBorrowedThread(void (*body)(void*), void* argument);
/// Returns true if fibers of this process may borrow threads.
inline bool threadsAreLent() { return g_lending.load(std::memory_order_relaxed) > 0; }
/// Ends the free threads that nobody has needed since the last call, as happens by itself after some seconds. For tests.
void endUnusedThreads();
#else
inline void callAsBorrowedThread(void (*body)(void*), void* argument) { body(argument); }
inline bool threadsAreLent() { return false; }
inline void endUnusedThreads() {}
#endif

/// Calls `body()` in the running fiber, which borrows a thread for the call. A fiber that has a thread of its own already borrows
/// none, nor does one whose scheduler's fibers run as their worker. `body` throws nothing. If it calls pthread_exit, that ends the
/// thread and returns here. Throws std::bad_alloc if no thread is free and none can be made. May suspend: yes.
template <class Body>
void asBorrowedThread(Body body) {
  callAsBorrowedThread([](void* one) { (*static_cast<Body*>(one))(); }, &body);
}

}  // namespace sylar::detail
