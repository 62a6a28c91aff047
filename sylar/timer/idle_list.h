// What nobody has touched for a constant time: quiet connections, sessions, leases.
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
// All entries have the same timeout, so they fall due in the order of their last touches: a list, whose head one timer guards. A
// touch moves the entry to the end, O(1), without a timer and without an allocation. To be chosen over a timer for each when
// many are touched often and few fall due. A fiber that waits in one call needs no entry: the timeout of a call is as cheap.
// Source: libev's manual, "Be smart about timeouts", the fourth way.
//
// Thread safety: IdleList's calls and Entry's touch() and remove() from any thread, also from the callback; an entry's add() and
// destructor not beside its other calls. None suspends or waits for a callback. Each holds a spinlock for a few instructions;
// no foreign code runs under it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace sylar {

class IdleCore;  // internal: what a list shares with its entries
class IdleEntry;
class TimerManager;

namespace idle_list {  // internal: an IdleList without its type
using Callback = std::function<void(const std::shared_ptr<void>&)>;
std::shared_ptr<IdleCore> make(TimerManager& manager, std::chrono::nanoseconds timeout, Callback on_idle,
                               std::chrono::nanoseconds slack);
void add(const std::shared_ptr<IdleCore>& core, IdleEntry& entry, std::weak_ptr<void> what);
void close(IdleCore& core);
size_t size(IdleCore& core);
}  // namespace idle_list

/// One of an IdleList, embedded in what it stands for or beside it. Unlinked by its destructor; may outlive the list.
class IdleEntry {
 public:
  IdleEntry() = default;
  ~IdleEntry() { remove(); }
  IdleEntry(const IdleEntry&) = delete;
  IdleEntry& operator=(const IdleEntry&) = delete;

  /// Due the list's timeout from now; also if it was due and its callback has begun, which is how a callback asks to be called
  /// again. No effect if it was not added, or removed, or if the list is gone.
  void touch() noexcept;
  /// It is not due until it is added anew. True: it was linked, so its callback has not begun since the last touch, and will not.
  bool remove() noexcept;

 private:
  friend class IdleCore;
  friend void idle_list::add(const std::shared_ptr<IdleCore>&, IdleEntry&, std::weak_ptr<void>);
  static constexpr int64_t kUnlinked = -1;

  std::shared_ptr<IdleCore> m_core;              // written by add()
  std::atomic<int64_t> m_touched_ns{kUnlinked};  // written under the core's lock, as what follows
  bool m_added = false;
  std::weak_ptr<void> m_what;
  IdleEntry* m_next = nullptr;
  IdleEntry* m_prev = nullptr;
};

template <class T>
class IdleList {
 public:
  using Entry = IdleEntry;
  using Callback = std::function<void(const std::shared_ptr<T>&)>;

  /// `on_idle` runs where `manager` runs its timers: in an IOManager in a fiber, which it may suspend. It runs once for each
  /// time that an entry falls due, for one entry after the other in the order of their last touches, never for two at once: what
  /// it waits for, the others wait for, too. It must return. What it throws is logged.
  ///
  /// `timeout` > 0. An entry falls due between `timeout` and `timeout + slack` after its last touch, and its callback begins as
  /// soon as a timer of `manager` would. With a slack an entry is linked anew at most once in that time, whoever touches it how
  /// often: other touches take no lock and write nothing.
  ///
  /// While something is linked, `manager` has an armed timer, and an IOManager's stop() waits for it. The manager outlives the
  /// list; its clock outlives what is running of the entries' calls, too. Throws std::invalid_argument, std::bad_alloc.
  IdleList(TimerManager& manager, std::chrono::nanoseconds timeout, Callback on_idle, std::chrono::nanoseconds slack = {});

  /// Unlinks what is linked; no callback begins any more. What `on_idle` captured is destroyed; if it is running, when that ends.
  ~IdleList();
  IdleList(const IdleList&) = delete;
  IdleList& operator=(const IdleList&) = delete;

  /// Links `entry` as if it was touched now. It is linked nowhere: it is new, fell due, was removed, or its list is gone. The
  /// callback runs only if `what` can be locked then, and holds it while it runs; otherwise the entry is passed over. No memory
  /// for the timer, or too many timers: the next touch or add() tries again.
  void add(Entry& entry, std::weak_ptr<T> what);

  /// Entries that are linked.
  size_t size() const;

 private:
  const std::shared_ptr<IdleCore> m_core;
};

template <class T>
IdleList<T>::IdleList(TimerManager& manager, std::chrono::nanoseconds timeout, Callback on_idle, std::chrono::nanoseconds slack)
    : m_core(idle_list::make(
          manager, timeout,
          [callback = std::move(on_idle)](const std::shared_ptr<void>& what) { callback(std::static_pointer_cast<T>(what)); },
          slack)) {}

template <class T>
IdleList<T>::~IdleList() {
  idle_list::close(*m_core);
}

template <class T>
void IdleList<T>::add(Entry& entry, std::weak_ptr<T> what) {
  idle_list::add(m_core, entry, std::move(what));
}

template <class T>
size_t IdleList<T>::size() const {
  return idle_list::size(*m_core);
}

}  // namespace sylar
