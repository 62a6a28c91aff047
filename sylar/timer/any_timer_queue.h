// Internal. A TimerQueue whose structure is chosen when it is made. It counts the nodes that will fall due, because a wheel's
// nextDue() may be a bound that was left by a node which is gone.
//
// Thread safety: none; the owner brings the lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "sylar/base/internal.h"
#include "sylar/clock.h"
#include "sylar/timer.h"
#include "sylar/timer/heap_queue.h"
#include "sylar/timer/ordered_set_queue.h"
#include "sylar/timer/timer_queue.h"
#include "sylar/timer/wheel_queue.h"

namespace sylar::detail {

class AnyTimerQueue {
 public:
  explicit AnyTimerQueue(TimerQueueKind kind) {
    switch (kind) {
      case TimerQueueKind::kFourAryHeap: m_queue.emplace<HeapQueue<4>>(); break;
      case TimerQueueKind::kBinaryHeap: m_queue.emplace<HeapQueue<2>>(); break;
      case TimerQueueKind::kOrderedSet: m_queue.emplace<OrderedSetQueue>(); break;
      case TimerQueueKind::kWheel: m_queue.emplace<WheelQueue>(); break;
      case TimerQueueKind::kWheel10Ms: m_queue.emplace<WheelQueue10Ms>(); break;
    }
  }

  bool insert(TimerNode& node, int64_t deadline_ns) {
    const bool front = std::visit([&](auto& queue) { return queue.insert(node, deadline_ns); }, m_queue);
    m_finite += isFinite(deadline_ns);
    return front;
  }
  void erase(TimerNode& node) {
    m_finite -= isFinite(node.deadline_ns);
    std::visit([&](auto& queue) { queue.erase(node); }, m_queue);
  }
  bool update(TimerNode& node, int64_t deadline_ns) {
    m_finite += isFinite(deadline_ns);
    m_finite -= isFinite(node.deadline_ns);
    return std::visit([&](auto& queue) { return queue.update(node, deadline_ns); }, m_queue);
  }
  /// Returns true if a node has a deadline other than kNever.
  bool anyFinite() const { return m_finite > 0; }
  int64_t nextDue() const {
    return anyFinite() ? std::visit([](const auto& queue) { return queue.nextDue(); }, m_queue) : kNever;
  }
  bool expire(int64_t now_ns, size_t budget, TimerList& out) {
    const size_t before = size();
    const bool more = std::visit([&](auto& queue) { return queue.expire(now_ns, budget, out); }, m_queue);
    m_finite -= before - size();
    return more;
  }
  /// Afterwards anyFinite() may be true until the queue is empty.
  void drain(size_t budget, TimerList& out) {
    std::visit([&](auto& queue) { queue.drain(budget, out); }, m_queue);
    m_finite = std::min(m_finite, size());
  }
  void setAll(int64_t deadline_ns) {
    std::visit([&](auto& queue) { queue.setAll(deadline_ns); }, m_queue);
    m_finite = isFinite(deadline_ns) ? size() : 0;
  }
  size_t size() const {
    return std::visit([](const auto& queue) { return queue.size(); }, m_queue);
  }
  bool empty() const { return size() == 0; }
  int64_t granularityNs() const {
    return std::visit([](const auto& queue) { return queue.granularityNs(); }, m_queue);
  }
  /// Returns how many nodes a wheel moved inside, or 0 for a structure that moves none.
  uint64_t cascaded() const {
    return std::visit(
        [](const auto& queue) -> uint64_t {
          if constexpr (requires { queue.cascaded(); }) return queue.cascaded();
          return 0;
        },
        m_queue);
  }
  void verify() const {
    std::visit([](const auto& queue) { queue.verify(); }, m_queue);
  }

 private:
  static bool isFinite(int64_t deadline_ns) { return deadline_ns != kNever; }

  size_t m_finite = 0;
  std::variant<HeapQueue<4>, HeapQueue<2>, OrderedSetQueue, WheelQueue, WheelQueue10Ms> m_queue;
};

static_assert(TimerQueue<AnyTimerQueue>);

}  // namespace sylar::detail
