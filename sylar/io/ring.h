// Internal. The io_uring of a worker, by which its fibers wait for files: what would block the thread, the kernel carries out beside it.
//
//   io_uring_sqe entry{};
//   io_uring_prep_fsync(&entry, fd, 0);
//   const long result = ring.run(entry);  // 0 or -errno
//
// An operation lies on the fiber's stack and uses the caller's memory, so neither a cancel nor a deadline ends the wait. stop() waits
// for it; stop(deadline) gives the fiber up and keeps its stack for the kernel. The kernel holds the file from the submission on, so
// a close of its number changes nothing. Source: io_uring(7).
//
// Thread safety: the worker's thread only, except busy() when the worker has ended.
#pragma once

#include <liburing.h>

#include <climits>
#include <cstddef>
#include <memory>

#include "sylar/base/internal.h"

namespace sylar::detail {

class Ring {
 public:
  /// Stands for an operation that was not submitted.
  static constexpr long kRefused = LONG_MIN;

  /// Makes the ring of the calling thread, which writes to the eventfd `wake_fd` when operations are done. Returns null, and sets
  /// `*error` to the errno, if the kernel has no ring that runs nothing in the thread until it is asked (Linux 6.1), or if a filter of
  /// system calls or the system's settings forbid it, or memory or descriptors have run out.
  static std::unique_ptr<Ring> make(int wake_fd, int* error);
  /// Cancels what is not done. What cannot be cancelled goes on, and so does its use of the memory of fibers that were abandoned.
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Has the kernel carry out `entry`, and returns its result, -errno, or kRefused. For fibers of the worker. May suspend: yes.
  long run(const io_uring_sqe& entry);
  /// Wakes the fibers whose operations are done.
  void reap();
  /// Returns true if there are operations that are not done.
  bool busy() const { return m_first != nullptr; }

 private:
  struct Operation;

  Ring() = default;

  bool submit(const io_uring_sqe& entry, Operation& operation);
  void handOver();
  void remove(const Operation& operation);
  void takeDone(const Operation* own);

  io_uring m_ring{};
  bool m_made = false;
  Operation* m_first = nullptr;  // of those that are not done
};

}  // namespace sylar::detail
