#include "sylar/io/epoll_engine.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/io/ring.h"
#include "sylar/sched/worker.h"

namespace sylar::detail {
namespace {

uint64_t pack(int fd, uint32_t generation) { return uint64_t{generation} << 32 | static_cast<uint32_t>(fd); }

}  // namespace

constinit std::atomic<const CallKeeper*> EpollEngine::s_keeper{nullptr};

EpollEngine::EpollEngine(WorkerSlot& slot, SharedUpkeep& upkeep, int64_t spin_ns)
    : Driver(true),
      m_upkeep(upkeep),
      m_wake_fd(slot.wake_fd),
      m_spin_ns(spin_ns),
      m_timer_fd(upkeep.timerFd()),
      m_epoll(sys::epollCreate()) {
  if (!m_epoll.valid()) throw std::system_error(-m_epoll.get(), std::generic_category(), "sylar: epoll of a worker");
  watch(m_wake_fd, EPOLLIN | EPOLLET);  // edge-triggered, so it need not be read
  if (m_timer_fd >= 0) watch(m_timer_fd, EPOLLIN | EPOLLEXCLUSIVE);
}

EpollEngine* EpollEngine::current() {
  Worker* const worker = Worker::current();
  if (worker == nullptr || !worker->driver().waitsForDescriptors()) return nullptr;
  return static_cast<EpollEngine*>(&worker->driver());
}

void EpollEngine::watch(int fd, uint32_t events) {
  SYLAR_DCHECK(events != 0);
  const int error = control(EPOLL_CTL_ADD, fd, 0, events);
  if (error < 0) throw std::system_error(-error, std::generic_category(), "sylar: epoll_ctl of a worker");
}

int EpollEngine::control(int op, int fd, uint32_t generation, uint32_t events) {
  SYLAR_DCHECK(fd >= 0 && m_epoll.valid());
  epoll_event event{};
  event.events = events;
  event.data.u64 = pack(fd, generation);
  return sys::epollControl(m_epoll.get(), op, fd, &event);
}

/// A few calls of a fiber that computes between them may take long. The clock is not asked at each call, because most calls are
/// quicker than it.
[[gnu::noinline]] void EpollEngine::lookAtTime() {
  SYLAR_DCHECK(m_charged % kCallsPerLook == 0);
  if (m_charged >= kCallBudget) return;
  const int64_t now_ns = steadyClock().nowNs();
  if (m_charged == kCallsPerLook) {
    m_first_look_ns = now_ns;
  } else if (now_ns - m_first_look_ns >= kTimeBudgetNs) {
    m_charged = kCallBudget;
  }
}

/// Collects events, after spinning if that is on. The worker has already said that it sleeps, so work that comes while it spins
/// shows in the epoll, as it does for a sleeping worker.
int EpollEngine::collect(int64_t now_ns, int64_t deadline_ns) {
  if (deadline_ns > now_ns) m_upkeep.beforeSleep();
  if (m_spin_ns > 0 && deadline_ns > now_ns) {
    const int64_t end_ns = std::min(saturatingAdd(now_ns, m_spin_ns), deadline_ns);
    do {
      if (const int n = sys::epollWait(m_epoll.get(), m_events, kMaxEvents, 0, 0); n != 0) return n;
      now_ns = steadyClock().nowNs();
    } while (now_ns < end_ns);
    if (now_ns >= deadline_ns) return 0;
  }
  return sys::epollWait(m_epoll.get(), m_events, kMaxEvents, now_ns, deadline_ns);
}

void EpollEngine::submit() {
  if (m_ring != nullptr) m_ring->serve();
  if (m_without_ring > 0) --m_without_ring;
}

}  // namespace sylar::detail
