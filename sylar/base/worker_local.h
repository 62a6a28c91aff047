// Internal. A thread_local variable that belongs to the worker, reached by code that runs under another thread pointer. A fiber
// that has borrowed a thread (sylar/hook/thread/identity.h) has copies of all thread_local variables, and the worker's beside.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// The distance from the running copies to the worker's. It is 0, except in a borrowed thread that a worker runs.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local ptrdiff_t t_to_worker = 0;

/// Returns the worker's copy of a thread_local variable, of which `own` is the running one.
template <class T>
[[gnu::always_inline]] inline T& ofWorker(T& own) {
  uintptr_t address = reinterpret_cast<uintptr_t>(&own) + static_cast<uintptr_t>(t_to_worker);
  __asm__("" : "+r"(address));  // which compilers take for one outside of `own`
  return *reinterpret_cast<T*>(address);
}

}  // namespace sylar::detail
