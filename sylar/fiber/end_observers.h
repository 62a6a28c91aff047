// Internal. The observers that wait for the end of a fiber, and how they are notified.
//
// An observer belongs to the waiter, so notifying it takes two steps. Under the lock it is taken out and claimed; from then on
// its owner cannot leave before the notification. Outside the lock it is notified, because that may run code and make system
// calls.
#pragma once

#include <cstddef>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/check.h"

namespace sylar::detail {

struct EndObserver {
  EndObserver* next = nullptr;
  bool (*claim)(EndObserver*) = nullptr;  ///< returns true if it waits until it is notified, false if it has ended its wait
  void (*ended)(EndObserver*) = nullptr;  ///< notifies it; afterwards it may be gone
};

template <class Memory = StdMemory>
class EndObservers {
 public:
  /// Adds `observer`. Returns false if the end has come already, and then what was written before it is visible. Also returns
  /// false if `no_end`, called under the lock, says that there is no end to wait for.
  template <class NoEnd>
  [[nodiscard]] bool add(EndObserver& observer, NoEnd no_end) {
    SYLAR_DCHECK(observer.claim != nullptr && observer.ended != nullptr);
    Lock lock(m_lock);
    if (m_over || no_end()) return false;
    observer.next = m_first;
    m_first = &observer;
    return true;
  }

  [[nodiscard]] bool add(EndObserver& observer) {
    return add(observer, [] { return false; });
  }

  /// On return the observer will be neither claimed nor notified. For an observer whose claim() returns false or was not called.
  void remove(EndObserver& observer) {
    Lock lock(m_lock);
    for (EndObserver** at = &m_first; *at != nullptr; at = &(*at)->next) {
      if (*at != &observer) continue;
      *at = observer.next;
      return;
    }
  }

  /// Makes `change` under the lock, records that the end has come, and notifies all observers. `abandoned` means that the end
  /// will not come, because nothing will run any more.
  template <class Change>
  void end(bool abandoned, Change change) {
    tell([&]() SYLAR_REQUIRES(m_lock) {
      change();
      m_over = true;
      if (abandoned) m_abandoned.store(true, std::memory_order_relaxed);
    });
  }

  /// Makes `change` under the lock, after which waiting is of no use, and notifies all observers. It claims kAtOnce of them at a
  /// time, so that the lock is held for a bounded time. The last one may destroy this object.
  template <class Change>
  void tell(Change change) {
    bool more = true;
    for (bool first = true; more; first = false) {
      EndObserver* claimed = nullptr;
      {
        Lock lock(m_lock);
        if (first) change();
        claimed = claimSome();
        more = m_first != nullptr;
      }
      while (claimed != nullptr) {
        EndObserver* const told = claimed;
        claimed = claimed->next;
        told->ended(told);
      }
    }
  }

  /// Returns true if the end was announced but will not come. For a caller that was notified, or that add() has refused: either
  /// comes after the announcement.
  bool abandoned() const { return m_abandoned.load(std::memory_order_relaxed); }

  /// Resets to the initial state. There must be no observer.
  void clear() {
    Lock lock(m_lock);
    SYLAR_DCHECK(m_first == nullptr);
    m_over = false;
    m_abandoned.store(false, std::memory_order_relaxed);
  }

 private:
  static constexpr size_t kAtOnce = 64;

  EndObserver* claimSome() SYLAR_REQUIRES(m_lock) {
    EndObserver* claimed = nullptr;
    for (size_t i = 0; i < kAtOnce && m_first != nullptr; ++i) {
      EndObserver* const observer = m_first;
      m_first = observer->next;
      if (!observer->claim(observer)) continue;
      observer->next = claimed;
      claimed = observer;
    }
    return claimed;
  }

  EndObserver* m_first SYLAR_GUARDED_BY(m_lock) = nullptr;
  typename Memory::Spinlock m_lock;
  bool m_over SYLAR_GUARDED_BY(m_lock) = false;
  typename Memory::template Atomic<bool> m_abandoned{false};  // changes under the lock
};

}  // namespace sylar::detail
