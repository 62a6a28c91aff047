// Internal. The seam between workers and a clock that moves when all of them are at rest: virtual time (sylar/testing).
//
// A member, which is a worker, is awake or at rest: at rest from rest() on until it calls goOn(). In between it takes nothing of
// what comes for it, so that this stays visible in quiet(). The clock moves when all members are at rest and quiet, to the
// earliest of their deadlines, and then wakes those that are due.
#pragma once

#include <cstdint>

#include "sylar/base/clock.h"

namespace sylar {

class AutoAdvance {
 public:
  /// Called under the clock's lock, from any thread, and only while the member is at rest.
  class Member {
   public:
    /// Nothing has come for it that it has not seen: if something has, it is about to go on.
    virtual bool quiet() const = 0;
    /// When it wants to go on, on the clock's scale. Who lets it come nearer wakes the member.
    virtual int64_t dueNs() const = 0;
    /// From here on it is not quiet, and goes on soon.
    virtual void wake() = 0;

    // The clock's, under its lock.
    Member* next_member = nullptr;
    bool is_member = false;
    bool is_at_rest = false;

   protected:
    ~Member() = default;
  };

  /// From here on the clock waits for `member`, which is awake. Once more is the same.
  virtual void join(Member& member) = 0;
  virtual void leave(Member& member) = 0;
  /// Its own thread: it has nothing to do until its deadline, or until something comes. 0: its deadline has come, and it goes on.
  /// Else how long it may wait before it turns and rests anew: real nanoseconds, or kNever.
  [[nodiscard]] virtual int64_t rest(Member& member) = 0;
  /// `something_came`: else it was only the end of that time.
  virtual void goOn(Member& member, bool something_came) = 0;

  /// Between the two the clock stands still; they nest. Any thread.
  virtual void hold() = 0;
  virtual void release() = 0;

 protected:
  ~AutoAdvance() = default;
};

/// While it exists, `clock` stands still if it is one that moves when all rest: for what its members wait for and it cannot see.
class StandsStill {
 public:
  explicit StandsStill(const Clock& clock) : m_time(clock.autoAdvance()) {
    if (m_time != nullptr) m_time->hold();
  }
  ~StandsStill() {
    if (m_time != nullptr) m_time->release();
  }
  StandsStill(const StandsStill&) = delete;
  StandsStill& operator=(const StandsStill&) = delete;

 private:
  AutoAdvance* const m_time;
};

}  // namespace sylar
