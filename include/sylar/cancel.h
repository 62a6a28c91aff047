// Ends the waits of a part of a program, from outside, through the standard's stop tokens.
//
//   std::stop_source stop;                              // some other fiber or thread calls stop.request_stop()
//   sylar::withCancel(stop.get_token(), [&] {
//     redisCommand(connection, "BLPOP jobs 0");         // of a library that knows nothing of this: it fails with ECANCELED
//   });
//
// Fiber::cancel() is forever. This is for as long as the scope.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <utility>

#include "sylar/fiber.h"

namespace sylar {

namespace this_fiber {

/// Why the running fiber's waits end at once.
enum class CancelReason : uint8_t {
  kNone,   ///< they do not
  kToken,  ///< the token of a CancelScope asked for it
  kFiber,  ///< Fiber::cancel()
  kStop,   ///< the stop of its scheduler
};

/// Returns why cancelled() is true, kNone if it is not. Of Fiber::cancel() and a stop the first counts, and both before a token.
CancelReason cancelReason();

/// While it exists, the fiber that makes it is cancelled as soon as `token` asks for a stop, as by Fiber::cancel(): what it waits
/// for and will wait for ends with ECANCELED, also in those that it resumes by hand, but not in a CancelShield, be that
/// inside of the scope or around it. Data that is there
/// is still delivered. When the scope ends, the fiber is as before. So one who goes on in the scope regardless sees each wait fail,
/// and is given up after 1 000 of them like any other cancelled fiber.
///
/// Has no effect on a thread's own stack. In a fiber that is resumed by hand on a plain thread, a wait blocks the thread and a stop
/// does not end it; only cancelled() tells. Scopes of a fiber end in the reverse order. Thread safety: belongs to one scope of one
/// fiber; the stop may be asked for by any thread, but not in a signal handler. May suspend: no. Source: Trio's cancel scopes, Go's
/// context.WithCancel.
class CancelScope {
 public:
  explicit CancelScope(std::stop_token token);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  friend detail::FiberControl;
  struct Fire {
    CancelScope* scope;
    void operator()() const;
  };
  void forget();

  void* const m_core;  // the fiber's core; null on a thread's own stack
  CancelScope* m_outer = nullptr;
  std::atomic<bool> m_fired{false};
  using Callback = std::stop_callback<Fire>;
  Callback* m_callback = nullptr;  // in m_storage; a forked child must not destroy it
  alignas(Callback) std::byte m_storage[sizeof(Callback)];
};

}  // namespace this_fiber

/// Calls `function` within a this_fiber::CancelScope, and returns what it returns.
template <class Function>
decltype(auto) withCancel(std::stop_token token, Function&& function) {
  const this_fiber::CancelScope scope(std::move(token));
  return std::forward<Function>(function)();
}

}  // namespace sylar
