// Internal. The contract of every timer queue, whatever its structure. Single-threaded: the owner brings the lock.
//
//   insert(node, deadline) -> bool   node is not linked; true: it is now strictly the earliest, so a sleeper until nextDue()
//                                    must be told. A queue whose nextDue() is a bound may say false if the node is not due before
//                                    it
//   erase(node)                      node is linked; never allocates
//   update(node, deadline) -> bool   erase + insert in one, with the same result
//   nextDue() -> int64_t             never later than the true earliest deadline; kNever only if nothing ever falls due
//   expire(now, budget, out) -> bool appends due nodes, unlinked, in (deadline, arming) order; hands out or moves inside at most
//                                    `budget` nodes. True iff nextDue() <= now: call again. With a `now` before that of an
//                                    earlier call, what was due then. A deadline of kNever is never due
//   drain(budget, out)               appends at most `budget` nodes, unlinked, in no particular order; O(log n) for each
//   setAll(deadline)                 every node is due at `deadline`, in the present order; never allocates
//   size(), empty()
//   granularityNs() -> int64_t       1: exact. Else deadlines count as the next multiple of it, one that is past when it is armed
//                                    counts as the present, and nextDue() is a lower bound
//   verify()                         checks the structure's invariants; for tests
//
// Equal deadlines come out in arming order. insert and update may throw std::bad_alloc, then nothing has changed.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/timer/timer_node.h"

namespace sylar::detail {

template <class Queue>
concept TimerQueue = requires(Queue queue, const Queue& constant, TimerNode& node, TimerList& out, int64_t ns, size_t budget) {
  { queue.insert(node, ns) } -> std::same_as<bool>;
  { queue.erase(node) } -> std::same_as<void>;
  { queue.update(node, ns) } -> std::same_as<bool>;
  { constant.nextDue() } -> std::same_as<int64_t>;
  { queue.expire(ns, budget, out) } -> std::same_as<bool>;
  { queue.drain(budget, out) } -> std::same_as<void>;
  { queue.setAll(ns) } -> std::same_as<void>;
  { constant.size() } -> std::same_as<size_t>;
  { constant.empty() } -> std::same_as<bool>;
  { constant.granularityNs() } -> std::same_as<int64_t>;
  { constant.verify() } -> std::same_as<void>;
};

}  // namespace sylar::detail
