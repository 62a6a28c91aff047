#include "sylar/sched/worker_slot.h"

#include <pthread.h>

#include <atomic>
#include <new>
#include <system_error>
#include <utility>

#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"
#include "sylar/check.h"

namespace sylar::detail {
namespace {

struct Unused {
  OsMutex mutex;
  WorkerSlot* first SYLAR_GUARDED_BY(mutex) = nullptr;
};
constinit Unused g_unused;
constinit std::atomic<size_t> g_opened{0};

/// A forked child may find the lock held, so it gets a new one. The list is whole at any moment, though it may lack some slots.
[[gnu::constructor]] void followForks() {
  static_cast<void>(::pthread_atfork(nullptr, nullptr, [] { ::new (&g_unused.mutex) OsMutex; }));
}

}  // namespace

constinit std::atomic<WorkerSlot*> WorkerSlot::s_newest{nullptr};

WorkerSlot& WorkerSlot::acquire() {
  {
    Lock lock(g_unused.mutex);
    if (WorkerSlot* slot = g_unused.first) {
      SYLAR_DCHECK(slot->worker == nullptr);
      g_unused.first = std::exchange(slot->next, nullptr);
      return *slot;
    }
  }
  auto* const slot = new WorkerSlot;
  slot->m_older = s_newest.load(std::memory_order_relaxed);
  while (!s_newest.compare_exchange_weak(slot->m_older, slot, std::memory_order_release, std::memory_order_relaxed)) continue;
  return *slot;
}

void WorkerSlot::open() {
  if (wake_fd >= 0) return;
  const int fd = sys::eventFd();
  if (fd < 0) throw std::system_error(-fd, std::generic_category(), "sylar: eventfd of a worker");
  wake_fd = fd;
  g_opened.fetch_add(1, std::memory_order_relaxed);
}

size_t WorkerSlot::opened() { return g_opened.load(std::memory_order_relaxed); }

void WorkerSlot::release(WorkerSlot& slot) {
  SYLAR_DCHECK(slot.worker == nullptr && slot.fd_driver.load(std::memory_order_relaxed) == nullptr);
  Lock lock(g_unused.mutex);
  slot.next = g_unused.first;
  g_unused.first = &slot;
}

void WorkerSlot::notify() {
  if (sys::inForkedChild()) return;  // the descriptor is the parent's as well
  SYLAR_DCHECK(wake_fd >= 0);
  const uint64_t one = 1;
  sys::writeFd(wake_fd, &one, sizeof one);  // a full counter is a notification as well
}

}  // namespace sylar::detail
