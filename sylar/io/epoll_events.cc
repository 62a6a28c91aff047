// What an engine does with its events: it reports them to the entries of descriptors, and serves the timers. At its end it leaves
// the entries.
#include <utility>

#include "sylar/check.h"
#include "sylar/io/epoll_engine.h"
#include "sylar/io/fd_table.h"
#include "sylar/io/ring.h"

namespace sylar::detail {

EpollEngine::~EpollEngine() { retire(); }

void EpollEngine::retire() {
  m_retired.store(true, std::memory_order_relaxed);
  FdTable::detachEngine(*this);
  if (const CallKeeper* const keeper = s_keeper.load(std::memory_order_acquire)) keeper->ended(*this);
}

bool EpollEngine::poll(int64_t now_ns, int64_t deadline_ns) {
  const int n = collect(now_ns, deadline_ns);
  SYLAR_CHECK(n >= 0 || n == -EINTR);
  SYLAR_DCHECK(n <= kMaxEvents);
  bool notified = false, ring_notified = false;
  for (int i = 0; i < n; ++i) {
    const uint64_t data = m_events[i].data.u64;
    const auto fd = static_cast<int>(static_cast<uint32_t>(data));
    if (fd == m_wake_fd) {
      notified = true;
      continue;
    }
    if (fd == m_ring_fd) {
      ring_notified = true;
      continue;
    }
    if (fd == m_timer_fd) {
      m_timer_event = true;
      continue;
    }
    Entry* const entry = FdTable::find(fd);  // null if somebody else has put the descriptor into this epoll
    if (entry != nullptr) entry->onEvent(static_cast<uint32_t>(data >> 32), m_events[i].events);
  }
  if (ring_notified) m_ring->serve();
  return notified;
}

bool EpollEngine::serve(int64_t now_ns) {
  noteReceives();
  return m_upkeep.serve(now_ns, std::exchange(m_timer_event, false), m_batch);
}

/// Learns how many receives begin to wait in a turn.
void EpollEngine::noteReceives() {
  if (m_receives > 0) m_usual_receives += std::exchange(m_receives, 0) - m_usual_receives / kScale;
}

}  // namespace sylar::detail
