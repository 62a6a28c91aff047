// Waits for a number of things to end.
//
//   sylar::WaitGroup group;
//   for (const std::string& url : urls) {
//     group.add();
//     iom.schedule([&, url] {
//       fetch(url);
//       group.done();
//     });
//   }
//   if (!group.wait(sylar::Deadline::after(5s))) report("not all in time");
#pragma once

#include <cstddef>

#include "sylar/sync/wait_queue.h"

namespace sylar {

/// Thread safety: all calls from any thread, in fibers and outside. Source: Go, sync.WaitGroup.
class WaitGroup {
 public:
  WaitGroup() = default;
  /// Nobody may wait.
  ~WaitGroup();
  WaitGroup(const WaitGroup&) = delete;
  WaitGroup& operator=(const WaitGroup&) = delete;

  /// Counts `count` more. To be called before what is counted may call done(). May suspend: no.
  void add(size_t count = 1);
  /// Ends `count` that were counted. With the last one all who wait go on. To end more than were counted is a programmer error.
  /// May suspend: no.
  void done(size_t count = 1);
  /// Returns true if everything that was counted has ended. May suspend: no.
  bool isDone() const;
  /// Ends `count` that were counted, and waits for the others as wait() does. The group may go as soon as all have ended.
  bool doneAndWait(size_t count = 1, Deadline deadline = Deadline::never());
  /// Waits until everything that was counted has ended. Returns false if `deadline` has passed or the fiber was cancelled
  /// before. Throws std::bad_alloc if there is no memory for a deadline. May suspend: yes. A plain thread blocks.
  bool wait(Deadline deadline = Deadline::never());

 private:
  void end(size_t count, detail::SyncWakes& wakes);

  mutable ThreadMutex m_lock;
  size_t m_count = 0;
  detail::SyncQueue m_waiters{detail::SyncKind::kWaitGroup};
};

}  // namespace sylar
