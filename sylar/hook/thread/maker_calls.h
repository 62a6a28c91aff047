// Internal. How the thread that makes others sleeps, and who wakes it (protocol P2).
//
//   word      who changes it                                                     order
//   m_calls   who has queued a wish, and then calls: call()                      release; the maker reads it and then looks
//   m_ends    who starts the maker, before it runs; who ends it, before a call   relaxed; m_calls orders it
//
// A call between the maker's look and its sleep has changed the word on which it is about to sleep. So no wish is forgotten.
#pragma once

#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/clock.h"

namespace sylar::detail {

template <class Memory = StdMemory>
class MakerCalls {
 public:
  /// Any thread. Needs no memory.
  void call() {
    m_calls.fetch_add(1, std::memory_order_release);
    Memory::futexWakeOne(m_calls);
  }
  /// Makes run() return. The maker leaves what it has not seen.
  void end() {
    m_ends.store(true, std::memory_order_relaxed);
    call();
  }
  /// Undoes end(). There must be no maker.
  void begin() { m_ends.store(false, std::memory_order_relaxed); }

  /// For the maker: calls `step`, which returns false if there is nothing to do, until the end. Without a call it sleeps until the
  /// time that `until` returns.
  template <class Step, class Until>
  void run(Step step, Until until) {
    for (;;) {
      const uint32_t calls = m_calls.load(std::memory_order_acquire);
      if (m_ends.load(std::memory_order_relaxed)) return;
      if (!step()) (void)Memory::futexWaitUntil(m_calls, calls, until());
    }
  }

 private:
  typename Memory::template Atomic<uint32_t> m_calls{0};
  typename Memory::template Atomic<bool> m_ends{false};
};

}  // namespace sylar::detail
