// Internal. A TimerQueue over std::set, ordered by (deadline, arming): the reference that the other queues are compared with,
// and good enough for small programs. insert, erase, update: O(log n); nextDue: O(1); the order is exact everywhere.
//
// Thread safety: none; the owner brings the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/timer/timer_node.h"
#include "sylar/timer/timer_queue.h"

namespace sylar::detail {

class OrderedSetQueue {
 public:
  /// May throw std::bad_alloc.
  OrderedSetQueue();
  OrderedSetQueue(const OrderedSetQueue&) = delete;
  OrderedSetQueue& operator=(const OrderedSetQueue&) = delete;

  /// May throw std::bad_alloc, and then nothing has changed. Allocates only if no tree node is left over. Up to kSpares of those
  /// that erase and expire free are kept.
  bool insert(TimerNode& node, int64_t deadline_ns);
  void erase(TimerNode& node);
  /// Never allocates.
  bool update(TimerNode& node, int64_t deadline_ns);

  int64_t nextDue() const;
  /// Returns the node that is due first, or null. For an owner that checks whether the node is still wanted.
  TimerNode* front() const { return m_set.empty() ? nullptr : *m_set.begin(); }
  bool expire(int64_t now_ns, size_t budget, TimerList& out);
  void drain(size_t budget, TimerList& out);
  void setAll(int64_t deadline_ns);

  size_t size() const { return m_set.size(); }
  bool empty() const { return m_set.empty(); }
  static constexpr int64_t granularityNs() { return 1; }
  void verify() const;

 private:
  struct Before {
    bool operator()(const TimerNode* a, const TimerNode* b) const;
  };
  using Set = std::set<TimerNode*, Before>;
  static constexpr size_t kSpares = 64;

  void stamp(TimerNode& node, int64_t deadline_ns);
  bool isFront(Set::iterator where) const;
  Set::iterator find(TimerNode& node);
  TimerNode* popFront();
  void recycle(Set::node_type&& handle);
  bool isDue(int64_t now_ns) const;

  Set m_set;
  std::vector<Set::node_type> m_spares;  ///< tree nodes for the next inserts; never grows beyond the kSpares reserved for it
  uint64_t m_armings = 0;
};

static_assert(TimerQueue<OrderedSetQueue>);

}  // namespace sylar::detail
