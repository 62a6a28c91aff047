// Internal. How a caller of stopTimerSync() waits for the end of a callback: a thread blocks, a fiber parks. This module knows
// threads only. A manager whose callbacks run in fibers brings its own way.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"

namespace sylar::detail {

/// A thread or a fiber, which runs code. `id` differs from that of every other one that exists at the same time.
struct Flow {
  uintptr_t id = 0;
  const void* scheduler = nullptr;  ///< of a fiber
};

/// A waiter for the end of a run. It lies on the waiter's own stack.
class RunWaiter {
 public:
  /// Ends the wait. Called once, by any thread, without a lock. The waiter may be gone when this returns.
  virtual void wake() = 0;

  RunWaiter* next = nullptr;

 protected:
  ~RunWaiter() = default;
};

class RunWaits;

/// Thread safety: all calls from any thread, because it has no state.
class RunWaits {
 public:
  /// Links a waiter to a run and returns the flow that runs it, or nothing if there is none to wait for.
  using Enlist = std::function<std::optional<Flow>(RunWaiter&)>;

  /// Returns the caller.
  virtual Flow here() const = 0;
  /// Returns true if the caller is `flow`, or a fiber that `flow` has resumed by hand. Then waiting for it would be waiting for
  /// oneself.
  virtual bool isHere(const Flow& flow) const = 0;
  /// Enlists a waiter for the caller and returns when that was woken. May suspend: yes.
  virtual void wait(const Enlist& enlist) const = 0;

 protected:
  ~RunWaits() = default;
};

/// The waits of threads.
template <class Memory = StdMemory>
class ThreadRunWaits final : public RunWaits {
 public:
  Flow here() const override { return {.id = Memory::self()}; }
  bool isHere(const Flow& flow) const override { return flow.id == Memory::self(); }
  void wait(const Enlist& enlist) const override {
    Waiter waiter;
    if (enlist(waiter)) waiter.wait();
  }

 private:
  class Waiter final : public RunWaiter {
   public:
    void wake() override {
      Lock lock(m_mutex);
      m_woken.store(1, std::memory_order_relaxed);
      Memory::futexWakeAll(m_woken);
    }
    void wait() {
      while (m_woken.load(std::memory_order_relaxed) == 0) Memory::futexWait(m_woken, 0);
      Lock lock(m_mutex);  // the waker has finished with this object, and all that came before the wake is seen
    }

   private:
    typename Memory::Mutex m_mutex;
    typename Memory::template Atomic<uint32_t> m_woken{0};
  };
};

}  // namespace sylar::detail
