// Internal. A worker's own fresh work: queued by its fibers, stolen by others, and shared out in time (protocol P2).
//
// Fresh work may wait behind the fiber that scheduled it, not behind another computation while somebody sleeps. So before a
// worker runs anything it looks whether it leaves fresh work behind, and wakes a sleeper for that, once a turn. Who was woken
// does the same before it runs what it found: so a burst wakes as many as it needs.
#pragma once

#include <utility>

#include "sylar/base/check.h"
#include "sylar/sched/fresh_queue.h"

namespace sylar {

/// Its worker's, but for queue(), which is for all. `Rest`, `workers`: the scheduler's.
template <class Memory = StdMemory>
class OwnFresh {
 public:
  FreshQueue<Memory>& queue() { return m_queue; }

  /// False: refused.
  [[nodiscard]] bool push(QueueNode* node) {
    const Pushed pushed = m_queue.push(node);
    if (pushed == Pushed::kFirst) m_shared = false;  // whoever was woken before may have found nothing, and sleep again
    return pushed != Pushed::kRejected;
  }

  QueueNode* take() { return m_queue.take(); }

  void beginTurn() { m_shared = false; }

  /// Before something runs: a sleeper is woken for what is left behind. Who came to fetch some looks at the others' queues, too:
  /// the wake-up that was spent on this worker may have been meant for what it leaves there.
  template <class Rest>
  [[gnu::always_inline]] void share(Rest& rest) {
    const bool elsewhere = std::exchange(m_came_to_fetch, false) && rest.anyFresh();
    if (m_shared || (m_queue.count() == 0 && !elsewhere) || !rest.anySleeping()) return;
    m_shared = true;
    rest.wakeOne();
  }

  /// With nothing left to run: takes over the older half of another worker's, and returns the oldest, to be run at once: put into
  /// the queue it could be stolen from here before it has run, and back again, for ever.
  template <class Workers>
  QueueNode* steal(const Workers& workers) {
    for (size_t i = 0; i < workers.size(); ++i) {
      FreshQueue<Memory>& victim = workers[++m_next_victim % workers.size()]->fresh();
      NodeList loot;
      if (&victim == &m_queue || victim.steal(&loot) == 0) continue;
      QueueNode* const oldest = loot.pop();
      while (QueueNode* node = loot.pop()) SYLAR_CHECK(push(node));
      return oldest;
    }
    return nullptr;
  }

  /// There was nothing left to run here.
  void cameToFetch() { m_came_to_fetch = true; }

 private:
  bool m_shared = false;         // a sleeper was woken in this turn for what stays behind
  bool m_came_to_fetch = false;  // has searched since it last ran something
  size_t m_next_victim = 0;
  alignas(64) FreshQueue<Memory> m_queue;
};

}  // namespace sylar
