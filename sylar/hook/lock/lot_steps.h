// Internal. What the parking lot does with its queues. It is a template, so that the model checker can run the very same code over
// its own memory.
#pragma once

#include <cerrno>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/base/tsan.h"
#include "sylar/sched/waker.h"
#include "sylar/sync/thread_wait.h"
#include "sylar/sync/wait_queue.h"

namespace sylar::detail {

/// What a release does for those who wait for an object.
enum class LotRelease : uint8_t {
  kHandOver,  ///< It takes the object for them, one after the other, as long as it can be had.
  // For an object at which threads wait in the kernel as well, and have their chance.
  kWakeOne,  ///< It wakes the oldest, which tries again.
  kWakeAll,  ///< It wakes all of them, for an object that several may have at once.
};

/// `Types` has:
///
///   Memory               as LotMemory
///   Wait, Bucket, Wakes  as LotWait, LotBucket, SyncWakes
///   Waker                as sched's
///   kHandlerTries        how often a signal handler tries to lock a bucket
///   bucketOf(object)     the bucket of an object
///   begin(wait)          begins the wait of a fiber, and notes its core and epoch in it
template <class Types>
struct LotSteps {
  using Memory = typename Types::Memory;
  using Wait = typename Types::Wait;
  using Bucket = typename Types::Bucket;
  using Wakes = typename Types::Wakes;
  using Waker = typename Types::Waker;

  /// Holds a bucket, unless the thread may be in a signal handler, and cannot have it: then whoever has it looks for the waiters.
  class Hold {
   public:
    explicit Hold(Bucket& bucket, bool in_handler = false) SYLAR_NO_THREAD_SAFETY_ANALYSIS
        : m_bucket(bucket),
          m_has_it(!in_handler || takes(bucket)) {
      if (!in_handler) bucket.m_lock.lock();
    }
    ~Hold() {
      if (m_has_it) unlock(m_bucket);
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    bool hasIt() const { return m_has_it; }

   private:
    /// A handler may have interrupted the section of its own thread, or that of another thread in whose handler somebody waits for
    /// a section that this one has interrupted.
    static bool takes(Bucket& bucket) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
      for (int i = 0; i < Types::kHandlerTries && !bucket.m_lock.heldByThisThread(); ++i) {
        if (bucket.m_lock.tryLock()) return true;
        Memory::relax();
      }
      bucket.m_posted.exchange(true, std::memory_order_seq_cst);
      Memory::fence();
      return bucket.m_lock.tryLock();  // else whoever has it sees the word
    }

    Bucket& m_bucket;
    const bool m_has_it;
  };

  // ---- Those who wait. -------------------------------------------------------------------------------------------------------

  static void lockForEntry(Wait& mine) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    Bucket& bucket = Types::bucketOf(mine.m_object);
    bucket.m_may_wait.store(true, std::memory_order_relaxed);
    bucket.m_lock.lock();
    Memory::fence();
    if (!bucket.m_may_wait.load(std::memory_order_relaxed)) announce(bucket);  // another one has left it empty meanwhile
  }

