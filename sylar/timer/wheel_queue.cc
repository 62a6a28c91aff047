#include "sylar/timer/wheel_queue.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "sylar/check.h"

namespace sylar::detail {
namespace {

constexpr int kTickBits = 32;  // of all levels together
constexpr int kAhead = 8;      // nodes that are fetched while one is handled

// Returns how many bits of a tick lie below those of the slot's level: where the slot begins.
constexpr int shiftOf(uint32_t slot) { return slot < 256 ? 0 : static_cast<int>(2 + 6 * ((slot - 256) / 64 + 1)); }

}  // namespace

template <int64_t TickNs>
BasicWheelQueue<TickNs>::BasicWheelQueue() {
  for (TimerNode& head : m_slots) head.next = head.prev = &head;
}

template <int64_t TickNs>
bool BasicWheelQueue<TickNs>::insert(TimerNode& node, int64_t deadline_ns) {
  node.deadline_ns = deadline_ns;
  const Tick tick = tickOf(node);
  Slot slot = slotOf(tick);
  Tick bound = 0;  // somebody must be told if the node is due before this
  if (m_emptying != kNone) {
    if (tick < m_emptying_end) slot = m_emptying;
  } else if (const Slot first = firstSlot(); slot <= first) {
    bound = slot == first ? firstTick() : ~Tick{0};
    m_first_slot = slot;
    m_first_tick = std::min(bound, tick);
  }
  link(node, slot, tick);
  return tick < bound;
}

template <int64_t TickNs>
void BasicWheelQueue<TickNs>::erase(TimerNode& node) {
  SYLAR_CHECK(node.prev != nullptr);  // fails for a node that is not linked
  unlink(node);
}

template <int64_t TickNs>
bool BasicWheelQueue<TickNs>::update(TimerNode& node, int64_t deadline_ns) {
  erase(node);
  return insert(node, deadline_ns);
}

template <int64_t TickNs>
bool BasicWheelQueue<TickNs>::expire(int64_t now_ns, size_t budget, TimerList& out) {
  const Tick now = static_cast<Tick>(std::max<int64_t>(now_ns, 0) / TickNs);
  while (true) {
    const Slot slot = firstSlot();
    const Tick tick = slot == kNone ? kNeverTick : beginOf(slot);
    if (tick > now) {
      m_tick = std::max(m_tick, now);
      return false;
    }
    if (budget == 0) return nextDue() <= now_ns;
    if (slot != m_emptying) reach(slot);
    TimerNode& head = m_slots[slot];
    for (; budget > 0 && head.next != &head; --budget) {
      TimerNode& node = *head.next;
      prefetchAhead(node);
      unlink(node);
      slot < 256 ? out.push(&node) : moveDown(node);
    }
  }
}

template <int64_t TickNs>
void BasicWheelQueue<TickNs>::drain(size_t budget, TimerList& out) {
  for (; budget > 0 && !empty(); --budget) {
    SYLAR_DCHECK(firstSlot() < kSlots && occupied(firstSlot()));
    TimerNode& node = *m_slots[firstSlot()].next;
    unlink(node);
    out.push(&node);
  }
}

/// Takes out all nodes in order, through the whole of time, and goes back.
template <int64_t TickNs>
void BasicWheelQueue<TickNs>::takeAll(TimerList& out) {
  const Tick present = m_tick;
  const uint64_t cascaded = m_cascaded;
  expire(kNever, std::numeric_limits<size_t>::max(), out);
  while (!empty()) {  // nodes that are never due
    TimerNode& node = *m_slots[m_far].next;
    unlink(node);
    out.push(&node);
  }
  m_tick = present;
  m_cascaded = cascaded;
}

template <int64_t TickNs>
void BasicWheelQueue<TickNs>::setAll(int64_t deadline_ns) {
  TimerList all;
  takeAll(all);
  while (TimerNode* node = all.pop()) insert(*node, deadline_ns);
}

template <int64_t TickNs>
void BasicWheelQueue<TickNs>::verify() const {
  size_t linked = 0;
  for (Slot slot = 0; slot < kSlots; ++slot) {
    const TimerNode& head = m_slots[slot];
    SYLAR_CHECK_EQ(occupied(slot), head.next != &head);
    const TimerNode* before = &head;
    SYLAR_CHECK_EQ(m_words >> (slot / 64) & 1, m_bits[slot / 64] != 0 ? 1u : 0u);
    uint32_t count = 0;
    bool behind = m_behind[slot] == nullptr;
    for (const TimerNode* node = head.next; node != &head; before = node, node = node->next) {
      const Tick tick = tickOf(*node);
      SYLAR_CHECK(node->prev == before);
      SYLAR_CHECK_EQ(node->slot, slot);
      SYLAR_CHECK(slot == m_emptying ? tick < m_emptying_end : slotOf(tick) == slot);
      SYLAR_CHECK(slot != m_far || m_far_tick <= tick);
      behind |= node == m_behind[slot];
      ++count;
    }
    SYLAR_CHECK(behind);  // it is linked in this slot
    SYLAR_CHECK_EQ(count, m_counts[slot]);
    linked += count;
    SYLAR_CHECK(head.prev == before);
  }
  SYLAR_CHECK_EQ(linked, m_size);
  SYLAR_CHECK(m_emptying == kNone || occupied(m_emptying));
}

// Returns the tick at whose beginning the deadline has passed. A deadline in the very last tick, which is incomplete, is never
// reached.
template <int64_t TickNs>
typename BasicWheelQueue<TickNs>::Tick BasicWheelQueue<TickNs>::tickOf(int64_t deadline_ns) {
  if (deadline_ns <= 0) return 0;
  if (deadline_ns > kNever / TickNs * TickNs) return kNeverTick;
  return static_cast<Tick>((deadline_ns - 1) / TickNs + 1);
}

template <int64_t TickNs>
int64_t BasicWheelQueue<TickNs>::timeOf(Tick tick) {
  return tick > static_cast<Tick>(kNever / TickNs) ? kNever : static_cast<int64_t>(tick) * TickNs;
}

template <int64_t TickNs>
typename BasicWheelQueue<TickNs>::Tick BasicWheelQueue<TickNs>::tickOf(const TimerNode& node) const {
  return std::max(tickOf(node.deadline_ns), m_tick);
}

template <int64_t TickNs>
typename BasicWheelQueue<TickNs>::Slot BasicWheelQueue<TickNs>::slotOf(Tick tick) const {
  const Tick differing = tick ^ m_tick;
  if (differing < 256) return static_cast<Slot>(tick % 256);
  if (differing >> kTickBits != 0) return m_far;
  const int level = (std::bit_width(differing) - 9) / 6;  // above level 0
  return static_cast<Slot>(256 + 64 * level + static_cast<int>(tick >> (8 + 6 * level) & 63));
}

template <int64_t TickNs>
typename BasicWheelQueue<TickNs>::Tick BasicWheelQueue<TickNs>::beginOf(Slot slot) const {
  SYLAR_DCHECK(slot < kSlots);
  if (slot == m_emptying) return m_tick;
  if (slot >= kFar) return m_far_tick >> kTickBits << kTickBits;
  const int shift = shiftOf(slot);
  const int above = slot < 256 ? 8 : shift + 6;
  const Tick index = slot < 256 ? slot : slot % 64;
  return m_tick >> above << above | index << shift;
}

template <int64_t TickNs>
typename BasicWheelQueue<TickNs>::Tick BasicWheelQueue<TickNs>::spanOf(Slot slot) const {
  return slot >= kFar ? kNeverTick : Tick{1} << shiftOf(slot);
}

template <int64_t TickNs>
typename BasicWheelQueue<TickNs>::Slot BasicWheelQueue<TickNs>::firstSlot() const {
  if (m_emptying != kNone) return m_emptying;
  if (m_words == 0) return kNone;
  const auto word = static_cast<size_t>(std::countr_zero(m_words));
  return static_cast<Slot>(64 * word + static_cast<size_t>(std::countr_zero(m_bits[word])));
}

template <int64_t TickNs>
typename BasicWheelQueue<TickNs>::Tick BasicWheelQueue<TickNs>::firstTick() const {
  const Slot slot = firstSlot();
  if (slot == kNone) return kNeverTick;
  const Tick begin = beginOf(slot);
  if (slot < 256 || slot == m_emptying) return begin;
  if (m_counts[slot] > kFew) return slot == m_first_slot ? std::max(begin, m_first_tick) : begin;
  Tick first = kNeverTick;
  for (const TimerNode* node = m_slots[slot].next; node != &m_slots[slot]; node = node->next)
    first = std::min(first, tickOf(*node));
  return first;
}

/// Moves a node from a slot whose time has come to the slot of a lower level that is now its own.
template <int64_t TickNs>
void BasicWheelQueue<TickNs>::moveDown(TimerNode& node) {
  SYLAR_DCHECK(node.next == nullptr && node.prev == nullptr);
  const Tick tick = tickOf(node);
  const Slot slot = slotOf(tick);
  if (slot <= m_first_slot) {
    m_first_tick = slot == m_first_slot ? std::min(m_first_tick, tick) : tick;
    m_first_slot = slot;
  }
  link(node, slot, tick);
  ++m_cascaded;
}

/// Links the node behind its equals.
template <int64_t TickNs>
void BasicWheelQueue<TickNs>::link(TimerNode& node, Slot slot, Tick tick) {
  SYLAR_DCHECK(slot < kSlots && tick >= m_tick);
  if (slot == m_far) m_far_tick = occupied(slot) ? std::min(m_far_tick, tick) : tick;
  TimerNode& head = m_slots[slot];
  node.slot = slot;
  node.next = &head;
  node.prev = head.prev;
  head.prev = head.prev->next = &node;
  m_bits[slot / 64] |= uint64_t{1} << (slot % 64);
  m_words |= uint32_t{1} << (slot / 64);
  ++m_counts[slot];
  ++m_size;
  pointAhead(node);
}

// Walking a scattered list stalls on each next pointer. So a node also says, in `seq`, which a wheel has no other use for, how
// far away in memory the node is that was linked kAhead later. That is a hint to prefetch; after an erase it may be any address.
// Nodes erased in between make the lead shorter, so it is measured again now and then.
template <int64_t TickNs>
void BasicWheelQueue<TickNs>::pointAhead(TimerNode& tail) {
  SYLAR_DCHECK(tail.next == &m_slots[tail.slot]);  // the last of its slot
  tail.seq = 0;
  TimerNode*& behind = m_behind[tail.slot];
  if (behind != nullptr) {
    behind->seq = static_cast<uint32_t>((reinterpret_cast<intptr_t>(&tail) - reinterpret_cast<intptr_t>(behind)) / 8);
    behind = behind->next;
  }
  if (++m_links % 64 == 0) measureBehind(tail);
}

template <int64_t TickNs>
void BasicWheelQueue<TickNs>::measureBehind(TimerNode& tail) {
  TimerNode*& behind = m_behind[tail.slot];
  const TimerNode* const head = &m_slots[tail.slot];
  behind = &tail;
  for (int i = 1; i < kAhead && behind != head; ++i) behind = behind->prev;
  if (behind == head) behind = nullptr;
}

template <int64_t TickNs>
void BasicWheelQueue<TickNs>::prefetchAhead(const TimerNode& node) {
  __builtin_prefetch(
      reinterpret_cast<const void*>(reinterpret_cast<intptr_t>(&node) + intptr_t{static_cast<int32_t>(node.seq)} * 8), 1);
}

template <int64_t TickNs>
void BasicWheelQueue<TickNs>::unlink(TimerNode& node) {
  SYLAR_DCHECK(node.slot < kSlots && m_counts[node.slot] > 0 && m_size > 0);
  SYLAR_DCHECK(node.next->prev == &node && node.prev->next == &node);
  if (node.next == node.prev) {  // both are the slot's head
    const size_t word = node.slot / 64;
    m_bits[word] &= ~(uint64_t{1} << (node.slot % 64));
    if (m_bits[word] == 0) m_words &= ~(uint32_t{1} << word);
    if (node.slot == m_emptying) m_emptying = kNone;
  }
  if (m_behind[node.slot] == &node) m_behind[node.slot] = nullptr;
  node.next->prev = node.prev;
  node.prev->next = node.next;
  node.next = node.prev = nullptr;
  --m_counts[node.slot];
  --m_size;
}

/// Moves the present to the first slot, whose time has come.
template <int64_t TickNs>
void BasicWheelQueue<TickNs>::reach(Slot slot) {
  SYLAR_DCHECK(occupied(slot) && beginOf(slot) >= m_tick);  // time never goes back
  SYLAR_DCHECK(m_emptying == kNone);
  m_tick = beginOf(slot);
  if (slot < 256) return;
  m_first_slot = kNone;
  m_emptying = slot;
  m_emptying_end = slot < kFar ? m_tick + spanOf(slot) : ~Tick{0};
  if (slot == m_far) m_far = slot == kFar ? kFar + 1 : kFar;
}

template class BasicWheelQueue<1'000'000>;
template class BasicWheelQueue<10'000'000>;

}  // namespace sylar::detail
