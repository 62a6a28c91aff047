// Internal. The io_uring of a worker. The kernel carries out what its fibers wait for: calls on files, and the transfers of
// sockets.
//
//   io_uring_sqe entry{};
//   io_uring_prep_fsync(&entry, fd, 0);
//   const long result = ring.run(entry);  // 0 or -errno
//
// The worker sleeps in its epoll, which watches notifyFd().
//
// An operation lies on its fiber's stack and uses the caller's memory. So run() is ended by neither a cancel nor a deadline. stop()
// waits for it; stop(deadline) abandons the fiber and keeps its stack for the kernel. The kernel holds the file from the submission
// on, so a close of its number changes nothing. Source: io_uring(7).
//
// Thread safety: the worker's thread only, except busy() when the worker has ended.
#pragma once

#include <liburing.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "sylar/base/fd.h"
#include "sylar/base/internal.h"
#include "sylar/base/tsan.h"
#include "sylar/io/lent_memory.h"
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
    const char* lent = nullptr;  ///< of memory(), with `result` bytes, which the fiber gives back
    bool done = false;
    Operation* previous = nullptr;
    Operation* next = nullptr;
  };

  /// Makes the ring of the calling thread. Returns null, and sets `*error` to the errno, if the kernel has no ring that runs
  /// nothing in the thread until it is asked (Linux 6.1), or if a filter of system calls or the system's settings forbid it, or
  /// memory or descriptors have run out.
  static std::unique_ptr<Ring> make(int* error);
  /// Cancels what is not done. What cannot be cancelled goes on, and so does its use of the memory of fibers that were abandoned.
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Has the kernel carry out `entry` at once, and returns its result, -errno, or kRefused. For fibers of the worker. May suspend:
  /// yes.
  long run(const io_uring_sqe& entry);
  /// Returns an eventfd, which need not be read. The kernel writes to it when there is something for serve(). It does not while the
  /// last serve() has woken a fiber, because the worker then calls serve() again before it sleeps.
  int notifyFd() const { return m_notify_fd.get(); }
  /// Submits what was begun, and wakes the fibers whose operations are done.
  void serve();
  /// Returns true if there are operations that are not done.
  bool busy() const { return m_first != nullptr; }
  /// Cancels what can be cancelled, for a worker that has ended, and whose fibers have ended or are abandoned.
  void leave();
  /// Cancels what can be cancelled of a fiber that is abandoned.
  void abandon(const FiberCore& core);

  /// A receive or send of a socket, which the kernel gets at the end of the worker's turn, together with others. The number is
  /// pinned only while the kernel gets it. A close before that ends the transfer, and after that the kernel holds the file.
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

  /// Returns false for some turns after the kernel has refused transfers.
  bool takesTransfers() const {
    const tsan::Exempt of_this_thread;
    return m_backoff_turns == 0;
  }
  /// Returns the memory that receives may take, or null if there is none. It is made when it is first asked for.
  LentMemory* memory();
  /// Begins `transfer`, whose fiber is about to wait. It gives -ECANCELED if the number is closed before the end of the turn, and
  /// -EAGAIN if the kernel refuses it.
  void begin(Transfer& transfer);
  /// Ends `transfer` early, and returns when it is done, whatever came first. In a forked child it returns at once. May suspend:
  /// yes.
  void end(Transfer& transfer);

 private:
  Ring() = default;

  bool hasBegun() const { return m_first_begun != nullptr; }
  bool submit(const io_uring_sqe& entry, Operation& operation);
  io_uring_sqe* place();
  void submitAll();
  void append(Operation& operation);
  void remove(const Operation& operation);
  bool takeDone(const Operation* own);
  bool hasMore() const;
  void lend(Operation& operation, uint32_t completion_flags);
  static bool tell(Operation& operation);
  void letNotify(bool notifies);
  void rest();
  void submitBegun();
  void removeBegun(const Transfer& transfer);
  void takeBack(Transfer* last, unsigned count);
  void giveUp(Operation& operation, long error);
  bool askToCancel(const Operation& operation);

  io_uring m_ring{};
  bool m_made = false;
  bool m_notifies = true;
  unsigned m_backoff_turns = 0;  // for how many turns it takes no transfers
  unsigned m_count = 0;          // of operations that the kernel has
  UniqueFd m_notify_fd;
  bool m_memory_made = false;  // or found to be impossible
  std::unique_ptr<LentMemory> m_memory;
  Operation* m_first = nullptr;  // of those that the kernel has
  Operation* m_first_begun = nullptr;
  Operation* m_last_begun = nullptr;
};

}  // namespace sylar::detail
