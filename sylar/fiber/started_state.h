// Internal. The state of a fiber that only it and its worker need, from its start to its end.
//
// It lies at the top of the stack that the fiber has begun on. That page is resident anyway, so a suspended fiber takes no more
// memory for it, and the next fiber on the stack finds it in the cache. A fiber may go on to another stack, as main and threads
// that are fibers do; its first one stays with it. Other threads may look at it only while something keeps the fiber from ending.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/fiber/held_locks.h"
#include "sylar/fiber_local.h"

namespace sylar {
class Fiber;
namespace this_fiber {
class CancelScope;
}
}  // namespace sylar

namespace sylar::detail {

struct FiberCore;

/// Its alignment is that of frames, which begin below it.
struct alignas(16) StartedState {
  explicit StartedState(FiberCore& its_core) : core(its_core) {}

  FiberCore& core;
  pid_t thread = 0;               ///< the id by which libc knows the thread as which it has begun, or 0 if that is the worker's
  uintptr_t thread_pointer = 0;   ///< of the thread as which it runs, or 0 if that is the worker's
  Fiber* joins = nullptr;         ///< the fiber that this one waits for in join(); for the stop detection as well
  FiberLocals* locals = nullptr;  ///< the values of FiberLocal, null if there are none
  // The innermost scopes. Not initialised, because most fibers are never in one, and the core says whether this one is.
  int64_t scope_deadline_ns;
  this_fiber::CancelScope* cancel_scope;
  HeldLocks held;
  uint64_t trim_mark = 0;  ///< StackTrimmer: twice the epoch of the last wait that it has seen, plus 1 if it has trimmed that
};

}  // namespace sylar::detail
