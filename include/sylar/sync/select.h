// Waits for the first of several things.
//
//   bool going = true;
//   while (going && sylar::select(
//       sylar::onReceive(jobs, [&](std::optional<Job> job) { job ? run(*job) : void(going = false); }),
//       sylar::onSet(stop, [&] { going = false; }),
//       sylar::onTimeout(30s, [] { heartbeat(); }))) {}
//
// sylar/select.h has the cases of descriptors besides.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "sylar/fiber.h"
#include "sylar/sync/channel.h"
#include "sylar/sync/event.h"
#include "sylar/sync/wait_queue.h"

namespace sylar {

template <class T>
class Future;

namespace detail {

template <class T>
Event& eventOf(const Future<T>& future);

/// What a select() may wait for. Its order of calls: tryNow(); then, if that did nothing, enqueue() and dequeue(); and so again
/// until one case is done, whose run() comes last.
class SelectCase {
 public:
  SelectCase() = default;
  SelectCase(const SelectCase&) = delete;
  SelectCase& operator=(const SelectCase&) = delete;

  /// Where it waits. Selects queue their cases in this order, so that two of them never withdraw for each other again and again.
  virtual const void* place() const = 0;
  virtual Deadline deadline() const { return Deadline::never(); }
  /// Does the case if that needs no waiting, and returns true if it did.
  virtual bool tryNow() = 0;
  /// Shows `wait` to those who may end it. Returns false, and has not, if tryNow() may succeed by now.
  virtual bool enqueue(SyncWait& wait) = 0;
  /// Takes back what enqueue() has shown. The wait has ended.
  virtual void dequeue() = 0;
  /// Returns true if somebody has done the case when the wait ended.
  virtual bool isDone() const = 0;
  /// Calls the function of the user.
  virtual void run() = 0;

 protected:
  ~SelectCase() = default;
};

/// Does one of `cases`; `ordered` has room for as many. See sylar::select().
bool select(std::span<SelectCase* const> cases, std::span<SelectCase*> ordered);

template <class T, class Function>
class ReceiveCase final : public SelectCase {
 public:
  ReceiveCase(Channel<T>& channel, Function&& function) : m_channel(channel), m_function(std::forward<Function>(function)) {}

  const void* place() const override { return &m_channel; }
  bool tryNow() override { return m_channel.m_exchange.tryReceive(m_value); }
  bool enqueue(SyncWait& wait) override { return m_channel.m_exchange.enqueueReceive(m_waiter, wait); }
  void dequeue() override { m_channel.m_exchange.dequeueReceive(m_waiter); }
  bool isDone() const override { return m_waiter.isTaken(); }
  void run() override { std::forward<Function>(m_function)(std::move(m_value)); }

 private:
  Channel<T>& m_channel;
  Function m_function;  // a reference if the caller has given an lvalue
  std::optional<T> m_value;
  SyncWaiter m_waiter{&m_value};
};

/// `Value` is T, or T& for the value of the caller.
template <class T, class Value, class Function>
class SendCase final : public SelectCase {
 public:
  SendCase(Channel<T>& channel, Value&& value, Function&& function)
      : m_channel(channel), m_value(std::forward<Value>(value)), m_function(std::forward<Function>(function)) {}

  const void* place() const override { return &m_channel; }
  bool tryNow() override { return m_channel.m_exchange.trySend(m_sending); }
  bool enqueue(SyncWait& wait) override { return m_channel.m_exchange.enqueueSend(m_waiter, wait); }
  void dequeue() override { m_channel.m_exchange.dequeueSend(m_waiter); }
  bool isDone() const override { return m_waiter.isTaken(); }
  void run() override { std::forward<Function>(m_function)(m_sending.taken); }

 private:
  Channel<T>& m_channel;
  Value m_value;
  typename Exchange<T>::Sending m_sending{&m_value};
  Function m_function;  // a reference if the caller has given an lvalue
  SyncWaiter m_waiter{&m_sending};
};

/// A case that has only to be told.
template <class Base, class Function>
class PlainCase final : public Base {
 public:
  template <class... Of>
  explicit PlainCase(Function&& function, Of&&... of)
      : Base(std::forward<Of>(of)...), m_function(std::forward<Function>(function)) {}
  void run() override { std::forward<Function>(m_function)(); }

 private:
  Function m_function;  // a reference if the caller has given an lvalue
};

class EventCase : public SelectCase {
 public:
  explicit EventCase(Event* event) : m_event(*event) {}
  const void* place() const override { return &m_event; }
  bool tryNow() override { return m_event.isSet(); }
  bool enqueue(SyncWait& wait) override;
  void dequeue() override;
  bool isDone() const override { return m_waiter.isTaken(); }

