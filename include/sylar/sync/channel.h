// A channel hands values from those who send to those who receive, in order. Both may be fibers or threads.
//
//   sylar::Channel<std::string> lines(16);                     // holds 16 values; 0: each send waits for its receiver
//   iom.schedule([&] {
//     while (readLine(&line)) lines.send(std::move(line));
//     lines.close();
//   });
//   while (std::optional<std::string> line = lines.receive()) print(*line);
//
// Values arrive in the order in which their sends began, and waiters are served in the order of arrival.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "sylar/check.h"
#include "sylar/sync/wait_queue.h"

namespace sylar {

/// `T` can be moved, without an exception and without waiting, because that happens under the channel's lock.
///
/// Thread safety: all calls from any thread, in fibers and outside. Source: Go.
template <class T>
class Channel {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>);

 public:
  /// Makes a channel that holds up to `capacity` values that nobody has received yet. Throws std::bad_alloc.
  explicit Channel(size_t capacity = 0) : m_capacity(capacity), m_ring(capacity > 0 ? new std::optional<T>[capacity] : nullptr) {}
  /// Nobody may wait. Values that nobody has received are destroyed.
  ~Channel() {
    const ThreadMutex::Lock lock(m_lock);  // the one who told the last waiter may still hold it
    SYLAR_CHECK(m_senders.takeOldest() == nullptr && m_receivers.takeOldest() == nullptr);
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Sends `value`, and waits for room, or for a receiver if the channel holds nothing. Returns false, and leaves `value` as it
  /// was, if the channel is or gets closed, if `deadline` has passed, or if the fiber was cancelled. Throws std::bad_alloc if
  /// there is no memory for a deadline, and then has sent nothing. May suspend: yes. A plain thread blocks.
  bool send(T&& value, Deadline deadline = Deadline::never()) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    detail::SyncQueue::reserve(deadline);
    detail::SyncWakes wakes;
    m_lock.lock();
    if (pass(value, wakes) || m_closed) {
      const bool sent = !m_closed;
      m_lock.unlock();
      return sent;
    }
    Sending mine{&value};
    detail::SyncWaiter waiter(&mine);
    return m_senders.wait(m_lock, waiter, deadline) && mine.taken;
  }
  bool send(const T& value, Deadline deadline = Deadline::never()) {
    T copy(value);
    return send(std::move(copy), deadline);
  }

  /// Sends `value` if that needs no waiting, and returns true if it did. Otherwise `value` is left as it was. May suspend: no.
  [[nodiscard]] bool trySend(T&& value) {
    detail::SyncWakes wakes;
    const ThreadMutex::Lock lock(m_lock);
    return pass(value, wakes);
  }

  /// Returns the next value, and waits for it. Returns nothing if the channel is closed and empty, if `deadline` has passed, or
  /// if the fiber was cancelled. Throws std::bad_alloc if there is no memory for a deadline. May suspend: yes. A plain thread
  /// blocks.
  std::optional<T> receive(Deadline deadline = Deadline::never()) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    detail::SyncQueue::reserve(deadline);
    std::optional<T> value;
    detail::SyncWakes wakes;
    m_lock.lock();
    if (take(value, wakes) || m_closed) {
      m_lock.unlock();
      return value;
    }
    detail::SyncWaiter waiter(&value);
    (void)m_receivers.wait(m_lock, waiter, deadline);
    return value;
  }

  /// Returns the next value if there is one. May suspend: no.
  std::optional<T> tryReceive() {
    std::optional<T> value;
    detail::SyncWakes wakes;
    const ThreadMutex::Lock lock(m_lock);
    (void)take(value, wakes);
    return value;
  }

  /// Ends the channel. Values that were sent before can still be received; sends that wait return false. A second call does
  /// nothing. May suspend: no.
  void close() {
    detail::SyncWakes wakes;
    const ThreadMutex::Lock lock(m_lock);
    m_closed = true;
    m_senders.wakeAll(wakes);
    m_receivers.wakeAll(wakes);
  }
  bool isClosed() const {
    const ThreadMutex::Lock lock(m_lock);
    return m_closed;
  }
  /// Returns how many values the channel holds. A hint.
  size_t size() const {
    const ThreadMutex::Lock lock(m_lock);
    return m_size;
  }

  /// Receives in a loop: `for (T& value : channel) ...` ends when receive() returns nothing.
  class Iterator {
   public:
    explicit Iterator(Channel* channel) : m_channel(channel) { ++*this; }
    T& operator*() { return *m_value; }
    Iterator& operator++() {
      if (m_channel != nullptr) m_value = m_channel->receive();
      return *this;
    }
    /// Compares with end().
    bool operator!=(const Iterator& /*end*/) const { return m_value.has_value(); }

   private:
    Channel* const m_channel;
    std::optional<T> m_value;
  };
  Iterator begin() { return Iterator(this); }
  Iterator end() { return Iterator(nullptr); }

 private:
  struct Sending {
    T* value;
    bool taken = false;
  };

  /// Moves `value` to the oldest receiver, or into the ring. Returns false if there is neither, or if the channel is closed.
  bool pass(T& value, detail::SyncWakes& wakes) {
    if (m_closed) return false;
    if (detail::SyncWaiter* const receiver = m_receivers.takeOldest()) {
      static_cast<std::optional<T>*>(receiver->data)->emplace(std::move(value));
      wakes.add(*receiver);
      return true;
    }
    if (m_size == m_capacity) return false;
    m_ring[(m_first + m_size++) % m_capacity].emplace(std::move(value));
    return true;
  }

  /// Moves the oldest value into `out`, and that of the oldest sender into the room. Returns false if there is none.
  bool take(std::optional<T>& out, detail::SyncWakes& wakes) {
    if (m_size > 0) {
      std::optional<T>& oldest = m_ring[m_first];
      out.emplace(std::move(*oldest));
      oldest.reset();
      m_first = (m_first + 1) % m_capacity;
      --m_size;
    }
    detail::SyncWaiter* const sender = m_senders.takeOldest();
    if (sender != nullptr) {
      auto& sending = *static_cast<Sending*>(sender->data);
      (out ? m_ring[(m_first + m_size++) % m_capacity] : out).emplace(std::move(*sending.value));
      sending.taken = true;
      wakes.add(*sender);
    }
    return out.has_value();
  }

  const size_t m_capacity;
  mutable ThreadMutex m_lock;
  bool m_closed = false;
  size_t m_first = 0;  // of the ring: the oldest value
  size_t m_size = 0;
  const std::unique_ptr<std::optional<T>[]> m_ring;
  detail::SyncQueue m_senders;    // empty unless the ring is full
  detail::SyncQueue m_receivers;  // empty unless the ring is empty
};

}  // namespace sylar
