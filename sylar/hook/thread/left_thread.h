// Internal. A thread of libc's whose kernel thread has left, so that fibers can run it.
//
// libc makes the thread, with a kernel thread that has nothing to do but to leave: it notes where it stands, on the new
// stack, and exits behind libc's back. libc's record of the thread, its stack and its thread_local variables stay, and wait for
// whoever runs them. That is a fiber: it takes over the stack and sets the thread pointer, and so is the thread for all compiled
// code. Whenever it gives its worker back, the worker's own thread pointer is set (ThreadFibers::leaveSpecially).
//
// When the thread's function is over, or pthread_exit or a cancel has unwound it, a new kernel thread takes over stack and record,
// and ends as threads do: it runs the destructors, gives back the memory, and tells libc's joiners.
//
//   creator (a fiber)            kernel thread 1          fiber              kernel thread 2
//   pthread_create ------------> begin(), leaves
//   runs the thread -------------------------------------> goes on in begin():
//                                                          the thread's function
//                                                          leaves -----------> goes on in begin(): end of the thread
//
// Source: pthread_create(3), clone(2), set_tid_address(2); glibc, nptl/pthread_create.c.
#pragma once

#include <pthread.h>

#include <span>

#include "sylar/base/internal.h"
#include "sylar/base/os_mutex.h"
#include "sylar/fiber/borrowed_thread.h"
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

/// A kernel thread needs this to end the thread. It lies in the first frame of the thread.
struct LeftThread : BorrowedThread {
  int* id_address;  ///< what the kernel clears at the end of a kernel thread, for libc's joiners
  void* robust_list;
  size_t robust_size;
};

/// The function with which the thread begins. It gets null if its kernel thread could not leave, so that it is one as any other.
struct ThreadStart {
  void* (*function)(LeftThread*, void* argument);
  void* argument;
  const char* name;  ///< 16 bytes
};

/// Makes a thread as pthread_create does, and waits until its kernel thread has left. If that could not, `thread` is null, and the
/// thread is one as any other. Returns 0 or an error. May suspend: no.
int makeLeftThread(pthread_t* id, LeftThread** thread, const pthread_attr_t* attributes, const ThreadStart& start);

/// Makes a kernel thread for what is left of a thread that no fiber will run any more. May suspend: yes.
void endByKernelThread(LeftThread& thread);

#endif

}  // namespace sylar::detail
