// Something that happens once, or again after a reset, and that any number of fibers and threads wait for.
//
//   sylar::Event ready;
//   iom.schedule([&] { load(); ready.set(); });
//   if (!ready.wait(sylar::Deadline::after(5s))) return;
#pragma once

#include "sylar/sync/wait_queue.h"

namespace sylar {

namespace detail {
class EventCase;
}

/// Is set or not, at first not. All who wait go on when it is set, and nobody waits while it is.
///
/// Thread safety: all calls from any thread, in fibers and outside. Source: Python, asyncio.Event.
class Event {
 public:
  Event() = default;
  /// Nobody may wait.
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// Sets the event, and wakes all who wait. May suspend: no.
  void set();
  /// Makes those wait who come from now on. May suspend: no.
  void reset();
  /// Returns true if the event is set. May suspend: no.
  bool isSet() const;
  /// Waits until the event is set. Returns false if `deadline` passed or the fiber was cancelled before. Throws std::bad_alloc if
  /// there is no memory for a deadline. May suspend: yes. A plain thread blocks.
  bool wait(Deadline deadline = Deadline::never());

 private:
  friend class detail::EventCase;

  mutable ThreadMutex m_lock;
  bool m_set = false;
  detail::SyncQueue m_waiters{detail::SyncKind::kEvent};  // empty if it is set
};

}  // namespace sylar
