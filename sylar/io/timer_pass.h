// Internal. One pass of a worker over its manager's public timers (protocol P4): the order of its steps, and when it is skipped.
#pragma once

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Makes a pass and returns true if more is due. The worker was either `woken` by the timers' descriptor, which wakes only one
/// sleeper, or comes by on an iteration of its own.
///
///   pass.begun()       all callbacks that this worker collected last have begun
///   pass.queued()      how much work waits in this worker's own queue
///   pass.collect()     takes a bounded batch; true if more is due
///   pass.found()       the batch is not empty
///   pass.rearm()       sets the descriptor to the present earliest timer; if that is due, this wakes the next sleeper
///   pass.queue()       queues a fiber for the batch
///
/// A worker that comes by collects nothing while callbacks wait in its own queue, because they would pile up and it is about to
/// run them. Callbacks that were stolen from it do not count: they are with the thief, which may have no processor. A worker that
/// was woken always collects, whatever waits in its queue, because nobody else is woken for the timers that are due.
template <class Pass>
bool passOverTimers(Pass& pass, bool woken) {
  if (!woken && !pass.begun() && pass.queued() > 0) return false;
  const bool more = pass.collect();
  if (!pass.found() && !woken) return false;  // another worker is at it
  pass.rearm();
  if (pass.found()) pass.queue();
  return more;
}

}  // namespace sylar::detail
