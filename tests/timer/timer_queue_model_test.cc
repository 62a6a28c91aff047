// Random operations on every queue, each compared with a vector that is searched from end to end. A list of operations that fails
// is cut down before it is shown. SYLAR_TEST_SEED repeats a run, SYLAR_TEST_ROUNDS sets how many lists are tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/seed.h"
#include "tests/timer/queues.h"

namespace sylar {
namespace {

constexpr size_t kNodes = 64;
constexpr size_t kListLength = 1'000;

struct Op {
  enum Kind { kArm, kErase, kAdvance, kAdvanceToNextDue, kExpire, kExpireAndRearm, kDrain, kSetAll } kind;
  size_t node;
  int64_t ns;  ///< a delay, a step of time
  size_t budget;

  std::string text() const {
    constexpr std::array names{"arm",   "erase",  "advance", "advance to next due", "expire", "expire and re-arm",
                               "drain", "set all"};
    std::ostringstream out;
    out << names[kind] << " node " << node << " by " << ns << " budget " << budget;
    return out.str();
  }
};

/// A time that lies at the edge of something, in every range up to 2^33 ticks.
int64_t randomNs(std::mt19937_64& random, int64_t tick_ns) {
  constexpr std::array<int, 7> kLevels{0, 8, 14, 20, 26, 32, 33};
  const int64_t broken = random() % 2 == 0 ? 0 : static_cast<int64_t>(random() % static_cast<uint64_t>(tick_ns));
  const int64_t ticks = (int64_t{1} << kLevels[random() % kLevels.size()]) + static_cast<int64_t>(random() % 3) - 1;
  const int64_t below = static_cast<int64_t>(random() % static_cast<uint64_t>(ticks + 1));
  return (random() % 2 == 0 ? ticks : below) * tick_ns + broken;
}

std::vector<Op> randomOps(std::mt19937_64& random, int64_t tick_ns) {
  std::vector<Op> ops;
  for (size_t i = 0; i < kListLength; ++i) {
    Op op{Op::kArm, random() % kNodes, randomNs(random, tick_ns), random() % 5};
    switch (random() % 16) {
      case 0:
      case 1: op.kind = Op::kExpire; break;
      case 2: op = {Op::kExpire, 0, 0, ~size_t{0}}; break;
      case 3: op.kind = Op::kExpireAndRearm; break;
      case 4:
      case 5: op.kind = Op::kAdvance; break;
      case 6: op.kind = Op::kAdvanceToNextDue; break;
      case 7:
      case 8: op.kind = Op::kErase; break;
      case 9: op.ns = random() % 2 == 0 ? kNever : -op.ns; break;  // arm, for never or for the past
      case 10:
        if (random() % 64 == 0) op.kind = random() % 2 == 0 ? Op::kDrain : Op::kSetAll;
        break;
      default: op.ns %= 30 * tick_ns; break;
    }
    if (op.kind == Op::kAdvance && random() % 4 != 0) op.ns %= 300 * tick_ns;
    ops.push_back(op);
  }
  return ops;
}

/// The queue beside the vector.
template <class Queue>
class Model {
 public:
  /// What is wrong after which operation, if anything is.
  static std::optional<std::string> run(const std::vector<Op>& ops) {
    Model model;
    for (size_t i = 0; i < ops.size() && model.m_wrong.empty(); ++i) {
      model.apply(ops[i]);
      model.check();
      if (!model.m_wrong.empty()) return "operation " + std::to_string(i) + ": " + model.m_wrong;
    }
    return std::nullopt;
  }

 private:
  struct Armed {
    bool linked = false;
    int64_t due_ns = 0;
    uint64_t arming = 0;
  };

  void apply(const Op& op) {
    switch (op.kind) {
      case Op::kArm: return arm(op.node, op.ns);
      case Op::kErase: return m_armed[op.node].linked ? erase(op.node) : void();
      case Op::kAdvance: m_now = saturatingAdd(m_now, std::max<int64_t>(op.ns, 0)); return;
      case Op::kAdvanceToNextDue:
        m_sleeper_ns = m_queue.nextDue();
        if (m_sleeper_ns != kNever) m_now = std::max(m_now, m_sleeper_ns);
        return;
      case Op::kExpire: return expire(op.budget);
      case Op::kExpireAndRearm: return expireAndRearm(op);
      case Op::kDrain: return drain(op.budget);
      case Op::kSetAll: return setAll(op.ns);
    }
  }

