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

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "sylar/base/internal.h"
#include "sylar/fiber/context.h"
#include "sylar/fiber/queue_node.h"
#include "sylar/fiber/stack.h"
#include "sylar/fiber/started_state.h"
#include "sylar/fiber/thread_lending.h"
#include "sylar/fiber/thread_lists.h"

namespace sylar::detail {

/// In the first frame of the thread.
struct BorrowedThread {
  Context context;  ///< where the thread stands while it is free
  Context caller;   ///< where the fiber stands that has borrowed it for a call
  Stack stack;
  Stack taken;  ///< what was taken for it from the pool of stacks
  uintptr_t thread_pointer = 0;
  pid_t id = 0;                   ///< by which libc knows the thread
  FiberCore* core = nullptr;      ///< of the fiber that runs it
  void (*body)(void*) = nullptr;  ///< what that has borrowed it for, unless it is for its whole function
  void* argument = nullptr;
  BorrowedThread* next = nullptr;
  size_t room = 0;    ///< see threadRoomFor()
  bool over = false;  ///< its function has ended, or is to end, or does not even begin
  alignas(StartedState) std::byte started[sizeof(StartedState)];

  /// Returns true if the fiber has borrowed it for its whole function, and has begun there.
  bool isWhole(const FiberCore& fiber) const;
  /// Returns the one on which the fiber has begun that has this state.
  static BorrowedThread& of(StartedState& state);
};

/// A scheduler whose unstarted fibers wait for threads.
class ThreadAwaiter : public AwaitedThreads<ThreadAwaiter> {
 public:
  virtual void goOn(SpawnNode& node, const void* tag) = 0;
  virtual void ended(const std::function<void()>& end) = 0;

 protected:
  ~ThreadAwaiter() = default;
};

struct LendingTypes {
  using Memory = StdMemory;
  using Thread = BorrowedThread;
  using Scheduler = ThreadAwaiter;
  static size_t roomOf(QueueNode* node);
  static void refuse(QueueNode* node);
  static bool inForkedChild();
};
/// The process's.
extern constinit ThreadLending<LendingTypes> g_threads;

/// The free ones of a worker's thread, and those of all workers behind them. Not thread safe.
class FreeThreads {
 public:
  FreeThreads() = default;
  ~FreeThreads();
  FreeThreads(const FreeThreads&) = delete;
  FreeThreads& operator=(const FreeThreads&) = delete;

  /// Returns one with a stack of at least `size` bytes, or null.
  BorrowedThread* take(size_t size);
  void put(BorrowedThread& one);
  /// Gives one that is over to the maker, which ends it. Any thread.
  static void putOver(BorrowedThread& one);

 private:
  static constexpr size_t kKept = 64;

  static void putForAll(BorrowedThread& one);

  ThreadLists<BorrowedThread> m_mine;
};

/// Makes the threads.
class ThreadLender {
 public:
  /// Returns that of the hooks, or null in a program without.
  static ThreadLender* get() { return s_lender.load(std::memory_order_relaxed); }
  static void set(ThreadLender* lender) { s_lender.store(lender, std::memory_order_relaxed); }

  /// Must be called by a scheduler before its fibers begin, and close() at its end. Returns false if none can be made.
  virtual bool open() = 0;
  virtual void close() = 0;
  /// Says that somebody waits for a thread. Any thread. Needs no memory.
  virtual void call() = 0;
  /// Notes that the calling thread is run by another worker from now on.
  virtual void isRunElsewhere() = 0;
  /// Has a suspended thread take what was sent to it (FiberControl::kThread). Does nothing if the calling worker has not run it
  /// yet. When it arrives there, it looks by itself.
  virtual void hear(uintptr_t thread_pointer) = 0;

 protected:
  ~ThreadLender() = default;

 private:
  static inline constinit std::atomic<ThreadLender*> s_lender{nullptr};
};

}  // namespace sylar::detail
