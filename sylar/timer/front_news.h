// Internal. Decides when the sleeper that waits for the earliest timer must be told of an earlier one (protocol P4, C-39). It
// tracks what the sleeper knows, and whether anybody has told it since.
//
// A call counts when it has been made, not when it is owed. So a thread that is preempted between the two, with the timers' lock
// long released, keeps nobody else from telling. That thread tells once, whatever it arms on its way.
//
// Thread safety: as said at each function; "locked" means that the caller holds the timers' lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/clock.h"

namespace sylar::detail {

template <class Memory = StdMemory>
class FrontNews {
 public:
  /// Names the last look of the sleeper, or is 0 if nothing is to be told.
  using Ticket = uint64_t;

  /// Locked. Notes that the sleeper looks, and now sleeps until `due_ns`.
  void look(int64_t due_ns) {
    m_known_ns = due_ns;
    m_wakes_ns = kNever;
    ++m_looks;
  }

  /// Locked. Notes that the sleeper of the last look wakes by `due_ns` in any case, for another set of timers.
  void wakesBy(int64_t due_ns) { m_wakes_ns = due_ns; }

  /// Locked. For a caller that armed something; `earlier` means that this is now strictly the earliest. A front that the sleeper
  /// does not know is also owed, because the thread that armed it may be a long way from telling. If the result is not 0, the
  /// caller tells the sleeper, and then calls told().
  Ticket owed(int64_t due_ns, bool earlier) {
    const bool news = (earlier || due_ns < m_known_ns) && (due_ns < m_wakes_ns || m_wakes_ns == kNever);
    if (!news || m_told.load(std::memory_order_relaxed) == m_looks) return 0;
    const uint32_t me = Memory::self();
    if (m_teller == me && m_tells == m_looks) return 0;  // this thread is within its call
    m_teller = me;
    m_tells = m_looks;
    return m_looks;
  }

  /// Not locked. Notes that the sleeper was told, so it looks again before it sleeps. Changes nothing if it has looked already.
  void told(Ticket ticket) {
    if (ticket > m_told.load(std::memory_order_relaxed)) m_told.store(ticket, std::memory_order_relaxed);
  }

 private:
  int64_t m_known_ns = kNever;
  int64_t m_wakes_ns = kNever;
  Ticket m_looks = 1;
  uint32_t m_teller = 0;  ///< the thread that began to tell last,
  Ticket m_tells = 0;     ///< and after which look
  typename Memory::template Atomic<Ticket> m_told{0};
};

/// Looks at several sets of timers, of which the sleeper wakes for the first that is due, and returns when that is. Between two
/// such looks there must be a lock. A set's observeNextDue() is its look(), and its wakesBy() takes what that says.
///
/// A timer that comes into a set behind its look is told, however late it is due, until the second round. From then on only those
/// are told that come before the sleeper wakes.
template <class Sets>
int64_t lookAtAll(const Sets& sets) {
  int64_t first_ns = kNever;
  for (const auto& set : sets) first_ns = std::min(first_ns, set->observeNextDue());
  for (const auto& set : sets) set->wakesBy(first_ns);
  return first_ns;
}

}  // namespace sylar::detail