  void expect(bool holds, const char* what) {
    if (!holds && m_wrong.empty()) m_wrong = what;
  }

  int64_t deadline(int64_t delay_ns) const {
    return delay_ns < 0 ? std::max<int64_t>(0, m_now + delay_ns) : saturatingAdd(m_now, delay_ns);
  }

  /// When a queue of that granularity holds it to be due.
  int64_t due(int64_t deadline_ns) const {
    if constexpr (Queue::granularityNs() == 1) {
      return deadline_ns;
    } else {
      constexpr int64_t kTick = Queue::granularityNs();
      if (deadline_ns > kNever / kTick * kTick) return kNever;
      return std::max(deadline_ns / kTick * kTick + (deadline_ns % kTick != 0 ? kTick : 0), m_queue.presentNs());
    }
  }

  void arm(size_t i, int64_t delay_ns) {
    const int64_t deadline_ns = deadline(delay_ns);
    const bool was_linked = std::exchange(m_armed[i].linked, false);
    const int64_t due_ns = due(deadline_ns);
    const bool strictly = front() == kNodes || due_ns < m_armed[front()].due_ns;
    const bool told = was_linked ? m_queue.update(m_nodes[i], deadline_ns) : m_queue.insert(m_nodes[i], deadline_ns);
    m_armed[i] = {true, due_ns, ++m_armings};
    expect(strictly || !told, "not the earliest, yet so told");
    expect(!strictly || told || Queue::granularityNs() != 1, "the earliest, but not told so");
    if (told) m_sleeper_ns = std::min(m_sleeper_ns, m_queue.nextDue());
  }

  void erase(size_t i) {
    m_queue.erase(m_nodes[i]);
    m_armed[i].linked = false;
  }

  /// The index of the earliest, or the number of nodes.
  size_t front() const {
    size_t best = kNodes;
    for (size_t i = 0; i < kNodes; ++i) {
      if (!m_armed[i].linked) continue;
      if (best == kNodes ||
          std::pair(m_armed[i].due_ns, m_armed[i].arming) < std::pair(m_armed[best].due_ns, m_armed[best].arming))
        best = i;
    }
    return best;
  }
  bool isDue(size_t i) const { return i < kNodes && m_armed[i].due_ns <= m_now && m_armed[i].due_ns != kNever; }

  /// `node` left the queue as the next in order.
  void left(const TimerNode* node) {
    const size_t expected = front();
    expect(expected < kNodes && node == &m_nodes[expected], "not the next in order");
    if (m_wrong.empty()) m_armed[expected].linked = false;
  }

  void expire(size_t budget) {
    TimerList list;
    const bool more = m_queue.expire(m_now, budget, list);
    for (TimerNode* node : test::popAll(list)) {
      expect(budget-- > 0, "more than the budget");
      expect(isDue(front()), "early");
      left(node);
    }
    if (isDue(front())) {
      expect(more, "due nodes remain, but not told so");
    } else if constexpr (Queue::granularityNs() == 1) {
      expect(!more, "nothing remains, but told so");
    }
    expect(more == (m_queue.nextDue() <= m_now && m_queue.nextDue() != kNever), "the answer is not that of nextDue()");
    expect(budget < kNodes || !more, "did not finish with ample budget");
    if (more) m_sleeper_ns = m_queue.nextDue();  // who is told that nodes remain does not sleep; others need not look
  }

  /// A loop that runs each due node, which arms itself again and takes another one out.
  void expireAndRearm(const Op& op) {
    size_t passes = 0;
    TimerList list;
    for (bool more = true; more && m_wrong.empty() && passes < 20 * kNodes; ++passes) {
      more = m_queue.expire(m_now, 1, list);
      if (more) m_sleeper_ns = m_queue.nextDue();  // who is told that nodes remain does not sleep
      TimerNode* const node = list.pop();
      if (node == nullptr) continue;
      expect(isDue(front()), "early");
      left(node);
      if (!m_wrong.empty()) return;
      const auto i = static_cast<size_t>(node - m_nodes.data());
      arm(i, passes < kNodes ? op.ns % 7 : op.ns + Queue::granularityNs());
      const size_t victim = (i + op.node) % kNodes;
      if (m_armed[victim].linked) erase(victim);
      check();
    }
    expect(passes < 20 * kNodes, "did not come to an end");
  }