  static void enterAndUnlock(Wait& mine, bool enters, uint64_t& turn) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    Bucket& bucket = Types::bucketOf(mine.m_object);
    if (enters) {
      if (turn == 0) turn = bucket.m_last_turn = bucket.m_last_turn + 1;
      mine.m_turn = turn;
      if (mine.m_as_fiber) Types::begin(mine);
      link(bucket, mine);
    } else {
      noteIfEmpty(bucket);
    }
    unlock(bucket);
  }

  static bool othersWait(const Wait& mine) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    for (const Wait* one = Types::bucketOf(mine.m_object).m_first; one != nullptr; one = one->m_next) {
      if (one->m_object == mine.m_object && isOpen(*one)) return true;
    }
    return false;
  }

  /// Takes a wait that is over out of its queue, which requeue() may change meanwhile.
  static void leave(Wait& mine) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    for (;;) {
      Bucket& bucket = *mine.m_bucket.load(std::memory_order_relaxed);
      bucket.m_lock.lock();
      const bool here = mine.m_bucket.load(std::memory_order_relaxed) == &bucket;
      if (here && mine.m_linked) unlink(bucket, mine);
      unlock(bucket);
      if (here) return;
    }
  }

  // ---- Those who wake. -------------------------------------------------------------------------------------------------------

  static void release(void* object, SyncKind what, LotRelease how, bool in_handler) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    Bucket& bucket = Types::bucketOf(object);
    Wakes wakes;
    const Hold hold(bucket, in_handler);
    if (!hold.hasIt()) return;
    for (Wait* one = bucket.m_first; one != nullptr;) {
      Wait* const next = one->m_next;
      if (one->m_object == object && one->m_kind.what == what) {
        const auto& kind = one->m_kind;
        const int error = how != LotRelease::kHandOver || !isOpen(*one) ? EAGAIN : kind.take(object);
        if (error == EBUSY) return;  // whoever has it will come here
        const auto give_back = kind.give_back;
        one->m_granted = error == 0;
        const bool told = take(bucket, *one, in_handler ? nullptr : &wakes);
        if (!told && error == 0) give_back(object);  // its wait has ended just now, so it is still there
        if (told && how == LotRelease::kWakeOne) return;
      }
      one = next;
    }
  }

  /// Gives `object`, which the caller has, to the oldest of those who wait for it as `what`, as it is. Returns false if nobody
  /// does.
  static bool passOn(void* object, SyncKind what) {
    decltype(Waker::core) core = nullptr;
    {
      Bucket& bucket = Types::bucketOf(object);
      const Hold hold(bucket);
      for (Wait* one = bucket.m_first; one != nullptr && core == nullptr;) {
        Wait* const next = one->m_next;
        if (one->m_object == object && one->m_kind.what == what) {
          one->m_granted = true;
          if (claim(bucket, *one) && (core = one->core()) == nullptr) return tellThread(*one);
        }
        one = next;
      }
    }
    if (core == nullptr) return false;
    tsan::release(&core->wait);  // park() acquires it
    Waker::deliver(*core);
    return true;
  }

  static uint32_t wake(const void* object, uint32_t most, uint32_t bits, bool in_handler) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    uint32_t woken = 0;
    Bucket& bucket = Types::bucketOf(object);
    Wakes wakes;
    const Hold hold(bucket, in_handler);
    if (!hold.hasIt()) return 0;
    for (Wait* one = bucket.m_first; one != nullptr && woken < most;) {
      Wait* const next = one->m_next;
      const bool wanted = one->m_object == object && (one->m_bits & bits) != 0;
      if (wanted && take(bucket, *one, in_handler ? nullptr : &wakes)) ++woken;
      one = next;
    }
    return woken;
  }

  static uint32_t requeue(const void* from, void* to, uint32_t most) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    Bucket& source = Types::bucketOf(from);
    Bucket& target = Types::bucketOf(to);
    if (&target < &source) target.m_lock.lock();
    source.m_lock.lock();
    if (&target > &source) target.m_lock.lock();
    uint32_t moved = 0;
    Wait* const last = source.m_last;  // of one bucket those that were moved come behind it
    for (Wait* one = source.m_first; one != nullptr && moved < most;) {
      Wait* const next = one == last ? nullptr : static_cast<Wait*>(one->m_next);
      if (one->m_object == from) {
        unlink(source, *one);
        announce(target);
        one->m_object = to;
        one->m_turn = target.m_last_turn = target.m_last_turn + 1;
        link(target, *one);
        ++moved;
      }
      one = next;
    }
    unlock(source);
    if (&target != &source) unlock(target);
    return moved;
  }

  // ---- Under the lock of the bucket. -----------------------------------------------------------------------------------------

  /// Tells those who change an object from here on that somebody waits, or is about to.
  static void announce(Bucket& bucket) {
    bucket.m_may_wait.exchange(true, std::memory_order_seq_cst);
    Memory::fence();
  }
  static void noteIfEmpty(Bucket& bucket) {
    if (bucket.m_first == nullptr) bucket.m_may_wait.store(false, std::memory_order_relaxed);
  }

  static void link(Bucket& bucket, Wait& one) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    one.m_linked = true;
    one.m_bucket.store(&bucket, std::memory_order_relaxed);
    Wait* before = bucket.m_last;
    while (before != nullptr && before->m_turn > one.m_turn) before = before->m_prev;
    one.m_prev = before;
    one.m_next = before != nullptr ? before->m_next : bucket.m_first;
    (before != nullptr ? before->m_next : bucket.m_first) = &one;
    (one.m_next != nullptr ? one.m_next->m_prev : bucket.m_last) = &one;
  }

  static void unlink(Bucket& bucket, Wait& one) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    one.m_linked = false;
    (one.m_prev != nullptr ? one.m_prev->m_next : bucket.m_first) = one.m_next;
    (one.m_next != nullptr ? one.m_next->m_prev : bucket.m_last) = one.m_prev;
    noteIfEmpty(bucket);
  }

  /// Takes out `one` and ends its wait, unless that is over. Returns true if it did, and owes it to tell it.
  static bool claim(Bucket& bucket, Wait& one) {
    unlink(bucket, one);
    return one.claim() && (one.m_told = true);
  }

  /// The same, and tells it. Without `wakes` a fiber is told by mail.
  static bool take(Bucket& bucket, Wait& one, Wakes* wakes) {
    if (!claim(bucket, one)) return false;
    auto* const core = one.core();
    if (core == nullptr) return tellThread(one);
    if (wakes != nullptr) {
      wakes->add(one);
    } else {
      tsan::release(&core->wait);  // park() acquires it
      Waker::deliverByMail(*core);
    }
    return true;
  }

  /// Tells a thread, which needs no lock for it. Returns true.
  static bool tellThread(Wait& one) {
    ThreadWait<Memory>(one.m_state).tell();
    return true;
  }

  /// Returns false if the wait is over. Then its owner leaves the queue by itself, or never, and the object may be gone.
  static bool isOpen(const Wait& one) {
    const auto* const core = one.core();
    if (core == nullptr) return one.m_state.load(std::memory_order_relaxed) == 0;
    return core->wait.epoch() == one.epoch() && core->wait.isOpen();
  }

  static void unlock(Bucket& bucket) SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    bucket.m_lock.unlock();
    Memory::fence();
    while (bucket.m_posted.load(std::memory_order_relaxed) && bucket.m_posted.exchange(false, std::memory_order_acq_rel)) {
      bucket.m_lock.lock();
      for (Wait* one = bucket.m_first; one != nullptr;) {
        Wait* const next = one->m_next;
        const auto what = one->m_kind.what;  // each of them tries again
        if (what == SyncKind::kPosixSemaphore || what == SyncKind::kFutex) take(bucket, *one, nullptr);
        one = next;
      }
      bucket.m_lock.unlock();
      Memory::fence();
    }
  }
};

}  // namespace sylar::detail
