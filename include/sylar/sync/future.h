// A value that a fiber or a thread will have later.
//
//   sylar::Future<std::string> page = sylar::go([] { return fetch("http://a.example/"); });
//   ...
//   if (!page.wait(sylar::Deadline::after(2s))) return;     // it goes on by itself
//   use(page.get());                                        // the value, or the exception of the function
#pragma once

#include <atomic>
#include <cerrno>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "sylar/clock.h"
#include "sylar/sync/event.h"

namespace sylar {

class Scheduler;

namespace detail {

/// Returns the scheduler of the calling thread, or null.
Scheduler* schedulerHere();

/// Returns why a wait with `deadline` would end at once: ECANCELED if the fiber was cancelled, ETIMEDOUT if `deadline` or that of
/// its DeadlineScope has passed, or 0.
int endOfWait(Deadline deadline);
/// Returns the error of a wait with `deadline` that has ended in vain: ETIMEDOUT or ECANCELED.
inline int errorOfWait(Deadline deadline) { return endOfWait(deadline) == ETIMEDOUT ? ETIMEDOUT : ECANCELED; }

/// The outcome of something that others wait for, apart from its value.
class Outcome {
 public:
  Outcome() = default;
  /// Logs an exception that nobody has asked for.
  ~Outcome();
  Outcome(const Outcome&) = delete;
  Outcome& operator=(const Outcome&) = delete;

  /// Throws std::future_error if it was called before.
  void retrieve();
  bool wait(Deadline deadline) { return m_ended.wait(deadline); }
  /// The event that is set when it has ended.
  Event& event() { return m_ended; }
  bool hasEnded() const { return m_ended.isSet(); }
  /// Has `store` put the value into its place, and ends. Throws std::future_error if it has ended before, and what `store`
  /// throws.
  template <class Store>
  void bring(Store store) {
    claim();
    try {
      store();
    } catch (...) {
      m_claimed.store(false, std::memory_order_relaxed);
      throw;
    }
    m_ended.set();
  }
  void fail(std::exception_ptr exception);
  /// Ends it if it has not ended, because nobody will bring a value any more.
  void breakOff() noexcept;
  /// Waits for the end. Throws std::system_error if the wait was in vain.
  void await();
  /// Throws the exception that it has ended by, if any.
  void rethrow();

 private:
  void claim();

  std::atomic<bool> m_claimed{false};
  std::atomic<bool> m_asked{false};
  bool m_retrieved = false;        // of the promise
  std::exception_ptr m_exception;  // written before the event is set
  Event m_ended;
};

struct Nothing {};
template <class T>
struct OutcomeOf : Outcome {
  template <class... Value>
  void bringValue(Value&&... from) {
    bring([&] { value.emplace(std::forward<Value>(from)...); });
  }
  std::optional<std::conditional_t<std::is_void_v<T>, Nothing, T>> value;
};

}  // namespace detail

template <class T>
class Future;

namespace detail {
/// The event that is set when `future` is ready.
template <class T>
Event& eventOf(const Future<T>& future) {
  return future.m_outcome->event();
}
}  // namespace detail

/// The receiving end of a Promise, or of go(). It can be moved, not copied. Empty when made by default, or moved from, and after
/// get(); then only valid() and assignments are allowed.
///
/// Thread safety: as a plain value. May suspend: wait() and get(). A plain thread blocks. Source: std::future.
template <class T>
class Future {
  static_assert(!std::is_reference_v<T>, "a future brings a value: let the function return a pointer or a copy");

 public:
  Future() = default;
  explicit Future(std::shared_ptr<detail::OutcomeOf<T>> outcome) : m_outcome(std::move(outcome)) {}

  bool valid() const { return m_outcome != nullptr; }
  /// Returns true if wait() would not wait.
  bool isReady() const { return m_outcome->hasEnded(); }
  /// Waits for the value or the exception. Returns false if `deadline`, or that of a DeadlineScope, passed or the fiber was
  /// cancelled before. Throws std::bad_alloc if there is no memory for a deadline.
  bool wait(Deadline deadline = Deadline::never()) const { return m_outcome->wait(deadline); }
  /// Waits, and returns the value, or throws the exception. The future is empty then. Throws std::future_error (broken_promise) if
  /// the promise has gone. Throws std::system_error, and keeps the future, with ECANCELED if the fiber was cancelled before, and
  /// with ETIMEDOUT if the deadline of a DeadlineScope passed.
  T get() {
    m_outcome->await();
    const auto outcome = std::move(m_outcome);
    outcome->rethrow();
    if constexpr (!std::is_void_v<T>) return std::move(*outcome->value);
  }

