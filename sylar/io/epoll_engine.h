// Internal. The epoll of a worker. It reports readiness to the entries of descriptors, and wakes for mail, for public timers, and
// for what the worker's ring has done.
#pragma once

#include <fcntl.h>
#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "sylar/base/fd.h"
#include "sylar/base/internal.h"
#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/sched/driver.h"
#include "sylar/sched/waker.h"

namespace sylar::detail {

class DueTimers;
class EpollEngine;
class Ring;

/// Keeps calls with their open files when their numbers are closed. Thread safety: any thread.
class CallKeeper {
 public:
  /// Called when `fd` begins to be closed: it is still open, and those who wait for it have not been told yet.
  virtual void closing(int fd, uint32_t generation) const = 0;
  /// Called when `engine` ends. The fibers that wait there have been abandoned.
  virtual void ended(const EpollEngine& engine) const = 0;

 protected:
  ~CallKeeper() = default;
};

/// The upkeep that all workers of a scheduler share.
class SharedUpkeep {
 public:
  /// Returns a descriptor that becomes readable when a timer is due, or -1 if there is none. Always the same.
  virtual int timerFd() const = 0;
  /// Returns when a timer is due, in case no descriptor tells. Callable from any thread.
  virtual int64_t timersDueNs() const = 0;
  /// Runs a bounded amount of due work; each worker calls it once an iteration. `timers_woken` says that the descriptor has told;
  /// without it another worker may be serving the timers already, which is fine. `batch` is the last batch of the worker. Returns
  /// true if more is due.
  virtual bool serve(int64_t now_ns, bool timers_woken, std::shared_ptr<DueTimers>& batch) = 0;
  /// For a worker that has declared that it sleeps, and is about to wait for the descriptor.
  virtual void beforeSleep() = 0;

 protected:
  ~SharedUpkeep() = default;
};

/// Used by its worker only, except add, modify and remove, which any thread may call under the lock of the descriptor's entry.
class EpollEngine final : public Driver {
 public:
  using Waker = sylar::Waker;

  /// With `spin_ns` > 0 a poll that may wait polls repeatedly for that long first; on steadyClock() only.
  /// Throws std::system_error if there is no descriptor for it.
  EpollEngine(WorkerSlot& slot, SharedUpkeep& upkeep, int64_t spin_ns = 0);
  ~EpollEngine() override;
  EpollEngine(const EpollEngine&) = delete;
  EpollEngine& operator=(const EpollEngine&) = delete;

  /// Returns the engine of the calling worker, or null on a plain thread and in a scheduler that waits for no descriptors.
  static EpollEngine* current();

  int add(int fd, uint32_t generation, uint32_t events) { return control(EPOLL_CTL_ADD, fd, generation, events); }
  int modify(int fd, uint32_t generation, uint32_t events) { return control(EPOLL_CTL_MOD, fd, generation, events); }
  void remove(int fd) { control(EPOLL_CTL_DEL, fd, 0, 0); }
  static void closeNumber(int fd) { sys::closeFd(fd); }
  static bool isOpen(int fd) { return sys::call(SYS_fcntl, fd, F_GETFD, 0) >= 0; }
  static void closing(int fd, uint32_t generation) {
    if (const CallKeeper* const keeper = s_keeper.load(std::memory_order_acquire)) keeper->closing(fd, generation);
  }
  /// Sets who is told of closes and of the ends of engines, for good. At first nobody is.
  static void setKeeper(const CallKeeper& keeper) { s_keeper.store(&keeper, std::memory_order_release); }
  /// Returns true once retire() has begun. If false under the lock of an entry, retire() has yet to come to that entry. Callable
  /// from any thread.
  bool retired() const { return m_retired.load(std::memory_order_relaxed); }

