// Internal. The fibers and threads that wait at objects of libc, such as a pthread_mutex_t, which have no room for them. They stand
// in queues that are found by the object's address, the oldest first. Source: WebKit's ParkingLot, futex(2).
//
// Whoever waits enters the queue under its lock, unless what it waits for is there by then. Whoever changes the object asks
// afterwards whether somebody waits there (mayWait). As both the change and the entry are atomic read-modify-writes, or the change
// is followed by a fence, one of the two sees the other.
//
// An object that can be taken, a mutex for example, is handed over: whoever releases it takes it for the oldest waiter and then
// tells that waiter. So a waiter is woken only when it has what it waits for.
//
// The object is not touched unless somebody still waits for it. Otherwise it may have been destroyed. Of a fiber that was abandoned
// the place may stay in a queue until somebody looks.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/hook/core/call_wait.h"
#include "sylar/hook/lock/lot_steps.h"
#include "sylar/sync/wait_queue.h"

namespace sylar::detail {

/// How the wait of a LotWait has ended.
enum class LotEnd : uint8_t {
  kGranted,      ///< the object was taken for the waiter
  kTold,         ///< somebody has woken it
  kTimeout,      ///< the deadline has passed
  kCancelled,    ///< the fiber was cancelled, or the deadline of its scope has passed
  kInterrupted,  ///< a signal handler has run
  kNoMemory,     ///< for a timeout
};

/// What a waiter wants to be done for it.
struct LotKind {
  SyncKind what;
  /// Takes the object, for whoever. Returns 0, EBUSY if it cannot be had now, or another error.
  int (*take)(void* object) = nullptr;
  /// Gives back what take() has taken.
  void (*give_back)(void* object) = nullptr;
};

class LotBucket;
class LotWait;

struct LotMemory : StdMemory {
  /// Orders an atomic read-modify-write before the loads behind it, as it already is on x86-64.
  [[gnu::always_inline]] static void fence() {
#ifdef __x86_64__
    std::atomic_signal_fence(std::memory_order_seq_cst);
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }
};

struct LotTypes {
  using Memory = LotMemory;
  using Wait = LotWait;
  using Bucket = LotBucket;
  using Wakes = SyncWakes;
  using Waker = sylar::Waker;
  static constexpr int kHandlerTries = 1000;

  static LotBucket& bucketOf(const void* object);
  static void begin(LotWait& wait);
};

/// One wait of the calling fiber or thread, in its frame. If it was entered, park() or withdraw() must end it.
class LotWait final : public SyncWait {
 public:
  static constexpr uint32_t kAnyBits = ~0u;

  /// `as_fiber` says that the caller is a fiber that may be suspended here.
  LotWait(void* object, const LotKind& kind, bool as_fiber) : m_object(object), m_kind(kind), m_as_fiber(as_fiber) {}

  /// Enters the queue, unless `is_there`, called under its lock, returns true. Returns false if the wait is over without having
  /// begun. `turn` is 0, and becomes the caller's place in the order. One who was woken for nothing enters with the turn that it
  /// had.
  template <class IsThere>
  [[nodiscard]] bool enterUnless(IsThere is_there, uint64_t& turn) {
    lockForEntry();
    const bool there = is_there();
    enterAndUnlock(!there, turn);
    return !there;
  }
  template <class IsThere>
  [[nodiscard]] bool enterUnless(IsThere is_there) {
    uint64_t turn = 0;
    return enterUnless(is_there, turn);
  }
  /// Returns true if somebody waits for the same object. For `is_there`.
  bool othersWait() const;
  /// Says which bits of a waker's bits wake it. Before the entry, or in its `is_there`.
  void wakeBy(uint32_t bits) { m_bits = bits; }
  void enter() {
    (void)enterUnless([] { return false; });
  }

