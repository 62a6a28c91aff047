// Internal. The atomics and locks of the core protocols as a policy class, so that the model checker can run the very same
// headers with its own. Protocol headers are `template <class Memory = StdMemory>`.
#pragma once

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"
#include "sylar/clock.h"

namespace sylar::detail {

/// Tells a thread's signal handlers that they interrupted code on descriptor entries, which they must not wait for.
struct ThreadMarks {
  unsigned inside = 0;               ///< number of sections and pins that the thread holds
  std::atomic<void*> left{nullptr};  ///< entries whose close a handler left to the thread
};
[[gnu::tls_model("initial-exec")]] inline constinit thread_local ThreadMarks t_marks;

struct StdMemory {
  template <class T>
  using Atomic = std::atomic<T>;
  using Mutex = OsMutex;             ///< may be held over a system call
  using Spinlock = sylar::Spinlock;  ///< held for a few instructions

  /// Accompanies data that is not atomic. Does nothing here; in the model, accesses to it must be ordered.
  struct Touched {
    void write() {}
  };

  /// Pauses between two reads of a word that another thread is about to change.
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  /// Gives up the processor between two such reads, if the change may take longer.
  static void yield() { sys::call(SYS_sched_yield); }

  static void lightBarrier() { sys::lightBarrier(); }
  [[nodiscard]] static bool heavyBarrier() { return sys::heavyBarrier(); }

  /// Blocks while `word` == `expected`, until a wake; may also return spuriously.
  static void futexWait(const std::atomic<uint32_t>& word, uint32_t expected) { sys::futexWait(word, expected, kNever); }
  /// The same. Returns false if `deadline` has passed.
  [[nodiscard]] static bool futexWaitUntil(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) {
    return sys::futexWait(word, expected, deadline.ns()) != -ETIMEDOUT;
  }
  static void futexWakeOne(const std::atomic<uint32_t>& word) { sys::futexWake(word, 1); }
  static void futexWakeAll(const std::atomic<uint32_t>& word) { sys::futexWake(word, INT_MAX); }

  static ThreadMarks& marks() { return t_marks; }
  /// Returns the id of the calling thread, which is never 0.
  static uint32_t self() { return static_cast<uint32_t>(sys::threadId()); }
};

}  // namespace sylar::detail
