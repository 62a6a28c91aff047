// Internal. A thread of libc's that fibers borrow, so that to a library each fiber is a thread. It has its own thread_local
// variables, keys, errno, exceptions, locale and signal mask, on a stack of which libc knows the bounds
// (SchedulerOptions::identity). Its kernel thread has left (sylar/hook/thread/left_thread.h).
//
// A fiber that begins as such a thread has no other stack. One that borrows it for a single call goes on to its stack meanwhile.
//
// To libraries these are a pool of threads. What one leaves in its thread_local variables is found by the next fiber that gets the
// thread, and its destructors run when the thread ends. What belongs to the task is set back.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "sylar/base/internal.h"
#include "sylar/fiber/context.h"
#include "sylar/fiber/queue_node.h"
#include "sylar/fiber/stack.h"
#include "sylar/fiber/started_state.h"

namespace sylar::detail {

/// In the first frame of the thread.
struct BorrowedThread {
  Context context;  ///< where the thread stands while it is free
  Context caller;   ///< where the fiber stands that has borrowed it for a call
  Stack stack;
  uintptr_t thread_pointer = 0;
  pid_t id = 0;                   ///< by which libc knows the thread
  FiberCore* core = nullptr;      ///< of the fiber that runs it
  void (*body)(void*) = nullptr;  ///< what that has borrowed it for, unless it is for its whole function
  void* argument = nullptr;
  BorrowedThread* next = nullptr;
  size_t room = 0;                ///< how large the stack is without what libc has there: a power of two
  std::atomic<uint32_t> left{0};  ///< the fiber has left it, so a kernel thread may take it over
  bool over = false;              ///< its function has ended
  alignas(StartedState) std::byte started[sizeof(StartedState)];

  /// Returns true if the fiber has borrowed it for its whole function, and has begun there.
  bool isWhole(const FiberCore& fiber) const;
  /// Returns the one on which the fiber has begun that has this state.
  static BorrowedThread& of(StartedState& state);
};

/// Free threads, by room. Last in, first out. Not thread safe.
class ThreadLists {
 public:
  /// Returns how much room a thread has that is made for a stack of `size` bytes.
  static size_t roomFor(size_t size) { return std::bit_ceil(std::clamp(size, kMinStackSize, kMaxStackSize)); }

  size_t count() const { return m_count; }
  bool has(size_t room) const { return m_first[placeOf(room)] != nullptr; }
  /// Returns one with that room, or null.
  BorrowedThread* take(size_t room);
  void put(BorrowedThread& one);

 private:
  static size_t placeOf(size_t room) { return static_cast<size_t>(std::bit_width(room / kMinStackSize)) - 1; }

  std::array<BorrowedThread*, std::bit_width(kMaxStackSize / kMinStackSize)> m_first{};
  size_t m_count = 0;
};

/// The free ones of a worker's thread, and those of all threads behind them. Not thread safe, except putForAll().
class FreeThreads {
 public:
  FreeThreads() = default;
  ~FreeThreads();
  FreeThreads(const FreeThreads&) = delete;
  FreeThreads& operator=(const FreeThreads&) = delete;

  /// Returns one with a stack of at least `size` bytes, or null.
  BorrowedThread* take(size_t size);
  void put(BorrowedThread& one);
  /// Gives one to all. Any thread.
  static void putForAll(BorrowedThread& one);

 private:
  static constexpr size_t kKept = 64;

  ThreadLists m_mine;
};

/// A scheduler whose unstarted fibers wait for threads, in the list of those who do. Thread safety: any thread may call everything.
class ThreadAwaiter {
 public:
  /// Queues `node`, for which there was no thread, until there is one. `tag` is kept meanwhile where the node keeps its queue.
  /// Needs no memory.
  void await(SpawnNode& node, const void* tag);
  /// Returns how many have waited and are not queued again yet.
  size_t waitForThreads() const { return m_count.load(std::memory_order_seq_cst); }
  /// Returns those that wait. For the end of a stop.
  NodeList takeAll();
  /// Lets all go on, though there are no threads for them.
  void releaseAll();

  /// The next task of the thread that makes the others: to make one of `room`, or to let `nodes` go on. None if nobody waits.
  struct Next {
    size_t room = 0;
    ThreadAwaiter* waiter = nullptr;
    NodeList nodes;
    size_t count = 0;
  };
  /// Says what is next. If nobody waits and fewer than `spare` threads are free, one of `usual` room is to be made.
  static Next next(size_t usual, size_t spare);
  /// Takes the first that waits, if it is for a thread of that room, and notes that there is none for it.
  static Next refuse(size_t room);
  /// Lets the nodes go on.
  static void letGo(Next next);

 protected:
  ~ThreadAwaiter() = default;
  /// Queues again what await() has got.
  virtual void goOn(SpawnNode& node, const void* tag) = 0;
  /// Calls `end`, after which the object may be destroyed as soon as this has returned.
  virtual void ended(const std::function<void()>& end) = 0;

 private:
  size_t take(NodeList& all);

  std::atomic<size_t> m_count{0};
  NodeList m_waiting;
  ThreadAwaiter* m_later = nullptr;
};

/// Makes the threads. The hooks have one.
class ThreadLender {
 public:
  /// Must be called by a scheduler before its fibers begin, and close() at its end. Returns false if none can be made.
  virtual bool open() = 0;
  virtual void close() = 0;
  /// Says that somebody waits for a thread. Any thread. Needs no memory.
  virtual void call() = 0;
  /// Notes that the calling thread is run by another worker from now on.
  virtual void isRunElsewhere() = 0;

 protected:
  ~ThreadLender() = default;
};

}  // namespace sylar::detail
