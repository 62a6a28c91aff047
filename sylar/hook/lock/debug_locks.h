// Internal. What debug builds note of the pthread mutexes that fibers hold (debug_locks.cc). In other builds it does nothing.
#pragma once

#include <pthread.h>

namespace sylar::debug_locks {

#ifdef SYLAR_DEBUG_LOCKS
/// Notes a lock whose result is `error`, made by the function with the frame `frame`.
void noteLocked(int error, const pthread_mutex_t* mutex, void* frame);
void noteUnlocked(const pthread_mutex_t* mutex);
#else
inline void noteLocked(int, const pthread_mutex_t*, void*) {}
inline void noteUnlocked(const pthread_mutex_t*) {}
#endif

}  // namespace sylar::debug_locks
