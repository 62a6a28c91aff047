// How a test keeps a worker: a fiber that computes.
#pragma once

#include "sylar/base/sys.h"

namespace sylar::test {

/// Keeps the calling thread until `over` returns true. Other threads get the processor, other fibers of the worker do not.
template <class Over>
void busyUntil(Over over) {
  while (!over()) sys::call(SYS_sched_yield);
}

}  // namespace sylar::test
