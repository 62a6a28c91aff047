// Internal. The fiber or thread that holds a lock.
#pragma once

#include <cstdint>
#include <string>

#include "sylar/base/internal.h"
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

  // For the caller itself. `lock` is the address of a lock, with HeldLocks::kToRead if it is held for reading.

  /// Notes that it holds `lock` from now on, or does not any more. Of threads nothing is noted.
  void noteLocked(uintptr_t lock) const {
    if (isFiber()) held().add(lock);
  }
  void noteUnlocked(uintptr_t lock) const {
    if (isFiber()) held().remove(lock);
  }
  /// Returns true if it is known to hold `lock`.
  bool holds(uintptr_t lock) const { return isFiber() && held().has(lock); }
  /// Returns false if it is known not to hold `lock`.
  bool mayHold(uintptr_t lock) const { return !isFiber() || held().mayHave(lock); }

  /// Returns it in words, such as "fiber 7 resolver" or "thread 4711". Throws std::bad_alloc.
  std::string describe() const;

 private:
  static constexpr uintptr_t kThread = 2;  // set instead of a fiber's core, whose address is a multiple of 64

  bool isFiber() const { return (m_bits & kThread) == 0; }
  const FiberCore& core() const { return *reinterpret_cast<const FiberCore*>(m_bits); }
  HeldLocks& held() const { return core().started().held; }

  uintptr_t m_bits = 0;
};

/// Ends the process, because `me` locks what it holds already.
[[noreturn]] void failRelock(Holder me, const char* what);
/// Ends the process, because `me` locks for writing what it holds for reading.
[[noreturn]] void failUpgrade(Holder me, const char* what);
/// Ends the process, because `me` unlocks what `holder` holds.
[[noreturn]] void failUnlock(Holder me, Holder holder, const char* what);
/// Ends the process, because `me` unlocks what others hold for reading.
[[noreturn]] void failUnlockOfReaders(Holder me, const char* what);

}  // namespace sylar::detail
