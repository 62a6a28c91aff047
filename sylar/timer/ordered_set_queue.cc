#include "sylar/timer/ordered_set_queue.h"

#include <utility>

#include "sylar/check.h"

namespace sylar::detail {
namespace {

// The queue's own note takes the upper half of the arming number. A tree that searches by its order must never see that order
// turn, which 32 bits would after 2^31 armings beside a timer that is never due.
uint64_t arming(const TimerNode& node) { return static_cast<uint64_t>(node.slot) << 32 | node.seq; }

}  // namespace

bool OrderedSetQueue::Before::operator()(const TimerNode* a, const TimerNode* b) const {
  if (a->deadline_ns != b->deadline_ns) return a->deadline_ns < b->deadline_ns;
  return arming(*a) < arming(*b);
}

OrderedSetQueue::OrderedSetQueue() { m_spares.reserve(kSpares); }

bool OrderedSetQueue::insert(TimerNode& node, int64_t deadline_ns) {
  stamp(node, deadline_ns);
  if (m_spares.empty()) return isFront(m_set.insert(&node).first);
  Set::node_type handle = std::move(m_spares.back());
  m_spares.pop_back();
  handle.value() = &node;
  return isFront(m_set.insert(std::move(handle)).position);
}

void OrderedSetQueue::erase(TimerNode& node) { recycle(m_set.extract(find(node))); }

bool OrderedSetQueue::update(TimerNode& node, int64_t deadline_ns) {
  Set::node_type handle = m_set.extract(find(node));
  stamp(node, deadline_ns);
  return isFront(m_set.insert(std::move(handle)).position);
}

int64_t OrderedSetQueue::nextDue() const { return m_set.empty() ? kNever : (*m_set.begin())->deadline_ns; }

bool OrderedSetQueue::expire(int64_t now_ns, size_t budget, TimerList& out) {
  for (; budget > 0 && isDue(now_ns); --budget) out.push(popFront());
  return isDue(now_ns);
}

void OrderedSetQueue::drain(size_t budget, TimerList& out) {
  for (; budget > 0 && !m_set.empty(); --budget) out.push(popFront());
}

// Done in place, because the tree's order stays what it is, now by arming alone.
void OrderedSetQueue::setAll(int64_t deadline_ns) {
  for (TimerNode* node : m_set) stamp(*node, deadline_ns);
}

void OrderedSetQueue::verify() const {
  SYLAR_CHECK(m_spares.size() <= kSpares && m_spares.capacity() >= kSpares);
  const TimerNode* last = nullptr;
  size_t linked = 0;
  for (const TimerNode* node : m_set) {
    SYLAR_CHECK(last == nullptr || Before{}(last, node));
    SYLAR_CHECK_LE(arming(*node), m_armings);
    last = node;
    ++linked;
  }
  SYLAR_CHECK_EQ(linked, m_set.size());
}

void OrderedSetQueue::stamp(TimerNode& node, int64_t deadline_ns) {
  ++m_armings;
  node.deadline_ns = deadline_ns;
  node.seq = static_cast<uint32_t>(m_armings);
  node.slot = static_cast<uint32_t>(m_armings >> 32);
}

// The latest arming goes behind its equals, so a node that lands in front is strictly the earliest.
bool OrderedSetQueue::isFront(Set::iterator where) const { return where == m_set.begin(); }

OrderedSetQueue::Set::iterator OrderedSetQueue::find(TimerNode& node) {
  const auto where = m_set.find(&node);
  SYLAR_CHECK(where != m_set.end() && *where == &node);  // fails for a node that is not linked here
  return where;
}

TimerNode* OrderedSetQueue::popFront() {
  SYLAR_DCHECK(!m_set.empty());
  Set::node_type handle = m_set.extract(m_set.begin());
  TimerNode* node = handle.value();
  recycle(std::move(handle));
  return node;
}

void OrderedSetQueue::recycle(Set::node_type&& handle) {
  SYLAR_DCHECK(!handle.empty());
  if (m_spares.size() < kSpares) m_spares.push_back(std::move(handle));
}

bool OrderedSetQueue::isDue(int64_t now_ns) const {
  return !m_set.empty() && (*m_set.begin())->deadline_ns <= now_ns && (*m_set.begin())->deadline_ns != kNever;
}

}  // namespace sylar::detail