  /// Counts a call that did not have to wait.
  void chargeCall() {
    const tsan::Exempt of_this_thread;
    if (++m_charged % kCallsPerLook == 0) lookAtTime();
  }
  /// Returns true if there were so many such calls, or calls for so long, that the budget of calls is spent.
  bool budgetIsSpent() const {
    const tsan::Exempt of_this_thread;
    return m_charged >= kCallBudget;
  }
  /// Returns the number of such calls since the budget was refilled, or more if they took long.
  unsigned charged() const {
    const tsan::Exempt of_this_thread;
    return m_charged;
  }
  /// Refills the budget, because other fibers run now.
  void refillBudget() {
    const tsan::Exempt of_this_thread;
    m_charged = 0;
  }

  bool serve(int64_t now_ns) override;
  bool poll(int64_t now_ns, int64_t deadline_ns) override;
  void submit() override;
  /// Returns the worker's ring, which is made when it is first asked for. Returns null if there can be none, or if setIOEngine()
  /// wants none.
  Ring* ring();
  /// Returns true if the worker's ring may make transfers, should there be a ring. The answer is fixed when the worker starts.
  bool transfers() const { return m_transfers != Transfers::kNone; }
  /// Counts a receive of a TCP socket that begins to wait.
  void countReceive() {
    const tsan::Exempt of_this_thread;
    ++m_receives;
  }
  /// Returns the ring if it is to make the transfer that now begins, else null. `watched` says whether the epoll watches the
  /// socket. Under kAuto the ring takes over a watched one only where the load has clearly grown.
  Ring* transferRing(bool watched) {
    const tsan::Exempt of_this_thread;
    if (m_transfers == Transfers::kNone) return nullptr;
    if (m_transfers == Transfers::kShared && m_usual_receives < kScale * (watched ? kMany : kSome)) return nullptr;
    return ringForTransfers();
  }

  int fd() const override { return m_epoll.get(); }
  int64_t nextDueNs() const override { return m_upkeep.timersDueNs(); }
  void retire() override;
  void enter() override;
  void leave() override;
  void abandon(const FiberCore& core) override;
  bool holdsThread() const override;

 private:
  static constexpr int kMaxEvents = 256;
  static constexpr unsigned kCallBudget = 64;
  static constexpr unsigned kCallsPerLook = 4;
  static constexpr int64_t kTimeBudgetNs = 100'000;
  // With so many receives a turn one call into the kernel for all is cheaper than one for each: kSome for a socket that the epoll
  // does not watch, kMany for one that it does.
  static constexpr unsigned kSome = 3;
  static constexpr unsigned kMany = 6;
  static constexpr unsigned kScale = 8;  // by which the average is stored, and of which a new number is one part

  /// When the ring makes transfers.
  enum class Transfers : uint8_t { kNone, kShared, kAll };

  static std::atomic<const CallKeeper*> s_keeper;

  void lookAtTime();
  void noteReceives();
  Ring* ringForTransfers();
  int collect(int64_t now_ns, int64_t deadline_ns);
  int control(int op, int fd, uint32_t generation, uint32_t events);
  void watch(int fd, uint32_t events);

  SharedUpkeep& m_upkeep;
  const int m_wake_fd;
  const int64_t m_spin_ns;
  const int m_timer_fd;
  std::atomic<bool> m_retired{false};
  bool m_timer_event = false;
  std::shared_ptr<DueTimers> m_batch;
  unsigned m_charged = 0;
  int64_t m_first_look_ns = 0;  // since the budget was refilled
  Transfers m_transfers = Transfers::kNone;
  unsigned m_receives = 0;        // that have begun to wait in this turn
  unsigned m_usual_receives = 0;  // in the turns in which any do, times kScale
  unsigned m_without_ring = 0;    // for how many turns there are no transfers, because no ring could be made
  bool m_ring_made = false;       // or found to be impossible for good
  int m_ring_fd = -1;             // by which it notifies
  int m_ring_error = 0;
  std::unique_ptr<Ring> m_ring;
  UniqueFd m_epoll;
  epoll_event m_events[kMaxEvents];
};

}  // namespace sylar::detail
