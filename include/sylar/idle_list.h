// An IdleList finds the entries that nobody has touched for a constant time: quiet connections, sessions, leases.
//
//   struct Peer {
//     sylar::Socket::ptr socket;
//     sylar::IdleList<Peer>::Entry idle;
//   };
//   sylar::IdleList<Peer> peers(iom, 60s, [](const std::shared_ptr<Peer>& peer) { peer->socket->close(); });
//   peers.add(peer->idle, peer);                       // a std::shared_ptr<Peer>
//   ...
//   peer->idle.touch();                                // something came from it
//
// All entries have the same timeout, so they fall due in the order of their last touches. They stand in a list, and one timer
// guards its head. A touch moves the entry to the end in O(1), without a timer and without an allocation. Choose this over one
// timer for each entry when many are touched often and few fall due. A fiber that waits in one call needs no entry, because the
// timeout of a call is as cheap. Source: libev's manual, "Be smart about timeouts", the fourth way.
//
// In a forked child, a list of the parent's manager is empty and its calls do nothing: see timer.h.
//
// Thread safety: the calls of IdleList and an entry's touch() and remove() may come from any thread, also from the callback. An
// entry's add() and destructor must not run at the same time as its other calls. No call suspends or waits for a callback. Each
// holds a spinlock for a few instructions and runs no foreign code under it, except the clock's nowNs().
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace sylar {

class IdleEntry;
class TimerManager;

namespace detail {
class IdleCore;  // the state that a list shares with its entries

namespace idle_list {  // an IdleList without its type parameter
using Callback = std::function<void(const std::shared_ptr<void>&)>;
std::shared_ptr<IdleCore> make(TimerManager& manager, std::chrono::nanoseconds timeout, Callback on_idle,
                               std::chrono::nanoseconds slack);
void add(const std::shared_ptr<IdleCore>& core, IdleEntry& entry, std::weak_ptr<void> what);
void close(IdleCore& core);
size_t size(IdleCore& core);
}  // namespace idle_list
}  // namespace detail

/// An entry of an IdleList, embedded in the object that it stands for or kept beside it. Its destructor unlinks it; it may
/// outlive the list.
class IdleEntry {
 public:
  IdleEntry() = default;
  ~IdleEntry() { remove(); }
  IdleEntry(const IdleEntry&) = delete;
  IdleEntry& operator=(const IdleEntry&) = delete;

  /// Makes the entry due the list's timeout from now. This also works if it was due and its callback has begun, which is how a
  /// callback asks to be called again. Has no effect if the entry was not added or was removed, or if the list is gone.
  void touch() noexcept;
  /// Removes the entry, so that it is not due until it is added again. Returns true if it was linked; its callback has then not
  /// begun since the last touch, and will not.
  bool remove() noexcept;

 private:
  friend class detail::IdleCore;
  friend void detail::idle_list::add(const std::shared_ptr<detail::IdleCore>&, IdleEntry&, std::weak_ptr<void>);
  static constexpr int64_t kUnlinked = -1;

  std::shared_ptr<detail::IdleCore> m_core;      // written by add()
  std::atomic<int64_t> m_touched_ns{kUnlinked};  // written under the core's lock, as are the members below
  bool m_added = false;
  std::weak_ptr<void> m_what;
  IdleEntry* m_next = nullptr;
  IdleEntry* m_prev = nullptr;
};

template <class T>
/// Calls back for each of its entries that was not touched for a constant time.
class IdleList {
 public:
  using Entry = IdleEntry;
  using Callback = std::function<void(const std::shared_ptr<T>&)>;

  /// `on_idle` runs where `manager` runs its timers; in an IOManager that is a fiber, which it may suspend. It runs once each
  /// time that an entry falls due, for one entry after the other in the order of their last touches and never for two at once,
  /// so a callback that waits delays the others. It must return. Its exceptions are logged.
  ///
  /// `timeout` must be > 0. An entry falls due between `timeout` and `timeout + slack` after its last touch, and its callback
  /// begins as soon as that of a timer of `manager` would. With a slack, an entry is linked again at most once in that time,
  /// however often it is touched; the other touches take no lock and write nothing.
  ///
  /// While an entry is linked, `manager` has an armed timer, for which an IOManager's stop() waits. The manager must outlive
  /// the list, and its clock also the entries' calls that are still running. Throws std::invalid_argument, std::bad_alloc.
  IdleList(TimerManager& manager, std::chrono::nanoseconds timeout, Callback on_idle, std::chrono::nanoseconds slack = {});

  /// Unlinks all entries; no callback begins afterwards. The captures of `on_idle` are destroyed, or, if it is running, when it
  /// ends.
  ~IdleList();
  IdleList(const IdleList&) = delete;
  IdleList& operator=(const IdleList&) = delete;

  /// Links `entry` as if it was touched now. The entry must not be linked anywhere: it is new, fell due, was removed, or its
  /// list is gone. The callback runs only if `what` can be locked when the entry falls due, and the lock is held while it runs;
  /// otherwise the entry is skipped. If there is no memory for the timer, or there are too many timers, the next touch or add()
  /// tries again.
  void add(Entry& entry, std::weak_ptr<T> what);

  /// Returns the number of linked entries.
  size_t size() const;

 private:
  const std::shared_ptr<detail::IdleCore> m_core;
};

template <class T>
IdleList<T>::IdleList(TimerManager& manager, std::chrono::nanoseconds timeout, Callback on_idle, std::chrono::nanoseconds slack)
    : m_core(detail::idle_list::make(
          manager, timeout,
          [callback = std::move(on_idle)](const std::shared_ptr<void>& what) { callback(std::static_pointer_cast<T>(what)); },
          slack)) {}

template <class T>
IdleList<T>::~IdleList() {
  detail::idle_list::close(*m_core);
}

template <class T>
void IdleList<T>::add(Entry& entry, std::weak_ptr<T> what) {
  detail::idle_list::add(m_core, entry, std::move(what));
}

template <class T>
size_t IdleList<T>::size() const {
  return detail::idle_list::size(*m_core);
}

}  // namespace sylar
