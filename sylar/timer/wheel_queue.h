// Internal. A TimerQueue over design 001's hierarchical wheel: 256 slots of one tick and four levels of 64 slots, 2^32 ticks
// together, and one more list for what is further away. insert, erase, update: O(1), and no allocation ever. Deadlines count as
// the next multiple of a tick, so a node falls due up to one tick late, never early.
//
// A node lies at the level of the highest bit in which its tick differs from the present one (tokio's rule). From that follows:
//  - all nodes of one tick are in the same slot, in arming order, and move down together: FIFO needs no sorting;
//  - every occupied slot lies ahead of the present within its level, and all of a lower level is due before all of a higher one.
//    So the first set bit of the bitmaps is the first slot. No level has a cursor of its own, which was design 001's defect.
//
// Time moves from occupied slot to occupied slot, in expire() only. When it reaches a slot of a higher level, that slot is
// emptied node by node (m_emptying). Until it is empty, what belongs to its span queues up behind it. So the work can be cut
// anywhere.
//
// Thread safety: none; the owner brings the lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/timer/timer_node.h"
#include "sylar/timer/timer_queue.h"

namespace sylar::detail {

/// `TickNs`: the length of a tick in nanoseconds.
template <int64_t TickNs>
class BasicWheelQueue {
 public:
  BasicWheelQueue();
  BasicWheelQueue(const BasicWheelQueue&) = delete;
  BasicWheelQueue& operator=(const BasicWheelQueue&) = delete;

  bool insert(TimerNode& node, int64_t deadline_ns);
  void erase(TimerNode& node);
  bool update(TimerNode& node, int64_t deadline_ns);

  /// Exact while the first occupied slot is of one tick or holds at most kFew nodes, else a bound within that slot. It moves
  /// nearer only where insert or update say so.
  int64_t nextDue() const { return timeOf(firstTick()); }
  bool expire(int64_t now_ns, size_t budget, TimerList& out);
  void drain(size_t budget, TimerList& out);
  void setAll(int64_t deadline_ns);

  size_t size() const { return m_size; }
  bool empty() const { return m_size == 0; }
  static constexpr int64_t granularityNs() { return TickNs; }
  /// Returns the present. A node that is armed for an earlier time counts as armed for now. Not later than the `now` of the last
  /// expire().
  int64_t presentNs() const { return timeOf(m_tick); }
  /// Returns how many nodes expire() has moved from a higher level to a lower one. setAll() does not count.
  uint64_t cascaded() const { return m_cascaded; }
  void verify() const;

  static constexpr size_t kFew = 8;

 private:
  using Tick = uint64_t;
  using Slot = uint32_t;

  /// 0..255: level 0. 256 + 64 * (level - 1) + 0..63: levels 1 to 4. Then two lists for what is beyond 2^32 ticks: one to fill
  /// while the other is emptied.
  static constexpr Slot kFar = 512;
  static constexpr Slot kSlots = 514;
  static constexpr Slot kNone = ~Slot{0};
  static constexpr Tick kNeverTick = ~Tick{0} >> 1;
  static_assert(TickNs >= 1000, "a shorter tick makes too many looks at the far list");

  // Inlined, because each is a few instructions, at several places on the way of every timer.
  [[gnu::always_inline]] static inline Tick tickOf(int64_t deadline_ns);
  static int64_t timeOf(Tick tick);
  [[gnu::always_inline]] inline Tick tickOf(const TimerNode& node) const;
  [[gnu::always_inline]] inline Slot slotOf(Tick tick) const;
  Tick beginOf(Slot slot) const;
  Tick spanOf(Slot slot) const;

  [[gnu::always_inline]] inline Slot firstSlot() const;
  Tick firstTick() const;
  bool occupied(Slot slot) const { return m_bits[slot / 64] >> (slot % 64) & 1; }
  void moveDown(TimerNode& node);
  [[gnu::always_inline]] inline void link(TimerNode& node, Slot slot, Tick tick);
  [[gnu::always_inline]] inline void unlink(TimerNode& node);
  void reach(Slot slot);
  void takeAll(TimerList& out);
  [[gnu::always_inline]] inline void pointAhead(TimerNode& tail);
  void measureBehind(TimerNode& tail);
  [[gnu::always_inline]] static inline void prefetchAhead(const TimerNode& node);

  std::array<TimerNode, kSlots> m_slots;           ///< heads of circular lists
  std::array<uint64_t, kSlots / 64 + 1> m_bits{};  ///< the slots that are occupied
  uint32_t m_words = 0;                            ///< the words of m_bits that are not 0
  std::array<uint32_t, kSlots> m_counts{};         ///< nodes in each slot
  std::array<TimerNode*, kSlots> m_behind{};       ///< in each slot: the node to point at the next one that is linked, or null
  uint32_t m_links = 0;                            ///< how often a node was linked
  Tick m_tick = 0;                                 ///< the present
  Tick m_far_tick = 0;                             ///< not later than any in the far list, if that is occupied
  Slot m_far = kFar;                               ///< the far list to fill
  Slot m_emptying = kNone;                         ///< a slot of a higher level whose time has come; occupied
  Tick m_emptying_end = 0;                         ///< what is due before this belongs behind it
  Slot m_first_slot = kNone;                       ///< the first slot, when something was last armed in it,
  Tick m_first_tick = 0;                           ///< and a bound of what is in it
  size_t m_size = 0;
  uint64_t m_cascaded = 0;
};

using WheelQueue = BasicWheelQueue<1'000'000>;
using WheelQueue10Ms = BasicWheelQueue<10'000'000>;

extern template class BasicWheelQueue<1'000'000>;
extern template class BasicWheelQueue<10'000'000>;
static_assert(TimerQueue<WheelQueue> && TimerQueue<WheelQueue10Ms>);

}  // namespace sylar::detail
