// Internal. A worker's own unstarted work: queued by its fibers, stolen by others, and shared out in time (protocol P2).
//
// Unstarted work never waits behind a computation while a worker sleeps. A fiber that schedules calls a sleeper, because it may
// compute on. A worker that is about to run something calls one for the work that it leaves behind. At most one worker is on its
// way at a time (Idle::call). It calls the next one before it runs what it found, so a burst wakes as many as it needs.
#pragma once

#include <utility>

#include "sylar/base/internal.h"
#include "sylar/check.h"
#include "sylar/sched/spawn_queue.h"

namespace sylar::detail {

/// Belongs to its worker, except for queue(), which is for all. `Idle` and `workers` are the scheduler's.
template <class Memory = StdMemory>
class OwnSpawnQueue {
 public:
  SpawnQueue<Memory>& queue() { return m_queue; }

  /// Queues `node` from the worker's loop, which is about to run it or to share it. Returns false if it is refused.
  [[nodiscard]] bool push(SpawnNode* node) { return m_queue.push(node) != Pushed::kRejected; }

  /// Queues `node` from a fiber, which may keep the worker for long, and calls a sleeper. Returns false if it is refused.
  template <class Idle>
  [[nodiscard]] bool offer(SpawnNode* node, Idle& idle) {
    if (!push(node)) return false;
    idle.call();
    return true;
  }

  QueueNode* take() { return m_queue.take(); }

  /// Called before something runs: calls a sleeper for what is left behind. A worker that came to fetch also looks at the
  /// others' queues, because the call that it followed may have been meant for what it leaves there.
  template <class Idle>
  [[gnu::always_inline]] void share(Idle& idle) {
    if (std::exchange(m_came_to_fetch, false) ? idle.answer() : m_queue.count() > 0) idle.call();
  }

  /// Called with nothing left to run. Takes over the older half of another worker's queue, and returns the oldest node, to be
  /// run at once. If that went into the queue, it could be stolen from here before it has run, and back again, endlessly.
  template <class Workers>
  QueueNode* steal(const Workers& workers) {
    for (size_t i = 0; i < workers.size(); ++i) {
      SpawnQueue<Memory>& victim = workers[++m_next_victim % workers.size()]->spawned();
      NodeList loot;
      if (&victim == &m_queue || victim.steal(&loot) == 0) continue;
      QueueNode* const oldest = loot.pop();
      while (QueueNode* node = loot.pop()) SYLAR_CHECK(push(static_cast<SpawnNode*>(node)));
      return oldest;
    }
    return nullptr;
  }

  /// Notes that there was nothing left to run here.
  void cameToFetch() { m_came_to_fetch = true; }

 private:
  bool m_came_to_fetch = false;  // has searched since it last ran something
  size_t m_next_victim = 0;
  alignas(64) SpawnQueue<Memory> m_queue;
};

}  // namespace sylar::detail
