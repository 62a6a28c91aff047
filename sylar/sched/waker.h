// Internal. The right to end one wait of one fiber. Copies may be handed to whatever may end it; the first wins.
//
// Thread safety: all calls from any thread. None suspends.
#pragma once

#include "sylar/fiber/fiber_core.h"

namespace sylar {

/// `Core` has a wait word, `wait`; where it is delivered is specialised for it.
template <class Core>
struct WakerOf {
  Core* core = nullptr;
  uint64_t epoch = 0;

  /// First half of a wake, allowed under a lock: true for the one winner, who owns the core until it delivers it.
  [[nodiscard]] bool claim(WakeReason reason) const { return core->wait.claim(epoch, reason); }

  /// Second half, never under a lock: makes the fiber runnable on its home worker. Touch nothing of it afterwards.
  static void deliver(Core& core);
  /// The same through the mailbox of the home worker, whose thread this may be: for a signal handler, which may have interrupted
  /// the worker at its run queue.
  static void deliverByMail(Core& core);

  /// Both halves. False: the wait has ended or is decided; nothing happened.
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

}  // namespace sylar
