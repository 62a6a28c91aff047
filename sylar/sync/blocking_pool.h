// Internal. Helper threads for functions that cannot park.
//
//   int fd;
//   if (BlockingPool::process().run([&] { fd = sys::call(SYS_accept4, ...); }) < 0) ... the pool is full
//
// The function runs on any helper thread. It sees that thread's errno and thread-locals, not the fiber's. Threads are made on
// demand, end after a while without work, and block all signals.
//
// run() makes the fiber wait while its worker goes on. The function may use the fiber's stack, so the fiber is shielded, and
// neither cancel nor close ends the wait. stop() waits for it; stop(deadline) gives the fiber up and keeps its stack for the
// function. post() waits for nothing, and the function owns what it uses.
//
// Functions whose length others decide (Length::kOthers: a command, a peer) have at most half of the threads, so that they leave
// some to those that only need a moment, on which they may even wait.
//
// Thread safety: all calls from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <type_traits>

#include "sylar/base/internal.h"
#include "sylar/base/os_mutex.h"
#include "sylar/sched/auto_advance.h"
#include "sylar/sched/waker.h"
#include "sylar/sync/blocking.h"

namespace sylar::detail {

class BlockingPool {
 public:
  explicit BlockingPool(BlockingLimits limits = {});
  /// Waits for all queued and running functions, and for the threads to end.
  ~BlockingPool();
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  /// Returns the pool of the process, which is never destroyed.
  static BlockingPool& process();

  enum class Length : bool { kOwn, kOthers };

  /// Runs `function` on a helper thread and returns when it has returned; its exceptions are rethrown here. Returns 0, or -EAGAIN
  /// if the function was refused and not run. Outside fibers, and in a forked child, it runs on the calling thread. May suspend:
  /// yes.
  template <class Function>
  [[nodiscard]] int run(Function&& function, Length length = Length::kOwn);

  /// Returns false outside fibers and in a forked child, where functions run on the calling thread.
  static bool needsHelper();

  /// Has a helper thread call `function`, where needsHelper(). An exception of it is dropped. Returns 0, or -EAGAIN if it was
  /// refused. Throws std::bad_alloc.
  [[nodiscard]] int post(std::function<void()> function);

  /// Sets the limits, from now on.
  void setLimits(const BlockingLimits& limits);

  /// Ends the threads that have nothing to do. Blocks the calling thread until they have been told.
  void endIdle() { end(false); }
  /// Waits for all queued and running functions, and for the threads to end. Blocks the calling thread. The pool can go on.
  void endAll() { end(true); }

  size_t threads() const;
  /// Returns the number of functions that wait for a thread.
  size_t queued() const;

 private:
  /// One call. Touched only under the lock, except by the thread that runs it.
  struct Job {
    void (*call)(void* function);
    void* function;
    std::exception_ptr exception = nullptr;
    Waker waker = {};
    ClockHold virtual_time = {};  // held until the fiber has been told; a fiber that was abandoned never unwinds
    Length length = Length::kOwn;
    bool done = false;
    Job* next = nullptr;
  };
  struct Queue {
    Job* pop();
    void push(Job& job);

    Job* first = nullptr;
    Job* last = nullptr;
    size_t size = 0;
  };
  /// A call that nobody waits for. Owned by the queue, and then by the thread that runs it.
  struct PostedJob;

  int runJob(Job& job);
  static void runPosted(void* job);
  bool submit(Job& job) SYLAR_REQUIRES(m_mutex);
  void enqueue(Job& job) SYLAR_REQUIRES(m_mutex);
  void leaveLong() SYLAR_REQUIRES(m_mutex);
  size_t longPlaces() const SYLAR_REQUIRES(m_mutex);
  bool lacksThread(Length length) const SYLAR_REQUIRES(m_mutex);
  bool provideThread(Length length);
  bool makeThread();
  static void* threadMain(void* pool);
  void work();
  Job* take();
  void leaveIdle() SYLAR_REQUIRES(m_mutex);
  void tellEnd() SYLAR_REQUIRES(m_mutex);
  void finish(Job& job);
  void finishPosted(PostedJob& job);
  void end(bool all);

  mutable OsMutex m_mutex;
  BlockingLimits m_limits SYLAR_GUARDED_BY(m_mutex);
  Queue m_queue SYLAR_GUARDED_BY(m_mutex);
  Queue m_waiting SYLAR_GUARDED_BY(m_mutex);    // Length::kOthers, while as many of them are at work as may be
  size_t m_long SYLAR_GUARDED_BY(m_mutex) = 0;  // Length::kOthers, in the queue or at work
  size_t m_idle SYLAR_GUARDED_BY(m_mutex) = 0;
  size_t m_coming SYLAR_GUARDED_BY(m_mutex) = 0;    // are being made, or not yet idle
  size_t m_threads SYLAR_GUARDED_BY(m_mutex) = 0;   // with those that come
  bool m_ending SYLAR_GUARDED_BY(m_mutex) = false;  // idle threads are to end now
  std::atomic<uint32_t> m_calls{0};                 // idle threads sleep on it; changes when they have a reason to look
  std::atomic<uint32_t> m_left_idle{0};             // end() sleeps on it
};

template <class Function>
int BlockingPool::run(Function&& function, Length length) {
  if (!needsHelper()) {
    function();
    return 0;
  }
  Job job{[](void* f) { (*static_cast<std::remove_reference_t<Function>*>(f))(); },
          const_cast<void*>(static_cast<const void*>(std::addressof(function)))};
  job.length = length;
  return runJob(job);
}

}  // namespace sylar::detail
