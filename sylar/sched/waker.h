// Internal. The right to end one wait of one fiber. Copies may be handed to everything that may end the wait, and the first
// wins.
//
// Thread safety: all calls from any thread. May suspend: no.
#pragma once

#include "sylar/base/internal.h"
#include "sylar/check.h"
#include "sylar/fiber/fiber_core.h"

namespace sylar::detail {

/// `Core` has a wait word, `wait`. The deliver functions are specialised for it.
template <class Core>
struct WakerOf {
  Core* core = nullptr;
  uint64_t epoch = 0;

  /// Does the first half of a wake, which is allowed under a lock. Returns true for the one winner, which owns the core until it
  /// delivers it.
  [[nodiscard]] bool claim(WakeReason reason) const {
    SYLAR_DCHECK(core != nullptr);
    return core->wait.claim(epoch, reason);
  }

  /// Does the second half, never under a lock: makes the fiber runnable on its home worker. Touch nothing of it afterwards.
  static void deliver(Core& core);
  /// Delivers through the mailbox of the home worker, even on that worker's own thread. For a signal handler, which may have
  /// interrupted the worker at its run queue.
  static void deliverByMail(Core& core);

  /// Does both halves. Returns false if the wait has ended or is decided, and then nothing happened.
  bool wake(WakeReason reason) const {
    if (!claim(reason)) return false;
    deliver(*core);
    return true;
  }
};

using Waker = WakerOf<FiberCore>;
template <>
void Waker::deliver(FiberCore& core);
template <>
void Waker::deliverByMail(FiberCore& core);

}  // namespace sylar::detail