  /// Waits until it is told, for which a fiber needs reserveWithinScope(). On a plain thread neither a handler nor anything else
  /// ends the wait. May suspend: yes.
  LotEnd park(Deadline deadline, CallWait& call);
  /// The same for a fiber with a shield, in a call that no handler ends.
  LotEnd parkForEver();
  /// The same on a plain thread, for a cancellation point: pthread_cancel(3) unwinds the caller's frame.
  LotEnd parkCancellably(Deadline deadline);
  /// Ends a wait that was not parked, or whose park was left by an unwinding thread. Returns true if it was told before.
  bool withdraw();

 private:
  friend struct LotSteps<LotTypes>;
  friend LotTypes;

  void lockForEntry();
  void enterAndUnlock(bool enters, uint64_t& turn);
  template <class Memory>
  LotEnd parkThread(Deadline deadline);
  LotEnd told() const { return m_granted ? LotEnd::kGranted : LotEnd::kTold; }

  void* m_object;
  const LotKind& m_kind;
  const bool m_as_fiber;
  bool m_linked = false;
  bool m_told = false;  // or about to be
  bool m_granted = false;
  uint32_t m_bits = kAnyBits;
  uint64_t m_turn = 0;
  std::atomic<LotBucket*> m_bucket{nullptr};  // changes under the locks of both
  LotWait* m_next = nullptr;
  LotWait* m_prev = nullptr;
  std::optional<Wait> m_wait;  // of a fiber
};

/// One queue of the lot, for all objects whose addresses have this hash.
class alignas(64) LotBucket {
 public:
  constexpr LotBucket() = default;

  bool mayWait() const { return m_may_wait.load(std::memory_order_relaxed); }

 private:
  friend struct LotSteps<LotTypes>;

  std::atomic<bool> m_may_wait{false};  ///< somebody is linked, or about to be
  std::atomic<bool> m_posted{false};    ///< a signal handler wants whoever has the lock to look again
  OsMutex m_lock;
  // Under m_lock:
  uint64_t m_last_turn = 0;
  LotWait* m_first = nullptr;
  LotWait* m_last = nullptr;
};

/// Thread safety: all calls from any thread.
class ParkingLot {
 public:
  /// Returns false if nobody waits at `object`. To be asked after the object was changed.
  [[gnu::always_inline]] static bool mayWait(const void* object) {
    LotMemory::fence();
    return bucketOf(object).mayWait();
  }

  using Release = LotRelease;
  /// Acts on those who wait for `object` as `what`. If the call may be made in a signal handler, that is `in_handler`.
  static void release(void* object, SyncKind what, Release how, bool in_handler = false);
  /// Gives `object`, which the caller has taken, to the oldest of those who wait for it as `what`, without giving it back in
  /// between. Returns false if nobody does. If it returns true, the object is not the caller's any more.
  static bool passOn(void* object, SyncKind what);

  /// Wakes up to `most` of those who wait at `object` with one of `bits`, in their order. Returns how many there were.
  static uint32_t wake(const void* object, uint32_t most, uint32_t bits = LotWait::kAnyBits, bool in_handler = false);
  static uint32_t wakeAll(const void* object, uint32_t bits = LotWait::kAnyBits) { return wake(object, ~0u, bits); }
  /// Moves up to `most` of those who wait at `from` to the end of the queue of `to`. Returns how many there were.
  static uint32_t requeue(const void* from, void* to, uint32_t most);

  /// Empties the lot, in the child of a fork, and counts it.
  static void forgetAll();

  static LotBucket& bucketOf(const void* object) {
    const uint64_t hash = (reinterpret_cast<uintptr_t>(object) >> 3) * 0x9e3779b97f4a7c15;
    return s_buckets[hash >> (64 - kBucketBits)];
  }

  /// Returns the number of forks that have led to this process, as far as they were seen.
  static int forks() { return s_forks; }

 private:
  static constexpr int kBucketBits = 9;

  static constinit int s_forks;

  static constinit LotBucket s_buckets[1 << kBucketBits];
};

inline LotBucket& LotTypes::bucketOf(const void* object) { return ParkingLot::bucketOf(object); }

}  // namespace sylar::detail
