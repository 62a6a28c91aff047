// Internal. The runner's one trick: the stack on which the program's main will run becomes the stack of a fiber, and the loop of
// the scheduler gets a stack of its own.
//
// So main keeps the thread and the stack that the kernel gave it, with its limits and its growth, and everything that asks for
// them (pthread_getattr_np, debuggers) finds what it expects. The fiber ends with the process: exit
// handlers run in it, too.
#pragma once

#include "sylar/base/internal.h"

namespace sylar::detail {

/// The environment variable by which sylar-run asks for threads that are fibers: "fibers".
inline constexpr char kThreadsVariable[] = "SYLAR_RUN_THREADS";

/// Makes the calling thread the worker of a new IOManager, and the caller a fiber on it. `stack_top` is the upper end of the
/// stack that the caller is on. Changes nothing if memory or descriptors do not suffice. To be called once.
void becomeFiber(void* stack_top);

/// To be called when main is left, also by pthread_exit, which must not end the thread as long as it is that of others.
void leaveMain();

}  // namespace sylar::detail
