// The fibers and threads that wait for a primitive of sylar/sync, oldest first. Users need the primitives, not this.
//
// A waiting fiber is suspended, a plain thread blocks. The value or lock is handed to the oldest waiter, so nobody overtakes.
#pragma once

#include <atomic>
#include <cstdint>

#include "sylar/clock.h"
#include "sylar/thread_mutex.h"

namespace sylar::detail {

struct FiberCore;

/// The primitive that a queue belongs to, for reports.
enum class SyncKind : uint8_t {
  kMutex,
  kRWMutex,
  kSemaphore,
  kCondition,
  kEvent,
  kWaitGroup,
  kSend,
  kReceive,
  kSelect,
  // Of libc, by the hooks.
  kPthreadMutex,
  kPthreadRWLock,
  kPthreadCond,
  kPthreadBarrier,
  kPosixSemaphore,
  kOnce,
  kFutex,
};

/// One wait of a fiber or thread. Everybody to whom it was shown may end it, and the first does. It lies on the stack of the one
/// who waits.
class SyncWait {
 public:
  SyncWait() = default;
  SyncWait(const SyncWait&) = delete;
  SyncWait& operator=(const SyncWait&) = delete;

  /// Decides the wait. Returns true for the one winner, who owes it SyncWakes::add(). Any thread, also under a lock.
  [[nodiscard]] bool claim();
  /// The fiber's core and the number of its wait, for a waker; null and 0 of a thread.
  FiberCore* core() const { return m_core; }
  uint64_t epoch() const { return m_epoch; }

 protected:
  template <class Types>
  friend struct SyncSteps;

  FiberCore* m_core = nullptr;       // of a fiber
  uint64_t m_epoch = 0;              // of a fiber
  std::atomic<uint32_t> m_state{0};  // of a thread, which sleeps on it
};

/// The place of a wait in one queue. It lies on the stack of the one who waits, which is not touched any more once it was told.
class SyncWaiter {
 public:
  /// `its_data` is for those who end the wait.
  explicit SyncWaiter(void* its_data = nullptr) : data(its_data) {}
  SyncWaiter(const SyncWaiter&) = delete;
  SyncWaiter& operator=(const SyncWaiter&) = delete;

  /// Returns true if take() has ended the wait. For the one who waits, when it was told.
  bool isTaken() const { return m_taken; }

  void* const data;

 private:
  friend class SyncWakes;
  template <class Types>
  friend struct SyncSteps;

  SyncWait* m_wait = nullptr;
  SyncWaiter* m_next = nullptr;
  SyncWaiter* m_prev = nullptr;
  bool m_linked = false;
  bool m_taken = false;
  std::atomic<bool> m_settled{false};  // either its wait was in vain and it leaves, or somebody has taken it out before
};

/// The waiters that somebody has taken out and must tell. Telling comes after the lock.
class SyncWakes {
 public:
  SyncWakes() = default;
  ~SyncWakes() {
    if (m_first != nullptr) deliver();
  }
  SyncWakes(const SyncWakes&) = delete;
  SyncWakes& operator=(const SyncWakes&) = delete;

  /// Under the lock: `waiter`, which takeOldest() has returned, has everything that it waits for. It must not be touched
  /// afterwards.
  void add(SyncWaiter& waiter) { add(*waiter.m_wait); }
  /// The same for a wait that the caller has claimed.
  void add(SyncWait& claimed);
  /// Tells all that were added. To be called without the lock. The destructor does it as well.
  void deliver();

 private:
  template <class Types>
  friend struct SyncSteps;

  void* m_first = nullptr;  // fibers, linked by their cores
  void* m_last = nullptr;
};

/// Thread safety: all but reserve() under the lock of the primitive that the queue belongs to, which is always the same.
class SyncQueue {
 public:
  constexpr explicit SyncQueue(SyncKind kind) : m_kind(kind) {}
  SyncQueue(const SyncQueue&) = delete;
  SyncQueue& operator=(const SyncQueue&) = delete;

  /// Makes room for a timeout, so that no wait can fail half-way. To be called before the lock is taken. Throws std::bad_alloc.
  static void reserve(Deadline deadline);

  /// Appends the calling fiber or thread, releases `lock`, and waits. Returns true if takeOldest() has returned `mine` to
  /// somebody; false if `deadline` passed or the fiber was cancelled before. `lock` is not held afterwards. May suspend: yes.
  bool wait(ThreadMutex& lock, SyncWaiter& mine, Deadline deadline) SYLAR_NO_THREAD_SAFETY_ANALYSIS;

  /// Appends `mine` as a place of `wait`, which the caller has opened and will park. dequeue() must follow when it has ended.
  void enqueue(SyncWaiter& mine, SyncWait& wait);
  /// Takes `mine` out if nobody else has.
  void dequeue(SyncWaiter& mine);
  /// Returns true if a wait other than `mine` is in the queue. It may be over.
  bool hasOther(const SyncWait& mine) const;

  /// Returns the oldest waiter, whose wait may be over, or null if nobody waits.
  SyncWaiter* oldest() const { return m_first; }
  /// Takes out `waiter`, which is in the queue. Returns false if its wait is over. Otherwise that wait ends in no other way, and
  /// the caller owes it SyncWakes::add().
  [[nodiscard]] bool take(SyncWaiter& waiter);
  /// Takes out the oldest waiter that still waits and returns it, or null if nobody does. The caller owes it SyncWakes::add(). A
  /// fiber that was abandoned does not wait any more, but may be in the queue until somebody looks.
  SyncWaiter* takeOldest() { return m_first == nullptr ? nullptr : takeOldestOfSome(); }
  /// Takes out all who wait, and has them told.
  void wakeAll(SyncWakes& wakes);
  bool empty() const { return m_first == nullptr; }
  /// For the destructor of the primitive, without `lock`: checks that nobody waits, and blocks until those have left whose wait was
  /// in vain. Does nothing in a forked child.
  void end(ThreadMutex& lock);

 private:
  template <class Types>
  friend struct SyncSteps;

  SyncWaiter* takeOldestOfSome();

  const SyncKind m_kind;
  uint32_t m_leaving = 0;  // waiters that were taken out while they were about to do so themselves
  SyncWaiter* m_first = nullptr;
  SyncWaiter* m_last = nullptr;
};

/// What templates of this module are made of. The model checker gives them its own.
struct SyncTypes {
  using Mutex = ThreadMutex;
  using Wait = SyncWait;
  using Waiter = SyncWaiter;
  using Wakes = SyncWakes;
  using Queue = SyncQueue;
};

}  // namespace sylar::detail
