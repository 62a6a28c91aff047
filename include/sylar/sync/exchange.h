// The values of a channel, and those who wait to send or receive one. Users need Channel, not this.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "sylar/check.h"
#include "sylar/sync/wait_queue.h"

namespace sylar::detail {

/// Does what Channel promises, and offers it to select().
///
/// Thread safety: all calls from any thread, in fibers and outside.
template <class T, class Types = SyncTypes>
class Exchange {
 public:
  using Wait = typename Types::Wait;
  using Waiter = typename Types::Waiter;
  using Wakes = typename Types::Wakes;
  using Queue = typename Types::Queue;
  using Lock = ScopedLockImpl<typename Types::Mutex>;

  /// A send, for the waiter of one that waits.
  struct Sending {
    T* value;
    bool taken = false;
  };

  explicit Exchange(size_t capacity) : m_capacity(capacity), m_ring(capacity > 0 ? new std::optional<T>[capacity] : nullptr) {}
  ~Exchange() {
    m_senders.end(m_lock);
    m_receivers.end(m_lock);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  bool send(T& value, Deadline deadline) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    Queue::reserve(deadline);
    Wakes wakes;
    m_lock.lock();
    if (pass(value, wakes) || m_closed) {
      const bool sent = !m_closed;
      m_lock.unlock();
      return sent;
    }
    Sending mine{&value};
    Waiter waiter(&mine);
    return m_senders.wait(m_lock, waiter, deadline) && mine.taken;
  }
  std::optional<T> receive(Deadline deadline) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    Queue::reserve(deadline);
    std::optional<T> value;
    Wakes wakes;
    m_lock.lock();
    if (take(value, wakes) || m_closed) {
      m_lock.unlock();
      return value;
    }
    Waiter waiter(&value);
    (void)m_receivers.wait(m_lock, waiter, deadline);
    return value;
  }

  /// Does the send if that needs no waiting. Returns true if it is over, because it is done or the channel is closed.
  bool trySend(Sending& sending) {
    Wakes wakes;
    const Lock lock(m_lock);
    sending.taken = pass(*sending.value, wakes);
    return sending.taken || m_closed;
  }
  /// The same for a receive.
  bool tryReceive(std::optional<T>& out) {
    Wakes wakes;
    const Lock lock(m_lock);
    return take(out, wakes) || m_closed;
  }

  // For select(). The first two return false, and do nothing, if `wait` need not wait here. The data of `mine` is a Sending, or a
  // std::optional<T>.
  bool enqueueSend(Waiter& mine, Wait& wait) {
    const Lock lock(m_lock);
    if (m_closed || m_size < m_capacity || m_receivers.hasOther(wait)) return false;
    m_senders.enqueue(mine, wait);
    return true;
  }
  bool enqueueReceive(Waiter& mine, Wait& wait) {
    const Lock lock(m_lock);
    if (m_closed || m_size > 0 || m_senders.hasOther(wait)) return false;
    m_receivers.enqueue(mine, wait);
    return true;
  }
  void dequeueSend(Waiter& mine) {
    const Lock lock(m_lock);
    m_senders.dequeue(mine);
  }
  void dequeueReceive(Waiter& mine) {
    const Lock lock(m_lock);
    m_receivers.dequeue(mine);
  }

  void close() {
    Wakes wakes;
    const Lock lock(m_lock);
    m_closed = true;
    m_senders.wakeAll(wakes);
    m_receivers.wakeAll(wakes);
  }
  bool isClosed() const {
    const Lock lock(m_lock);
    return m_closed;
  }
  size_t size() const {
    const Lock lock(m_lock);
    return m_size;
  }

 private:
  /// Moves `value` to the oldest receiver, or into the ring. Returns false if there is neither, or if the channel is closed.
  bool pass(T& value, Wakes& wakes) {
    if (m_closed) return false;
    if (Waiter* const receiver = m_receivers.takeOldest()) {
      static_cast<std::optional<T>*>(receiver->data)->emplace(std::move(value));
      wakes.add(*receiver);
      return true;
    }
    if (m_size == m_capacity) return false;
    m_ring[(m_first + m_size++) % m_capacity].emplace(std::move(value));
    return true;
  }

  /// Moves the oldest value into `out`, and that of the oldest sender into the room. Returns false if there is none.
  bool take(std::optional<T>& out, Wakes& wakes) {
    if (m_size > 0) {
      std::optional<T>& oldest = m_ring[m_first];
      out.emplace(std::move(*oldest));
      oldest.reset();
      m_first = (m_first + 1) % m_capacity;
      --m_size;
    }
    if (Waiter* const sender = m_senders.takeOldest()) {
      auto& sending = *static_cast<Sending*>(sender->data);
      (out ? m_ring[(m_first + m_size++) % m_capacity] : out).emplace(std::move(*sending.value));
      sending.taken = true;
      wakes.add(*sender);
    }
    return out.has_value();
  }

  const size_t m_capacity;
  mutable typename Types::Mutex m_lock;
  bool m_closed = false;
  size_t m_first = 0;  // of the ring: the oldest value
  size_t m_size = 0;
  const std::unique_ptr<std::optional<T>[]> m_ring;
  Queue m_senders{SyncKind::kSend};       // empty unless the ring is full
  Queue m_receivers{SyncKind::kReceive};  // empty unless the ring is empty
};

}  // namespace sylar::detail
