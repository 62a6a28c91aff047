// Internal. The fiber or thread that holds a lock.
#pragma once

#include <cstdint>
#include <string>

#include "sylar/fiber/fiber_control.h"
#include "sylar/fiber/fiber_core.h"

namespace sylar::detail {

/// A fiber, a thread outside fibers, or nobody. Only valid while it holds something, because the fiber's state is used again when
/// it has ended. The lowest bit is always 0, for the locks.
class Holder {
 public:
  constexpr Holder() = default;
  constexpr explicit Holder(uintptr_t bits) : m_bits(bits) {}
  static Holder me();

  constexpr uintptr_t bits() const { return m_bits; }
  constexpr bool isNobody() const { return m_bits == 0; }
  bool operator==(const Holder&) const = default;

  /// Notes for reports that it, which is the caller, holds the lock at `lock` from now on, or does not any more.
  void noteLocked(const void* lock) const {
    if (isFiber()) control(*core().fiber).held().add(reinterpret_cast<uintptr_t>(lock));
  }
  void noteUnlocked(const void* lock) const {
    if (isFiber()) control(*core().fiber).held().remove(reinterpret_cast<uintptr_t>(lock));
  }

  /// Returns it in words, such as "fiber 7 resolver" or "thread 4711". Throws std::bad_alloc.
  std::string describe() const;

 private:
  static constexpr uintptr_t kThread = 2;  // set instead of a fiber's core, whose address is a multiple of 64

  bool isFiber() const { return (m_bits & kThread) == 0; }
  const FiberCore& core() const { return *reinterpret_cast<const FiberCore*>(m_bits); }

  uintptr_t m_bits = 0;
};

/// Ends the process, because `me` locks what it holds already.
[[noreturn]] void failRelock(Holder me, const char* what);
/// Ends the process, because `me` unlocks what `holder` holds.
[[noreturn]] void failUnlock(Holder me, Holder holder, const char* what);

}  // namespace sylar::detail
