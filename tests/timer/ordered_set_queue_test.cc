#include "sylar/timer/ordered_set_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

#include "tests/support/seed.h"
namespace sylar {
namespace {

std::vector<TimerNode*> popAll(TimerList& list) {
  std::vector<TimerNode*> nodes;
  while (TimerNode* node = list.pop()) nodes.push_back(node);
  return nodes;
}

TEST(OrderedSetQueue, EmptyQueueNeverFallsDue) {
  OrderedSetQueue queue;
  TimerList due;
  EXPECT_EQ(queue.nextDue(), kNever);
  EXPECT_FALSE(queue.expire(kNever, 10, due));
  EXPECT_TRUE(due.empty());
  EXPECT_TRUE(queue.empty());
}

TEST(OrderedSetQueue, InsertSaysWhetherTheNodeIsStrictlyTheEarliest) {
  OrderedSetQueue queue;
  std::array<TimerNode, 4> nodes;
  EXPECT_TRUE(queue.insert(nodes[0], 100));
  EXPECT_FALSE(queue.insert(nodes[1], 200));
  EXPECT_FALSE(queue.insert(nodes[2], 100));
  EXPECT_TRUE(queue.insert(nodes[3], 99));
  EXPECT_EQ(queue.nextDue(), 99);
}

TEST(OrderedSetQueue, UpdateSaysWhetherTheNodeIsStrictlyTheEarliest) {
  OrderedSetQueue queue;
  std::array<TimerNode, 3> nodes;
  queue.insert(nodes[0], 100);
  queue.insert(nodes[1], 200);
  queue.insert(nodes[2], 300);
  EXPECT_TRUE(queue.update(nodes[2], 50));
  EXPECT_TRUE(queue.update(nodes[2], 60));
  EXPECT_FALSE(queue.update(nodes[1], 60));
  EXPECT_FALSE(queue.update(nodes[2], 400));
  EXPECT_EQ(queue.nextDue(), 60);
}

TEST(OrderedSetQueue, EqualDeadlinesComeOutInArmingOrder) {
  OrderedSetQueue queue;
  std::array<TimerNode, 4> nodes;
  for (auto& node : nodes) queue.insert(node, 7);
  queue.update(nodes[1], 7);
  TimerList due;
  EXPECT_FALSE(queue.expire(7, 10, due));
  EXPECT_EQ(popAll(due), (std::vector{&nodes[0], &nodes[2], &nodes[3], &nodes[1]}));
}

TEST(OrderedSetQueue, ExpiryResumesWhereTheBudgetCutIt) {
  OrderedSetQueue queue;
  std::array<TimerNode, 5> nodes;
  for (size_t i = 0; i < nodes.size(); ++i) queue.insert(nodes[i], static_cast<int64_t>(10 - i));
  TimerList due;
  EXPECT_TRUE(queue.expire(10, 0, due));
  EXPECT_TRUE(due.empty());
  EXPECT_TRUE(queue.expire(10, 2, due));
  EXPECT_FALSE(queue.expire(10, 3, due));
  EXPECT_EQ(popAll(due), (std::vector{&nodes[4], &nodes[3], &nodes[2], &nodes[1], &nodes[0]}));
}

TEST(OrderedSetQueue, NeverIsNeverDueButDrained) {
  OrderedSetQueue queue;
  TimerNode never;
  EXPECT_TRUE(queue.insert(never, kNever));
  TimerList out;
  EXPECT_FALSE(queue.expire(kNever, 1, out));
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(queue.size(), 1u);
  queue.drain(out);
  EXPECT_EQ(out.pop(), &never);
  EXPECT_TRUE(queue.empty());
}

TEST(OrderedSetQueue, SetAllKeepsTheOrder) {
  OrderedSetQueue queue;
  std::array<TimerNode, 5> nodes;
  const std::array<int64_t, 5> deadlines{kNever, 30, 7, 30, 50};
  for (size_t i = 0; i < nodes.size(); ++i) queue.insert(nodes[i], deadlines[i]);
  queue.setAll(40);
  queue.verify();
  EXPECT_EQ(queue.nextDue(), 40);
  TimerNode later;
  EXPECT_FALSE(queue.insert(later, 40));
  TimerList due;
  EXPECT_FALSE(queue.expire(40, 10, due));
  EXPECT_EQ(popAll(due), (std::vector{&nodes[2], &nodes[1], &nodes[3], &nodes[4], &nodes[0], &later}));
}

TEST(OrderedSetQueueDeathTest, EraseOfANodeThatIsNotLinkedAborts) {
  OrderedSetQueue queue;
  TimerNode node;
  queue.insert(node, 1);
  queue.erase(node);
  EXPECT_DEATH(queue.erase(node), "check failed");
}

/// The queue beside a vector that is searched from end to end. Every operation is done on both and compared.
class Model {
 public:
  explicit Model(uint64_t seed) : m_random(seed), m_nodes(64), m_armed(64) {}

