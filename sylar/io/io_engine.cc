// Chooses what a worker's ring does for its fibers.
#include <atomic>
#include <cerrno>
#include <cstring>

#include "sylar/base/log.h"
#include "sylar/base/sanitizers.h"
#include "sylar/io/epoll_engine.h"
#include "sylar/io/ring.h"
#include "sylar/iomanager.h"
#include "sylar/sched/worker.h"

namespace sylar {
namespace {

constinit std::atomic<IOEngine> g_engine{IOEngine::kAuto};
constinit std::atomic<bool> g_told{false};
constexpr unsigned kTurnsWithoutRing = 1000;

// Sanitizers do not see the memory that the ring reads and writes.
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

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
    m_ring = Ring::make(&m_ring_error);
    if (m_ring != nullptr) {
      m_ring_error = -control(EPOLL_CTL_ADD, m_ring->notifyFd(), 0, EPOLLIN | EPOLLET);
      if (m_ring_error != 0) m_ring.reset();
    }
    if (m_ring != nullptr) m_ring_fd = m_ring->notifyFd();
    m_ring_made = m_ring != nullptr || lasts(m_ring_error);
  }
  if (m_ring == nullptr && !g_told.exchange(true, std::memory_order_relaxed)) {
    const char* const why = ::strerrordesc_np(m_ring_error);
    if (wanted == IOEngine::kUring) {
      log::warn("io.engine is uring, but there is no io_uring here ({}): it is epoll", why);
    } else {
      log::info("there is no io_uring here ({}): io.engine is epoll", why);
    }
  }
  return m_ring.get();
}

Ring* EpollEngine::ringForTransfers() {
  if (m_without_ring > 0) return nullptr;
  Ring* const made = m_ring != nullptr ? m_ring.get() : ring();
  if (made == nullptr) m_without_ring = kTurnsWithoutRing;
  return made != nullptr && made->takesTransfers() ? made : nullptr;
}

/// Chooses when the worker's ring makes transfers. On virtual time it makes none: what a fiber has sent must be there before the
/// clock moves.
void EpollEngine::enter() {
  if (Worker::current()->clock().autoAdvance() != nullptr) return;
  switch (ioEngine()) {
    case IOEngine::kAuto: m_transfers = kSanitized ? Transfers::kNone : Transfers::kShared; break;
    case IOEngine::kEpoll: m_transfers = Transfers::kNone; break;
    case IOEngine::kUring: m_transfers = Transfers::kAll; break;
  }
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
