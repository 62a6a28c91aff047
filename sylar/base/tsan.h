// Internal. What ThreadSanitizer is told about fibers in its strict mode. In other builds there is nothing here.
//
// In its usual mode each switch orders what ran before it and what runs after it. So a worker's loop orders all fibers of its
// thread, and its queues order most fibers of different threads: a race is seen only if the schedule of this run happened to
// leave it open. In strict mode, SYLAR_TSAN_STRICT=1 in the environment, a switch between a loop and a fiber orders nothing.
// Fibers count as concurrent, on one thread, too, and only what the program does orders them: locks, atomics, schedule(), a wake,
// join(), the beginning and the end of a fiber, resume() and yield() by hand.
//
// What the library keeps for a thread is safe for the very reason that the mode does not believe: whoever writes it holds an
// Exempt. It is checked in the usual mode.
#pragma once

#include "sylar/base/sanitizers.h"

namespace sylar::tsan {

#ifdef SYLAR_TSAN

/// Read from the environment before main.
bool strict();

/// Orders everything before release(x) before everything after a later acquire(x). Strict mode only.
void release(const void* at);
void acquire(const void* at);

/// While it exists, plain accesses of this fiber or thread are not looked at; its atomics and locks order as ever. Strict mode
/// only.
class Exempt {
 public:
  Exempt();
  ~Exempt();
  Exempt(const Exempt&) = delete;
  Exempt& operator=(const Exempt&) = delete;
};

/// Must be called on each thread that runs fibers: its errno belongs to the fiber that runs, and a switch carries it over.
void exemptErrno();

#else

inline constexpr bool strict() { return false; }
inline void release(const void*) {}
inline void acquire(const void*) {}
struct Exempt {
  Exempt() {}  // not trivial, so that nobody calls a variable of it unused
};
inline void exemptErrno() {}

#endif

}  // namespace sylar::tsan
