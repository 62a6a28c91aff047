// Internal. A thread of libc's that fibers borrow, so that to a library each fiber is a thread: with its own thread_local variables,
// keys, errno, exceptions, locale and signal mask, on a stack of which libc knows the bounds (SchedulerOptions::identity). Its
// kernel thread has left (sylar/hook/thread/left_thread.h).
//
// A fiber that begins as such a thread has no other stack. One that borrows it for a single call goes on to its stack meanwhile.
//
// To libraries these are a pool of threads. What one leaves in its thread_local variables is found by the next fiber that gets the
// thread, and its destructors run when the thread ends. What belongs to the task is set back.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/fiber/context.h"
#include "sylar/fiber/stack.h"
#include "sylar/fiber/started_state.h"

namespace sylar::detail {

/// In the first frame of the thread.
struct BorrowedThread {
  Context context;  ///< where the thread stands while it is free
  Context caller;   ///< where the fiber stands that has borrowed it for a call
  Stack stack;
  Stack first;  ///< the one on which the fiber has begun, to be given back; usually false
  uintptr_t thread_pointer = 0;
  FiberCore* core = nullptr;      ///< of the fiber that runs it
  void (*body)(void*) = nullptr;  ///< what that has borrowed it for, unless it is for its whole function
  void* argument = nullptr;
  BorrowedThread* next = nullptr;
  size_t room = 0;                ///< how large the stack is without what libc has there
  std::atomic<uint32_t> left{0};  ///< the fiber has left it, so a kernel thread may take it over
  bool over = false;              ///< its function has ended
  alignas(StartedState) std::byte started[sizeof(StartedState)];

  /// Returns true if the fiber has borrowed it for its whole function, and has begun there.
  bool isWhole(const FiberCore& fiber) const;
  /// Returns the one on which the fiber has begun that has this state.
  static BorrowedThread& of(StartedState& state);
};

/// The free ones of a worker's thread, the one that was given back last in front, and those of all threads behind them. Not thread
/// safe, except the functions marked.
class FreeThreads {
 public:
  constexpr FreeThreads() = default;
  ~FreeThreads();
  FreeThreads(const FreeThreads&) = delete;
  FreeThreads& operator=(const FreeThreads&) = delete;

  /// Returns one with a stack of at least `size` bytes, or null.
  BorrowedThread* take(size_t size);
  void put(BorrowedThread& one);
  /// Gives one to all. Any thread.
  static void putForAll(BorrowedThread& one);
  /// Takes one of all. Any thread.
  static BorrowedThread* takeOfAll(size_t size);

 private:
  static constexpr size_t kKept = 64;

  BorrowedThread* m_first = nullptr;
  size_t m_count = 0;
};

/// Makes the threads. The hooks have one.
class ThreadLender {
 public:
  /// Returns a new one with a stack of at least `size` bytes, for the running fiber. Returns null if libc's threads cannot be run by
  /// fibers here. Throws std::bad_alloc. May suspend: yes.
  virtual BorrowedThread* make(size_t size) = 0;
  /// Notes that the calling thread is run by another worker from now on.
  virtual void isRunElsewhere() = 0;

 protected:
  ~ThreadLender() = default;
};

}  // namespace sylar::detail