 private:
  template <class U>
  friend Event& detail::eventOf(const Future<U>& future);

  std::shared_ptr<detail::OutcomeOf<T>> m_outcome;
};

/// The giving end of a future. It can be moved, not copied. One that goes without having brought anything breaks the promise.
///
/// Thread safety: as a plain value. May suspend: no. Source: std::promise.
template <class T>
class Promise {
 public:
  Promise() : m_outcome(std::make_shared<detail::OutcomeOf<T>>()) {}
  ~Promise() {
    if (m_outcome != nullptr) m_outcome->breakOff();
  }
  Promise(Promise&&) noexcept = default;
  Promise& operator=(Promise&& other) noexcept {
    Promise(std::move(other)).m_outcome.swap(m_outcome);
    return *this;
  }

  /// Returns the future of this promise. Throws std::future_error (future_already_retrieved) at the second call.
  Future<T> getFuture() {
    m_outcome->retrieve();
    return Future<T>(m_outcome);
  }
  /// Brings the value. Throws std::future_error (promise_already_satisfied) if something was brought before.
  template <class... Value>
  void setValue(Value&&... value) requires(sizeof...(Value) == (std::is_void_v<T> ? 0 : 1)) {
    m_outcome->bringValue(std::forward<Value>(value)...);
  }
  /// Brings an exception, which must not be null. Throws as setValue() does.
  void setException(std::exception_ptr exception) { m_outcome->fail(std::move(exception)); }

 private:
  std::shared_ptr<detail::OutcomeOf<T>> m_outcome;
};

namespace detail {

/// The part of PromisedCallOf that needs no type: a function that keeps a promise. The function is gone, with all that it owns,
/// before the promise is kept. If it goes without having run, the promise is broken.
class PromisedCall {
 public:
  explicit PromisedCall(std::shared_ptr<Outcome> outcome) : m_outcome(std::move(outcome)) {}
  virtual ~PromisedCall() { m_outcome->breakOff(); }
  PromisedCall(const PromisedCall&) = delete;
  PromisedCall& operator=(const PromisedCall&) = delete;

  /// Runs it in a new fiber of `scheduler`.
  static void start(Scheduler& scheduler, std::shared_ptr<PromisedCall> call);
  /// Runs it here. With `ends_locals` the values of FiberLocal end before the promise is kept, too. That is for a call that does
  /// not share them with the code around it.
  void run(bool ends_locals);

 protected:
  Outcome& outcome() { return *m_outcome; }
  /// Ends the function, and the values.
  void end();

 private:
  /// Calls the function, ends it, and brings what it has returned.
  virtual void call() = 0;
  virtual void dropFunction() = 0;

  const std::shared_ptr<Outcome> m_outcome;
  bool m_ends_locals = false;
};

template <class Function>
class PromisedCallOf final : public PromisedCall {
 public:
  using Result = std::invoke_result_t<Function&>;

  PromisedCallOf(Function&& function, std::shared_ptr<OutcomeOf<Result>> outcome)
      : PromisedCall(std::move(outcome)), m_function(std::in_place, std::move(function)) {}

 private:
  void call() override {
    auto& to = static_cast<OutcomeOf<Result>&>(outcome());
    if constexpr (std::is_void_v<Result>) {
      (*m_function)();
      end();
      to.bringValue();
    } else {
      Result result = (*m_function)();
      end();
      to.bringValue(std::move(result));
    }
  }
  void dropFunction() override { m_function.reset(); }

  std::optional<Function> m_function;
};

}  // namespace detail

/// Runs `function` in a new fiber of `scheduler`, and returns the future of what it returns or throws. If the scheduler refuses
/// the function, the promise is broken. If a stop with a deadline abandons the fiber, the future never ends: wait with a deadline
/// for fibers of another scheduler. On a thread that a scheduler uses as its caller, the function runs no sooner than in stop().
/// Throws std::invalid_argument if `scheduler` is null, as it is outside of one, and std::bad_alloc. May suspend: no.
template <class Function>
auto go(Function function, Scheduler* scheduler = detail::schedulerHere()) -> Future<std::invoke_result_t<Function&>> {
  if (scheduler == nullptr) throw std::invalid_argument("sylar::go: no scheduler");
  const auto outcome = std::make_shared<detail::OutcomeOf<std::invoke_result_t<Function&>>>();
  detail::PromisedCall::start(*scheduler, std::make_shared<detail::PromisedCallOf<Function>>(std::move(function), outcome));
  return Future<std::invoke_result_t<Function&>>(outcome);
}

}  // namespace sylar
