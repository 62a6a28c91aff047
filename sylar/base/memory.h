// Internal. What the core protocols are made of: atomics and locks as a policy, so that the model checker can run the very
// same headers over its own. Protocol headers are `template <class Memory = StdMemory>`.
#pragma once

#include <atomic>

#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"

namespace sylar {

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
};

}  // namespace sylar
