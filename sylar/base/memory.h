// Internal. What the core protocols are made of: atomics and locks as a policy, so that the model checker can run the very
// same headers over its own. Protocol headers are `template <class Memory = StdMemory>`.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>

#include "sylar/base/clock.h"
#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"

namespace sylar {

/// Where a thread stands in entries of descriptors: for its signal handlers, which must not wait for what they interrupted.
struct ThreadMarks {
  unsigned inside = 0;               ///< sections and pins that it holds
  std::atomic<void*> left{nullptr};  ///< entries whose close a handler left to it
};
[[gnu::tls_model("initial-exec")]] inline constinit thread_local ThreadMarks t_marks;

struct StdMemory {
  template <class T>
  using Atomic = std::atomic<T>;
  using Mutex = OsMutex;             ///< may be held over a system call
  using Spinlock = sylar::Spinlock;  ///< held for a few instructions

  /// Between two looks at a word that another thread is about to change.
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  /// The same, where that may take longer.
  static void yield() { sys::call(SYS_sched_yield); }

  /// Blocks while `word` == `expected`, until a wake or without reason.
  static void futexWait(const std::atomic<uint32_t>& word, uint32_t expected) { sys::futexWait(word, expected, kNever); }
  static void futexWakeAll(const std::atomic<uint32_t>& word) { sys::futexWake(word, INT_MAX); }

  static ThreadMarks& marks() { return t_marks; }
  /// Who the calling thread is; never 0.
  static uint32_t self() { return static_cast<uint32_t>(sys::threadId()); }
};

}  // namespace sylar
