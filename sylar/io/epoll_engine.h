// Internal. A worker's epoll: it reports readiness to the entries of descriptors, and wakes for mail and for public timers.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "sylar/base/fd.h"
#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/sched/driver.h"
#include "sylar/sched/waker.h"

namespace sylar {

class DueTimers;

/// What all workers of a scheduler look after together.
class SharedUpkeep {
 public:
  /// Becomes readable when a timer is due; -1: there is none. Always the same.
  virtual int timerFd() const = 0;
  /// When a timer is due, if there is no descriptor that tells. Any thread.
  virtual int64_t timersDueNs() const = 0;
  /// Once a turn of each. Runs what is due, bounded. `timers_woken`: the descriptor said so; else another worker may be at it
  /// already, and that is fine. `batch`: the worker's last. True: more is due.
  virtual bool serve(int64_t now_ns, bool timers_woken, std::shared_ptr<DueTimers>& batch) = 0;

 protected:
  ~SharedUpkeep() = default;
};

/// Its worker's, but for add, modify and remove, which any thread may call under the lock of the descriptor's entry.
class EpollEngine final : public Driver {
 public:
  using Waker = sylar::Waker;

  /// `spin_ns` > 0: a poll that may wait looks again and again for that long before it does; on steadyClock() only.
  /// Throws std::system_error if there is no descriptor for it.
  EpollEngine(WorkerSlot& slot, SharedUpkeep& upkeep, int64_t spin_ns = 0);
  ~EpollEngine() override;
  EpollEngine(const EpollEngine&) = delete;
  EpollEngine& operator=(const EpollEngine&) = delete;

  /// The engine of the worker that this is, or null: a plain thread, or a scheduler that waits for no descriptors.
  static EpollEngine* current();

  int add(int fd, uint32_t generation, uint32_t events) { return control(EPOLL_CTL_ADD, fd, generation, events); }
  int modify(int fd, uint32_t generation, uint32_t events) { return control(EPOLL_CTL_MOD, fd, generation, events); }
  void remove(int fd) { control(EPOLL_CTL_DEL, fd, 0, 0); }
  static void closeNumber(int fd) { sys::closeFd(fd); }
  /// Any thread. Under the lock of an entry: either it is, or retire() has yet to come to that entry.
  bool retired() const { return m_retired.load(std::memory_order_relaxed); }

  /// Counts a call that did not have to wait.
  void countCall() {
    const tsan::Exempt of_this_thread;
    ++m_calls_in_a_row;
  }
  /// There were many since fibers last took turns.
  bool turnIsOver() const {
    const tsan::Exempt of_this_thread;
    return m_calls_in_a_row >= kCallsInARow;
  }
  /// Others run now.
  void letOthersRun() {
    const tsan::Exempt of_this_thread;
    m_calls_in_a_row = 0;
  }

  bool serve(int64_t now_ns) override;
  bool poll(int64_t now_ns, int64_t deadline_ns) override;
  int fd() const override { return m_epoll.get(); }
  int64_t nextDueNs() const override { return m_upkeep.timersDueNs(); }
  void retire() override;

 private:
  static constexpr int kMaxEvents = 256;
  static constexpr unsigned kCallsInARow = 64;

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
  unsigned m_calls_in_a_row = 0;
  UniqueFd m_epoll;
  epoll_event m_events[kMaxEvents];
};

}  // namespace sylar
