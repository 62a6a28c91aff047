// Internal. The requests of other threads to a started fiber, and the fiber's home, whose thread handles them.
//
//   word        who writes it                                                    order
//   m_pending   anybody: post(); its home, or who takes the fiber in: take()     seq_cst
//   m_home      who takes the fiber in: moveIn(); its home: moveOut()            seq_cst
//   m_owner     who takes the fiber in: moveIn(), before m_home                  relaxed
//
// A sender sets a bit, then reads the home and sends it a message. A new home publishes itself, then takes the bits. So one of
// the two sees the other, and no request gets lost while the fiber moves. A home that opens a message takes all bits, so as long
// as a bit is set its sender has yet to send the message, or the message is on its way, or the fiber is: a sender that finds a
// bit set need not send another.
//
// `Home` is never destroyed, and has an atomic `owner`: which worker owns it, never the same twice, or 0.
#pragma once

#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"

namespace sylar::detail {

template <class Home, class Memory = StdMemory>
class FiberRequests {
 public:
  /// Records a request. Returns true if the caller must send a message to home(), if there is one. Any thread.
  [[nodiscard]] bool post(uint8_t what) { return m_pending.fetch_or(what, std::memory_order_seq_cst) == 0; }
  /// Returns and clears the pending requests.
  uint8_t take() { return m_pending.exchange(0, std::memory_order_seq_cst); }
  /// Returns the requests that nobody has taken yet. A hint.
  uint8_t pending() const { return m_pending.load(std::memory_order_relaxed); }

  /// Moves the fiber in at `home`, under its present owner. Without a home, or if the home has no owner, the fiber is a plain
  /// thread's. Returns what was requested while the fiber was on its way.
  [[nodiscard]] uint8_t moveIn(Home* home) {
    const uint64_t owner = ownerOf(home);
    m_owner.store(owner, std::memory_order_relaxed);
    m_home.store(owner == 0 ? nullptr : home, std::memory_order_seq_cst);
    return m_pending.load(std::memory_order_seq_cst) == 0 ? 0 : take();
  }
  /// Leaves the fiber without a home. Requests from now on wait for the home that takes the fiber in.
  void moveOut() { m_home.store(nullptr, std::memory_order_seq_cst); }

  /// Returns null if the fiber is a plain thread's, is on its way, or its home has another owner or none. Any thread.
  Home* home() const {
    Home* const home = m_home.load(std::memory_order_seq_cst);
    const bool stands = home != nullptr && home->owner.load(std::memory_order_acquire) == m_owner.load(std::memory_order_relaxed);
    return stands ? home : nullptr;
  }
  /// Returns true if the fiber moved in at `home` under its present owner and has not left. For the thread that has the
  /// fiber.
  bool at(Home* home) const {
    return m_home.load(std::memory_order_relaxed) == home && m_owner.load(std::memory_order_relaxed) == ownerOf(home);
  }
  /// Returns true if the fiber moved in on plain threads only.
  bool byHand() const { return m_owner.load(std::memory_order_relaxed) == 0; }

  /// Resets to the initial state.
  void clear() {
    m_home.store(nullptr, std::memory_order_seq_cst);
    m_owner.store(0, std::memory_order_relaxed);
    m_pending.store(0, std::memory_order_relaxed);
  }

 private:
  static uint64_t ownerOf(Home* home) { return home == nullptr ? 0 : home->owner.load(std::memory_order_relaxed); }

  typename Memory::template Atomic<Home*> m_home{nullptr};
  typename Memory::template Atomic<uint64_t> m_owner{0};
  typename Memory::template Atomic<uint8_t> m_pending{0};
};

}  // namespace sylar::detail