  void step() {
    const size_t i = m_random() % m_nodes.size();
    switch (m_random() % 8) {
      case 0: expire(0); break;
      case 1: expire(m_random() % 5); break;
      case 2: m_now += static_cast<int64_t>(m_random() % 20); break;
      case 3: m_armed[i].linked ? erase(i) : arm(i); break;
      case 4:
        if (m_random() % 64 == 0) drain();
        if (m_random() % 64 == 0) setAll();
        break;
      default: arm(i); break;
    }
    check();
  }

 private:
  struct Armed {
    bool linked = false;
    int64_t deadline_ns = 0;
    uint64_t arming = 0;
    auto key() const { return std::pair(deadline_ns, arming); }
  };

  int64_t randomDeadline() {
    switch (m_random() % 10) {
      case 0: return kNever;
      case 1: return m_now;
      case 2: return m_now + static_cast<int64_t>(m_random() >> 2);
      default: return m_now + static_cast<int64_t>(m_random() % 30) - 5;
    }
  }

  void arm(size_t i) {
    const int64_t deadline_ns = randomDeadline();
    const bool was_linked = std::exchange(m_armed[i].linked, false);
    const bool front = std::none_of(m_armed.begin(), m_armed.end(),
                                    [&](const Armed& other) { return other.linked && other.deadline_ns <= deadline_ns; });
    EXPECT_EQ(was_linked ? m_queue.update(m_nodes[i], deadline_ns) : m_queue.insert(m_nodes[i], deadline_ns), front);
    m_armed[i] = {true, deadline_ns, ++m_armings};
  }

  void erase(size_t i) {
    m_queue.erase(m_nodes[i]);
    unlink(i);
  }

  void unlink(size_t i) { m_armed[i].linked = false; }

  /// The index of the earliest, or the number of nodes.
  size_t front() const {
    size_t best = m_nodes.size();
    for (size_t i = 0; i < m_nodes.size(); ++i) {
      if (m_armed[i].linked && (best == m_nodes.size() || m_armed[i].key() < m_armed[best].key())) best = i;
    }
    return best;
  }
  bool isDue(size_t i) const { return i < m_nodes.size() && m_armed[i].deadline_ns <= m_now && m_armed[i].deadline_ns != kNever; }

  void expire(size_t budget) {
    TimerList due;
    const bool more = m_queue.expire(m_now, budget, due);
    for (TimerNode* node : popAll(due)) {
      ASSERT_GT(budget--, 0u);
      const size_t expected = front();
      ASSERT_TRUE(isDue(expected));
      ASSERT_EQ(node, &m_nodes[expected]);
      unlink(expected);
    }
    EXPECT_EQ(more, isDue(front()));
    EXPECT_TRUE(budget == 0 || !more);
  }

  void drain() {
    TimerList all;
    m_queue.drain(all);
    for (TimerNode* node : popAll(all)) {
      const size_t expected = front();
      ASSERT_EQ(node, &m_nodes[expected]);
      unlink(expected);
    }
    EXPECT_TRUE(m_queue.empty());
  }

  void setAll() {
    const int64_t deadline_ns = randomDeadline();
    m_queue.setAll(deadline_ns);
    std::vector<size_t> order;
    for (size_t i = front(); i < m_nodes.size(); i = front()) {
      order.push_back(i);
      unlink(i);
    }
    for (const size_t i : order) m_armed[i] = {true, deadline_ns, ++m_armings};
  }

  void check() {
    m_queue.verify();
    const size_t first = front();
    EXPECT_EQ(m_queue.nextDue(), first == m_nodes.size() ? kNever : m_armed[first].deadline_ns);
    EXPECT_EQ(m_queue.front(), first == m_nodes.size() ? nullptr : &m_nodes[first]);
    const auto linked = std::count_if(m_armed.begin(), m_armed.end(), [](const Armed& armed) { return armed.linked; });
    ASSERT_EQ(m_queue.size(), static_cast<size_t>(linked));
    EXPECT_EQ(m_queue.empty(), linked == 0);
  }

  std::mt19937_64 m_random;
  std::vector<TimerNode> m_nodes;
  std::vector<Armed> m_armed;
  OrderedSetQueue m_queue;
  int64_t m_now = 1'000;
  uint64_t m_armings = 0;
};

// nothing early, lost or twice; the order; the budget.
TEST(OrderedSetQueue, BehavesLikeASortedVector) {
  Model model(test::seed());
  for (int i = 0; i < 100'000 && !testing::Test::HasFailure(); ++i) model.step();
}

}  // namespace
}  // namespace sylar