  void drain(size_t budget) {
    TimerList some;
    m_queue.drain(budget, some);
    for (TimerNode* node : test::popAll(some)) {
      expect(budget-- > 0, "more than the budget");
      expect(std::exchange(m_armed[static_cast<size_t>(node - m_nodes.data())].linked, false), "drained but not linked");
    }
    expect(budget == 0 || m_queue.empty(), "less than the budget, and not empty");
  }

  void setAll(int64_t delay_ns) {
    const int64_t deadline_ns = deadline(delay_ns);
    std::vector<size_t> order;
    for (size_t i = front(); i < kNodes; i = front()) {
      order.push_back(i);
      m_armed[i].linked = false;
    }
    m_queue.setAll(deadline_ns);
    for (const size_t i : order) m_armed[i] = {true, due(deadline_ns), ++m_armings};
    m_sleeper_ns = m_queue.nextDue();
  }

  void check() {
    m_queue.verify();
    const size_t first = front();
    const int64_t earliest_ns = first == kNodes ? kNever : m_armed[first].due_ns;
    const bool exact = Queue::granularityNs() == 1 || first == kNodes;
    expect(exact ? m_queue.nextDue() == earliest_ns : m_queue.nextDue() <= earliest_ns, "next due");
    expect(m_sleeper_ns <= earliest_ns, "a sleeper would be late");
    const auto linked = std::count_if(m_armed.begin(), m_armed.end(), [](const Armed& armed) { return armed.linked; });
    expect(m_queue.size() == static_cast<size_t>(linked), "size");
    expect(m_queue.empty() == (linked == 0), "empty");
  }

  std::array<TimerNode, kNodes> m_nodes;
  std::array<Armed, kNodes> m_armed;
  Queue m_queue;
  int64_t m_now = 1'000'000'007;
  int64_t m_sleeper_ns = kNever;  ///< until when somebody sleeps who looks now and then, and when told
  uint64_t m_armings = 0;
  std::string m_wrong;
};

/// The shortest list that still fails which cutting pieces out, the halves first, finds.
template <class Run>
std::vector<Op> shrunk(std::vector<Op> ops, Run run) {
  for (size_t piece = ops.size() / 2; piece > 0; piece /= 2) {
    for (size_t from = 0; from < ops.size();) {
      auto fewer = ops;
      const auto begin = fewer.begin() + static_cast<std::ptrdiff_t>(from);
      fewer.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(piece, ops.size() - from)));
      run(fewer) ? void(ops = std::move(fewer)) : void(from += piece);
    }
  }
  return ops;
}

int rounds() {
  const char* given = std::getenv("SYLAR_TEST_ROUNDS");
  return given != nullptr ? std::atoi(given) : 200;
}

template <class Queue>
class TimerQueueModel : public testing::Test {};
TYPED_TEST_SUITE(TimerQueueModel, test::Queues, test::QueueNames);

// nothing early, lost or twice; the order; the budget, cut anywhere; all ranges;
// from inside the expiry loop.
TYPED_TEST(TimerQueueModel, BehavesLikeASortedVector) {
  std::mt19937_64 random(test::seed());
  constexpr int64_t kTick = std::max<int64_t>(TypeParam::granularityNs(), 1'000);
  for (int round = 0; round < rounds(); ++round) {
    auto ops = randomOps(random, kTick);
    if (!Model<TypeParam>::run(ops)) continue;
    ops = shrunk(std::move(ops), Model<TypeParam>::run);
    for (const Op& op : ops) std::cout << op.text() << "\n";
    FAIL() << *Model<TypeParam>::run(ops);
  }
}

// The model is able to fail, and what fails is cut down to what matters.
TEST(TimerQueueModelSelfTest, FailingListIsCutDownToItsCause) {
  std::mt19937_64 random(1);
  auto ops = randomOps(random, 1'000);
  const auto fails = [](const std::vector<Op>& list) -> bool {  // a drain somewhere after an erase of node 7
    const auto erase = std::find_if(list.begin(), list.end(), [](const Op& op) { return op.kind == Op::kErase && op.node == 7; });
    return std::any_of(erase, list.end(), [](const Op& op) { return op.kind == Op::kDrain; });
  };
  ops.push_back({Op::kErase, 7, 0, 0});
  ops.push_back({Op::kDrain, 0, 0, 0});
  ASSERT_TRUE(fails(ops));
  EXPECT_EQ(shrunk(ops, fails).size(), 2u);
}

}  // namespace
}  // namespace sylar
