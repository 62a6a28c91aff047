// Internal. The seam between workers and a clock that moves when all of them are idle: virtual time (sylar/testing).
//
// A member, which is a worker, is awake or idle. It is idle from enterIdle() on until it calls leaveIdle(). In between it takes
// nothing of what comes for it, so that this stays visible in isQuiescent(). When all members are idle and quiescent, the clock
// moves to the earliest of their deadlines and then wakes those that are due.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "sylar/base/internal.h"
#include "sylar/clock.h"

namespace sylar::detail {

/// Shared, because a function on a helper thread may outlast the clock that it holds.
class AutoAdvance : public std::enable_shared_from_this<AutoAdvance> {
 public:
  /// Called under the clock's lock, from any thread, and only while the member is idle.
  class Member {
   public:
    /// Returns true if nothing has come for the member that it has not seen. If something has, the member is about to go on.
    virtual bool isQuiescent() const = 0;
    /// Returns when the member wants to go on, on the clock's scale. Code that lets this come nearer wakes the member.
    virtual int64_t dueNs() const = 0;
    /// Makes the member not quiescent, so that it goes on soon.
    virtual void wake() = 0;

    // These belong to the clock, under its lock.
    Member* next_member = nullptr;
    bool is_member = false;
    bool is_idle = false;
    bool looks_again = false;  // idle for a while only

   protected:
    ~Member() = default;
  };

  /// Makes the clock wait for `member`, which is awake. Another call changes nothing.
  virtual void join(Member& member) = 0;
  virtual void leave(Member& member) = 0;
  /// Called by the member's own thread when it has nothing to do until its deadline, or until something comes. Returns 0 if the
  /// deadline has come and the member goes on. Otherwise returns how long it may wait before it goes idle again, in real
  /// nanoseconds, or kNever.
  [[nodiscard]] virtual int64_t enterIdle(Member& member) = 0;
  /// Ends the idle time. `something_came` is false if only the time that enterIdle() returned has passed.
  virtual void leaveIdle(Member& member, bool something_came) = 0;

  /// Between hold() and release() the clock stands still. The calls nest. Any thread.
  virtual void hold() = 0;
  virtual void release() = 0;

 protected:
  ~AutoAdvance() = default;
};

/// While it exists, `clock` stands still if it is one that moves when all rest. For events that its members wait for and the
/// clock cannot see. May outlast the clock.
class ClockHold {
 public:
  ClockHold() = default;
  explicit ClockHold(const Clock& clock) {
    AutoAdvance* const time = clock.autoAdvance();
    if (time == nullptr) return;
    m_time = time->shared_from_this();
    m_time->hold();
  }
  ~ClockHold() {
    if (m_time != nullptr) m_time->release();
  }
  ClockHold(ClockHold&&) = default;
  ClockHold& operator=(ClockHold&& other) noexcept {
    std::swap(m_time, other.m_time);
    return *this;
  }

 private:
  std::shared_ptr<AutoAdvance> m_time;
};

}  // namespace sylar::detail
