// Internal. The io_uring of a worker. The kernel carries out what its fibers wait for: calls on files, and the transfers of sockets.
//
//   io_uring_sqe entry{};
//   io_uring_prep_fsync(&entry, fd, 0);
//   const long result = ring.run(entry);  // 0 or -errno
//
// It has one of two places. Beside the worker's epoll it only makes calls on files, and tells of them by the worker's wake-up descriptor.
// Or the worker waits in it (wait()), and the epoll is one of the things that it tells of.
//
// An operation lies on its fiber's stack and uses the caller's memory. So run() is ended by neither a cancel nor a deadline. stop()
// waits for it; stop(deadline) gives the fiber up and keeps its stack for the kernel. The kernel holds the file from the submission on,
// so a close of its number changes nothing. Source: io_uring(7).
//
// Thread safety: the worker's thread only, except busy() when the worker has ended.
#pragma once

#include <liburing.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "sylar/base/internal.h"
#include "sylar/sched/auto_advance.h"
#include "sylar/sched/waker.h"

namespace sylar::detail {

class Ring {
 public:
  /// Stands for an operation that was not submitted.
  static constexpr long kRefused = LONG_MIN;

  /// One call that the kernel carries out for a fiber. It stays until it is done.
  struct Operation {
    Waker waker = {};
    ClockHold virtual_time = {};  ///< held until the fiber has been told; a fiber that was abandoned never unwinds
    long result = kRefused;
    bool done = false;
    Operation* previous = nullptr;
    Operation* next = nullptr;
  };

  /// Those of the worker.
  struct Descriptors {
    int wake_fd;
    int epoll;  ///< -1 if the worker does not wait in the ring
  };

  /// Makes the ring of the calling thread. Returns null, and sets `*error` to the errno, if the kernel has no ring that runs nothing in
  /// the thread until it is asked (Linux 6.1), or if a filter of system calls or the system's settings forbid it, or memory or
  /// descriptors have run out.
  static std::unique_ptr<Ring> make(const Descriptors& worker, int* error);
  /// Cancels what is not done. What cannot be cancelled goes on, and so does its use of the memory of fibers that were abandoned.
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Has the kernel carry out `entry` at once, and returns its result, -errno, or kRefused. For fibers of the worker. May suspend: yes.
  long run(const io_uring_sqe& entry);
  /// Wakes the fibers whose operations are done.
  void reap();
  /// Returns true if there are operations that are not done.
  bool busy() const { return m_first != nullptr; }
  /// Ends what can be ended, for a worker that waits in the ring no more, and whose fibers have ended or are given up.
  void leave();
  /// Ends what can be ended of a fiber that is given up.
  void abandon(const FiberCore& core);

  // ---- Where the worker waits in the ring. -----------------------------------------------------------------------------------

  /// An operation on a descriptor that the kernel gets when the worker next waits, together with others. Until the kernel has the file the
  /// number is pinned, so that nobody closes it.
  struct Transfer : Operation {
    io_uring_sqe* call = nullptr;
    bool submitted = false;
    Transfer* next_pinned = nullptr;

    /// Returns false if the number is not that file's any more.
    virtual bool pin() = 0;
    virtual void unpin() = 0;

   protected:
    ~Transfer() = default;
  };

  /// Tells of all that has come since the last wait().
  struct News {
    bool any = false;
    bool woken = false;  ///< by the worker's wake-up descriptor
    bool epoll = false;  ///< the epoll has events
  };
  /// Hands over what was begun, waits for news until `deadline_ns`, and wakes the fibers whose operations are done.
  News wait(int64_t now_ns, int64_t deadline_ns);
  /// Returns true if there are transfers that wait() will hand over.
  bool hasBegun() const { return m_first_begun != nullptr; }
  /// Begins `transfer`, whose fiber is about to wait. It gives -ECANCELED if the number is closed before the next wait().
  void begin(Transfer& transfer);
  /// Ends `transfer` early, and returns when it is done, whatever came first. In a forked child it returns at once. May suspend: yes.
  void end(Transfer& transfer);

 private:
  Ring() = default;

  bool submit(const io_uring_sqe& entry, Operation& operation);
  io_uring_sqe* place();
  void handOver();
  void append(Operation& operation);
  void remove(const Operation& operation);
  void takeDone(const Operation* own);
  bool hasMore() const;
  static void tell(Operation& operation);
  void submitBegun();
  void removeBegun(const Transfer& transfer);
  void takeBack(Transfer* last, unsigned count);
  void giveUp(Operation& operation, long error);
  void note(const io_uring_cqe& completion);
  void watch(uint64_t name);
  void watchAgain();
  void askToCancel(const Operation& operation);

  io_uring m_ring{};
  bool m_made = false;
  Descriptors m_worker{-1, -1};
  News m_news;
  unsigned m_unwatched = 0;      // a bit for each name
  Operation* m_first = nullptr;  // of those that the kernel has
  Operation* m_first_begun = nullptr;
  Operation* m_last_begun = nullptr;
};

}  // namespace sylar::detail