 private:
  Event& m_event;
  SyncWaiter m_waiter;
};

class FiberCase : public SelectCase {
 public:
  explicit FiberCase(Fiber::ptr fiber);
  ~FiberCase();
  const void* place() const override { return m_fiber.get(); }
  bool tryNow() override;
  bool enqueue(SyncWait& wait) override;
  void dequeue() override;
  bool isDone() const override { return false; }  // tryNow() will say it

 private:
  struct Observer;
  const Fiber::ptr m_fiber;
  const std::unique_ptr<Observer> m_observer;
};

class TimeoutCase : public SelectCase {
 public:
  explicit TimeoutCase(Deadline deadline) : m_deadline(deadline) {}
  const void* place() const override { return nullptr; }
  Deadline deadline() const override { return m_deadline; }
  bool tryNow() override { return false; }
  bool enqueue(SyncWait& /*wait*/) override { return true; }
  void dequeue() override {}
  bool isDone() const override { return false; }

 private:
  const Deadline m_deadline;
};

/// Returns the deadline that is `from_now` away, on the clock of deadlines here.
Deadline deadlineIn(std::chrono::nanoseconds from_now);

}  // namespace detail

/// Does the first case that can be done, waits until one can, and calls its function. If several can be done at once, the first
/// of the arguments counts, so put last what comes all the time. Returns false, and has done nothing, if the fiber was cancelled
/// or the deadline of its DeadlineScope has passed. Throws std::bad_alloc if there is no memory for a deadline, and what the
/// function throws. A case belongs to the call, and what it was made of must outlive that.
///
/// Thread safety: each call is one wait of its fiber or thread. May suspend: yes. A plain thread blocks. Source: Go.
template <std::derived_from<detail::SelectCase>... Cases>
requires(sizeof...(Cases) > 0) bool select(Cases&&... cases) {
  const std::array<detail::SelectCase*, sizeof...(Cases)> all{&cases...};
  std::array<detail::SelectCase*, sizeof...(Cases)> ordered;
  return detail::select(all, ordered);
}

/// Receives from `channel`, and calls `function` with the std::optional<T> that Channel::receive() would have returned.
template <class T, class Function>
auto onReceive(Channel<T>& channel, Function&& function) {
  return detail::ReceiveCase<T, Function>(channel, std::forward<Function>(function));
}
/// Sends `value` to `channel`, and calls `function` with true; or with false, and leaves `value` as it was, if the channel is
/// closed.
template <class T, class Function>
auto onSend(Channel<T>& channel, std::type_identity_t<T>&& value, Function&& function) {
  return detail::SendCase<T, T&, Function>(channel, value, std::forward<Function>(function));
}
template <std::copy_constructible T, class Function>
auto onSend(Channel<T>& channel, const std::type_identity_t<T>& value, Function&& function) {
  return detail::SendCase<T, T, Function>(channel, T(value), std::forward<Function>(function));
}
/// Calls `function` when `event` is set.
template <class Function>
auto onSet(Event& event, Function&& function) {
  return detail::PlainCase<detail::EventCase, Function>(std::forward<Function>(function), &event);
}
/// Calls `function` when `future` is ready, so that its get() does not wait.
template <class T, class Function>
auto onReady(const Future<T>& future, Function&& function) {
  return detail::PlainCase<detail::EventCase, Function>(std::forward<Function>(function), &detail::eventOf(future));
}
/// Calls `function` when `fiber` has ended, or will not end any more, so that its join() does not wait. A plain stop() waits for
/// this wait, as for all others of a select, even if only fibers can end it. Throws, from select(), std::logic_error if the end
/// cannot come, in a forked child of a process that has started a scheduler. Throws std::invalid_argument if `fiber` is null.
template <class Function>
auto onEnd(Fiber::ptr fiber, Function&& function) {
  return detail::PlainCase<detail::FiberCase, Function>(std::forward<Function>(function), std::move(fiber));
}
/// Calls `function` if none of the other cases could be done before `deadline`. With one that has passed, select() does not wait.
template <class Function>
auto onTimeout(Deadline deadline, Function&& function) {
  return detail::PlainCase<detail::TimeoutCase, Function>(std::forward<Function>(function), deadline);
}
template <class Function>
auto onTimeout(std::chrono::nanoseconds from_now, Function&& function) {
  return onTimeout(detail::deadlineIn(from_now), std::forward<Function>(function));
}

}  // namespace sylar
