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

#include <concepts>
#include <cstddef>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

#include "sylar/sync/exchange.h"

namespace sylar {

namespace detail {
template <class T, class Function>
class ReceiveCase;
template <class T, class Value, class Function>
class SendCase;
}  // namespace detail

/// `T` can be moved, without an exception and without waiting, because that happens under the channel's lock.
///
/// Thread safety: all calls from any thread, in fibers and outside. Source: Go.
template <class T>
class Channel {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>);

 public:
  /// Makes a channel that holds up to `capacity` values that nobody has received yet. Throws std::bad_alloc.
  explicit Channel(size_t capacity = 0) : m_exchange(capacity) {}
  /// Nobody may wait. Values that nobody has received are destroyed.
  ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Sends `value`, and waits for room, or for a receiver if the channel holds nothing. Returns false, and leaves `value` as it
  /// was, if the channel is or gets closed, if `deadline` has passed, or if the fiber was cancelled. Throws std::bad_alloc if
  /// there is no memory for a deadline, and then has sent nothing. May suspend: yes. A plain thread blocks.
  bool send(T&& value, Deadline deadline = Deadline::never()) { return m_exchange.send(value, deadline); }
  bool send(const T& value, Deadline deadline = Deadline::never()) requires std::copy_constructible<T> {
    T copy(value);
    return send(std::move(copy), deadline);
  }

  /// Sends `value` if that needs no waiting, and returns true if it did. Otherwise `value` is left as it was. May suspend: no.
  [[nodiscard]] bool trySend(T&& value) {
    typename Exchange::Sending sending{&value};
    (void)m_exchange.trySend(sending);
    return sending.taken;
  }
  [[nodiscard]] bool trySend(const T& value) requires std::copy_constructible<T> {
    T copy(value);
    return trySend(std::move(copy));
  }

  /// Returns the next value, and waits for it. Returns nothing if the channel is closed and empty, if `deadline` has passed, or
  /// if the fiber was cancelled. Throws std::bad_alloc if there is no memory for a deadline. May suspend: yes. A plain thread
  /// blocks.
  std::optional<T> receive(Deadline deadline = Deadline::never()) { return m_exchange.receive(deadline); }

  /// Returns the next value if there is one. May suspend: no.
  std::optional<T> tryReceive() {
    std::optional<T> value;
    (void)m_exchange.tryReceive(value);
    return value;
  }

  /// Ends the channel. Values that were sent before can still be received; sends that wait return false. A second call does
  /// nothing. May suspend: no.
  void close() { m_exchange.close(); }
  bool isClosed() const { return m_exchange.isClosed(); }
  /// Returns how many values the channel holds. A hint.
  size_t size() const { return m_exchange.size(); }

  /// Receives in a loop: `for (T& value : channel) ...` ends when receive() returns nothing. Each value is destroyed before the
  /// loop waits for the next.
  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(Channel& channel) : m_channel(&channel) { ++*this; }
    T& operator*() const { return *m_value; }
    Iterator& operator++() {
      m_value.reset();
      if (std::optional<T> next = m_channel->receive()) m_value.emplace(std::move(*next));
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t /*end*/) const { return !m_value.has_value(); }

   private:
    Channel* m_channel;
    mutable std::optional<T> m_value;  // as behind a pointer
  };
  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() { return {}; }

 private:
  template <class U, class Function>
  friend class detail::ReceiveCase;
  template <class U, class Value, class Function>
  friend class detail::SendCase;

  using Exchange = detail::Exchange<T>;
  Exchange m_exchange;
};

}  // namespace sylar
