// Runs what cannot suspend on a thread of a bounded pool: regular files, foreign locks, computation.
//
//   std::string text = sylar::blocking([path] { return readFile(path); });      // this fiber waits, its worker goes on
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "sylar/sync/future.h"

namespace sylar {

/// The limits of the process's pool.
struct BlockingLimits {
  size_t max_threads = 64;                 ///< at least 1
  size_t max_queued = 1024;                ///< functions that wait for a thread; more are refused
  std::chrono::milliseconds idle{10'000};  ///< how long a thread waits for work before it ends
};

/// Sets the limits, from now on. The settings `blocking.*` do the same. Throws std::invalid_argument if `max_threads` is 0. Any
/// thread. May suspend: no.
void setBlockingLimits(const BlockingLimits& limits);

namespace detail {
/// Runs `call` on a helper thread, or here and now on a plain thread and in a forked child. Throws std::system_error with EAGAIN if
/// the pool is at its limits.
void runOnHelper(std::shared_ptr<PromisedCall> call);
/// Throws std::system_error if a wait of blocking() with `deadline` would end at once.
void checkBlocking(Deadline deadline);
/// Waits until `ended` is set. Throws std::system_error if `deadline` passed or the fiber was cancelled before.
void awaitBlocking(Event& ended, Deadline deadline);
}  // namespace detail

/// Runs `function` on a helper thread, which has an errno and thread_local variables of its own, and where no call suspends. Its
/// values of FiberLocal are those of a fiber that go() makes. Returns the future of what it returns or throws. Throws
/// std::system_error with EAGAIN if as many functions run and wait as the limits allow. On a plain thread, and in a forked child,
/// it runs here and now. Any thread. May suspend: no.
template <class Function>
auto goBlocking(Function function) -> Future<std::invoke_result_t<Function&>> {
  const auto outcome = std::make_shared<detail::OutcomeOf<std::invoke_result_t<Function&>>>();
  detail::runOnHelper(std::make_shared<detail::PromisedCallOf<Function>>(std::move(function), outcome));
  return Future<std::invoke_result_t<Function&>>(outcome);
}

/// Runs `function` as goBlocking() does, waits for it, and returns or throws what it does. Throws std::system_error with
/// ETIMEDOUT if `deadline` passed, also that of a DeadlineScope, and with ECANCELED if the fiber was cancelled. If that was so at
/// the call, the function does not run. Otherwise it ends the waiting and not the work, so `function` must own what it uses. A
/// function that waits for fibers keeps a thread of the pool from the hooked calls and lookups that need one. May suspend: yes. A
/// plain thread calls it itself. Source: Tokio's spawn_blocking.
template <class Function>
auto blocking(Function function, Deadline deadline = Deadline::never()) -> std::invoke_result_t<Function&> {
  detail::checkBlocking(deadline);
  auto future = goBlocking(std::move(function));
  detail::awaitBlocking(detail::eventOf(future), deadline);
  return future.get();
}

}  // namespace sylar
