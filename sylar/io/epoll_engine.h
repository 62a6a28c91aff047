// Internal. A worker's epoll: it reports readiness to the entries of descriptors, and wakes for mail and for public timers.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

#include "sylar/base/fd.h"
#include "sylar/base/sys.h"
#include "sylar/sched/driver.h"

namespace sylar {

/// Who serves the timers that all workers of a scheduler share.
class TimerService {
 public:
  /// Becomes readable when a timer is due; -1: there is none.
  virtual int timerFd() const = 0;
  /// A hint, without a lock.
  virtual bool timersDue(int64_t now_ns) const = 0;
  /// Runs what is due, bounded. `woken`: the descriptor said so; else another worker may be at it already, and that is fine.
  virtual void serveTimers(bool woken) = 0;

 protected:
  ~TimerService() = default;
};

/// Its worker's, but for add, modify and remove, which any thread may call under the lock of the descriptor's entry.
class EpollEngine final : public Driver {
 public:
  /// Throws std::system_error if there is no descriptor for it.
  EpollEngine(WorkerSlot& slot, TimerService& timers);
  ~EpollEngine() override;
  EpollEngine(const EpollEngine&) = delete;
  EpollEngine& operator=(const EpollEngine&) = delete;

  /// The engine of the worker that this is, or null: a plain thread, or a scheduler that waits for no descriptors.
  static EpollEngine* current();

  int add(int fd, uint32_t generation, uint32_t events) { return control(EPOLL_CTL_ADD, fd, generation, events); }
  int modify(int fd, uint32_t generation, uint32_t events) { return control(EPOLL_CTL_MOD, fd, generation, events); }
  void remove(int fd) { control(EPOLL_CTL_DEL, fd, 0, 0); }
  static void closeNumber(int fd) { sys::closeFd(fd); }

  /// Where its worker gets mail.
  WorkerSlot& slot() const { return m_slot; }

  void serve(int64_t now_ns) override;
  void poll(int64_t now_ns, int64_t deadline_ns) override;
  void retire() override;

 private:
  static constexpr int kMaxEvents = 256;

  int control(int op, int fd, uint32_t generation, uint32_t events);
  void watch(int fd, uint32_t events);

  TimerService& m_timers;
  WorkerSlot& m_slot;
  bool m_timer_event = false;
  UniqueFd m_epoll;
  epoll_event m_events[kMaxEvents];
};

}  // namespace sylar
