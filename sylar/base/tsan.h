// Internal. Tells ThreadSanitizer about fibers in its strict mode. In other builds these functions do nothing.
//
// In its usual mode each switch orders what ran before it and what runs after it. So a worker's loop orders all fibers of its
// thread, its queues order most fibers of different threads, and a race is seen only if the schedule of this run happened to
// leave it open. In strict mode (SYLAR_TSAN_STRICT=1 in the environment) a switch between a loop and a fiber orders nothing.
// Fibers then count as concurrent even on one thread, and only the program's own actions order them: locks, atomics, schedule(),
// a wake, join(), the beginning and the end of a fiber, resume() and yield() by hand.
//
// The library's data of a thread is safe because the fibers of a thread run one after the other, which strict mode does not
// believe. Code that writes such data therefore holds an Exempt. It is checked in the usual mode.
#pragma once

#include "sylar/base/sanitizers.h"

namespace sylar::tsan {

#ifdef SYLAR_TSAN

/// Returns true in strict mode, which is read from the environment before main.
bool strict();

/// Orders everything before release(x) before everything after a later acquire(x). Strict mode only.
void release(const void* at);
void acquire(const void* at);

/// While it exists, plain accesses of this fiber or thread are not checked; its atomics and locks still order. Strict mode only.
class Exempt {
 public:
  Exempt();
  ~Exempt();
  Exempt(const Exempt&) = delete;
  Exempt& operator=(const Exempt&) = delete;
};

/// Must be called on each thread that runs fibers, because its errno belongs to the running fiber and each switch carries it
/// over.
void exemptErrno();

#else

inline constexpr bool strict() { return false; }
inline void release(const void*) {}
inline void acquire(const void*) {}
struct Exempt {
  Exempt() {}  // not trivial, so that compilers do not call a variable of it unused
};
inline void exemptErrno() {}

#endif

}  // namespace sylar::tsan
