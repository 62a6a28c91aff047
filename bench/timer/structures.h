// The structures under test behind one face. Times are nanoseconds on a clock that the benchmark moves; deadlines are whole
// milliseconds, so that all structures agree on the order and their traces can be compared.
//
//   arm(i, deadline), cancel(i), move(i, deadline)    timer i of n
//   expire(now, fired)                                calls fired(i) for each that is due, in order
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sylar/clock.h"
#include "sylar/timer.h"
#include "sylar/timer/heap_queue.h"
#include "sylar/timer/timer_node.h"

namespace bench {

template <class Queue>
class OfQueue {
 public:
  explicit OfQueue(size_t n) : m_nodes(n) {}
  void arm(size_t i, int64_t deadline_ns) { m_queue.insert(m_nodes[i], deadline_ns); }
  void cancel(size_t i) { m_queue.erase(m_nodes[i]); }
  void move(size_t i, int64_t deadline_ns) { m_queue.update(m_nodes[i], deadline_ns); }
  template <class Fired>
  void expire(int64_t now_ns, Fired fired) {
    for (bool more = true; more;) {
      sylar::TimerList due;
      more = m_queue.expire(now_ns, 2'000, due);
      while (sylar::TimerNode* node = due.pop()) fired(static_cast<size_t>(node - m_nodes.data()));
    }
  }

 private:
  std::vector<sylar::TimerNode> m_nodes;
  Queue m_queue;
};

/// The lazy push, as a worker does it with the timeouts of its fibers (Worker::arm, Worker::expireTimeouts): a node stays linked
/// where it is, a later deadline is only noted, and so is none at all. No lock: the set has one owner.
class OfLazy {
 public:
  explicit OfLazy(size_t n) : m_timeouts(n) {}
  void arm(size_t i, int64_t deadline_ns) {
    Timeout& timeout = m_timeouts[i];
    timeout.deadline_ns = deadline_ns;
    if (!timeout.linked) {
      m_queue.insert(timeout, deadline_ns);
      timeout.linked = true;
    } else if (deadline_ns < timeout.TimerNode::deadline_ns) {
      m_queue.update(timeout, deadline_ns);
    }
  }
  void cancel(size_t i) { m_timeouts[i].deadline_ns = sylar::kNever; }
  void move(size_t i, int64_t deadline_ns) { arm(i, deadline_ns); }
  template <class Fired>
  void expire(int64_t now_ns, Fired fired) {
    while (m_queue.nextDue() <= now_ns) {
      sylar::TimerList due;
      m_queue.expire(now_ns, 1, due);
      auto& timeout = static_cast<Timeout&>(*due.pop());
      const auto i = static_cast<size_t>(&timeout - m_timeouts.data());
      timeout.linked = false;
      if (timeout.deadline_ns == sylar::kNever) continue;
      timeout.deadline_ns > now_ns ? arm(i, timeout.deadline_ns) : fired(i);
    }
  }

 private:
  struct Timeout : sylar::TimerNode {
    int64_t deadline_ns = sylar::kNever;  ///< hides the one at which it is linked
    bool linked = false;
  };
  std::vector<Timeout> m_timeouts;
  sylar::HeapQueue<4> m_queue;
};

/// What one writes who has no timer library.
class OfMultimap {
 public:
  explicit OfMultimap(size_t n) : m_where(n) {}
  void arm(size_t i, int64_t deadline_ns) { m_where[i] = m_map.emplace(deadline_ns, i); }
  void cancel(size_t i) { m_map.erase(m_where[i]); }
  void move(size_t i, int64_t deadline_ns) {
    cancel(i);
    arm(i, deadline_ns);
  }
  template <class Fired>
  void expire(int64_t now_ns, Fired fired) {
    while (!m_map.empty() && m_map.begin()->first <= now_ns) {
      const size_t i = m_map.begin()->second;
      m_map.erase(m_map.begin());
      fired(i);
    }
  }

 private:
  std::multimap<int64_t, size_t> m_map;
  std::vector<std::multimap<int64_t, size_t>::iterator> m_where;
};

class Manager : public sylar::TimerManager {
 public:
  Manager(const sylar::Clock& clock, sylar::TimerQueueKind kind) : sylar::TimerManager(clock, kind) {}
  ~Manager() override { close(); }

 protected:
  void onTimerInsertedAtFront() override {}
};

/// A manager with its lock, on a clock that costs nothing (CLOCK_MONOTONIC costs about 21 ns a call more).
template <sylar::TimerQueueKind Kind>
class OfManager {
 public:
  explicit OfManager(size_t n) : m_cells(n) {
    for (size_t i = 0; i < n; ++i) m_cells[i] = {this, i};
  }
  template <class Fired>
  void expire(int64_t now_ns, Fired fired) {
    m_fired.clear();
    m_clock.set(std::chrono::nanoseconds(now_ns));
    for (bool more = m_manager.nextDueNs() <= now_ns; more;) {
      m_due.clear();
      more = m_manager.collectDue(2'000, m_due);
      for (const auto& timer : m_due) timer->fire();
    }
    for (const size_t i : m_fired) fired(i);
  }

 protected:
  struct Cell {
    OfManager* owner = nullptr;
    size_t index = 0;
  };
  static void run(const Cell* cell) { cell->owner->m_fired.push_back(cell->index); }
  int64_t delay(int64_t deadline_ns) const { return deadline_ns - m_clock.nowNs(); }

  sylar::ManualClock m_clock;
  std::vector<Cell> m_cells;
  std::vector<size_t> m_fired;
  std::vector<sylar::Timer::ptr> m_due;
  Manager m_manager{m_clock, Kind};
};

/// startTimer, stopTimer.
template <sylar::TimerQueueKind Kind>
class OfIds : public OfManager<Kind> {
 public:
  explicit OfIds(size_t n) : OfManager<Kind>(n), m_ids(n) {}
  void arm(size_t i, int64_t deadline_ns) {
    m_ids[i] = this->m_manager.startTimer(std::chrono::nanoseconds(this->delay(deadline_ns)),
                                          [cell = &this->m_cells[i]] { OfManager<Kind>::run(cell); });
  }
  void cancel(size_t i) { this->m_manager.stopTimer(m_ids[i]); }
  void move(size_t i, int64_t deadline_ns) {
    cancel(i);
    arm(i, deadline_ns);
  }

 private:
  std::vector<sylar::TimerId> m_ids;
};

/// sylar's interface: addTimer, Timer::ptr.
template <sylar::TimerQueueKind Kind>
class OfTimers : public OfManager<Kind> {
 public:
  explicit OfTimers(size_t n) : OfManager<Kind>(n), m_timers(n) {}
  void arm(size_t i, int64_t deadline_ns) {
    m_timers[i] = this->m_manager.addTimer(static_cast<uint64_t>(this->delay(deadline_ns) / 1'000'000),
                                           [cell = &this->m_cells[i]] { OfManager<Kind>::run(cell); });
  }
  void cancel(size_t i) { m_timers[i]->cancel(); }
  void move(size_t i, int64_t deadline_ns) {
    m_timers[i]->reset(static_cast<uint64_t>(this->delay(deadline_ns) / 1'000'000), true);
  }

 private:
  std::vector<sylar::Timer::ptr> m_timers;
};

}  // namespace bench
