// Chooses where a worker waits, and between its ring and helper threads for the calls that wait for files.
#include <atomic>
#include <cerrno>
#include <cstring>

#include "sylar/base/log.h"
#include "sylar/io/epoll_engine.h"
#include "sylar/io/ring.h"
#include "sylar/iomanager.h"
#include "sylar/sched/worker.h"

namespace sylar {
namespace {

constinit std::atomic<IOEngine> g_engine{IOEngine::kAuto};
constinit std::atomic<bool> g_told{false};

/// Returns true if this error of a ring that is made comes again each time. The others are of memory and descriptors.
bool lasts(int error) { return error == ENOSYS || error == EPERM || error == EINVAL || error == EACCES; }

}  // namespace

void setIOEngine(IOEngine engine) {
  g_engine.store(engine, std::memory_order_relaxed);
  g_told.store(false, std::memory_order_relaxed);
}
IOEngine ioEngine() { return g_engine.load(std::memory_order_relaxed); }

namespace detail {

Ring* EpollEngine::ring() {
  const IOEngine wanted = ioEngine();
  if (wanted == IOEngine::kEpoll) return nullptr;
  if (!m_ring_made) {
    m_ring = Ring::make({m_wake_fd, m_waits_in_ring ? m_epoll.get() : -1}, &m_ring_error);
    m_ring_made = m_ring != nullptr || lasts(m_ring_error);
  }
  if (m_ring == nullptr && wanted == IOEngine::kUring && !g_told.exchange(true, std::memory_order_relaxed)) {
    log::warn("io.engine is uring, but there is no io_uring here ({}): epoll waits for descriptors, and helper threads for files",
              ::strerrordesc_np(m_ring_error));
  }
  return m_ring.get();
}

/// A worker on virtual time waits in the epoll, because its clock looks at that without polling.
void EpollEngine::enter() {
  m_waits_in_ring = ioEngine() == IOEngine::kUring && Worker::current()->clock().autoAdvance() == nullptr;
  if (m_waits_in_ring) m_waits_in_ring = ring() != nullptr;
  if (m_waits_in_ring) control(EPOLL_CTL_DEL, m_wake_fd, 0, 0);  // of which the ring tells
}

void EpollEngine::leave() {
  if (m_ring != nullptr) m_ring->leave();
}

void EpollEngine::abandon(const FiberCore& core) {
  if (m_ring != nullptr) m_ring->abandon(core);
}

bool EpollEngine::holdsThread() const { return m_ring != nullptr && m_ring->busy(); }

}  // namespace detail
}  // namespace sylar
