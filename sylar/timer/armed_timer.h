// Internal. The inside of a Timer: its node in the manager's queue, its state, and what it does when it is due.
//
// Thread safety: TimerCore changes it, under its lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "sylar/base/internal.h"
#include "sylar/timer.h"
#include "sylar/timer/timer_node.h"

namespace sylar::detail {

/// An entry of a manager's queue: a PoolTimer if `pooled`, else an ArmedTimer.
struct ManagedTimer : TimerNode {
  explicit ManagedTimer(bool is_pooled) : pooled(is_pooled) {}
  bool pooled;
};

/// The action of a timer when it is due. It lies in the timer, so that both are one allocation. It is emptied when nobody has a
/// share in it any more (ActionShare).
struct TimerAction {
  std::function<void()> cb;
  std::weak_ptr<void> condition;
  const bool conditional;
  bool own = true;                  ///< false if the timer has given its own share away; guarded like ArmedTimer::m_self
  std::atomic<uint32_t> shares{1};  ///< the timer's own, and one for each run of it that is under way

  /// Returns true if the condition is gone, for good.
  bool dead() const { return conditional && condition.expired(); }
};

class ArmedTimer final : public Timer, public ManagedTimer {
 public:
  using ptr = std::shared_ptr<ArmedTimer>;

  ArmedTimer(std::shared_ptr<TimerCore> core, uint64_t ms, Repeat repeat, std::function<void()> cb, std::weak_ptr<void> condition,
             bool conditional);

  static ArmedTimer& of(Timer& timer) { return static_cast<ArmedTimer&>(timer); }

 private:
  friend Timer;
  friend TimerCore;

  /// Armed     linked in the queue. A recurring timer stays Armed while its runs are under way
  /// Queued    one-shot, or its condition died; handed out by collectDue(), not begun
  /// Done      one-shot that began or that listExpiredCb() handed out; recurring whose condition died
  /// Cancelled by cancel(), or by the end of the manager
  ///
  /// (new) -> Armed -> Queued | Done | Cancelled; Queued -> Done | Cancelled. Changed by TimerCore::setState only.
  enum class State : uint8_t { kNew, kArmed, kQueued, kDone, kCancelled };

  const std::shared_ptr<TimerCore> m_core;  ///< outlives the manager
  const Repeat m_repeat;

  // Guarded by the core's lock. m_self and m_action.own of a timer that has just left the queue belong to the thread that took
  // it out.
  State m_state = State::kNew;
  bool m_run_pending = false;   ///< recurring: handed out by collectDue(), not begun
  bool m_overlap_told = false;  ///< recurring: a line of the log told how many runs are under way
  uint64_t m_ms;
  int64_t m_start_ns = 0;  ///< when it was last armed; the delay starts there
  ArmedTimer::ptr m_self;  ///< set while Armed, so that an armed timer needs no other owner
  TimerAction m_action;
};

}  // namespace sylar::detail
