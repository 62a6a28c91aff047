#include "sylar/sched/worker_slot.h"

#include <pthread.h>

#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"

namespace sylar {
namespace {

struct Unused {
  OsMutex mutex;
  WorkerSlot* first SYLAR_GUARDED_BY(mutex) = nullptr;
  size_t made SYLAR_GUARDED_BY(mutex) = 0;
};
constinit Unused g_unused;

/// The child of a fork may find the lock held, and has the descriptors together with its parent: it begins without slots.
[[gnu::constructor]] void followForks() {
  static_cast<void>(::pthread_atfork(nullptr, nullptr, [] { ::new (&g_unused) Unused; }));
}

}  // namespace

WorkerSlot& WorkerSlot::acquire() {
  {
    Lock lock(g_unused.mutex);
    if (WorkerSlot* slot = g_unused.first) {
      g_unused.first = std::exchange(slot->next, nullptr);
      return *slot;
    }
  }
  auto made = std::make_unique<WorkerSlot>();
  made->wake_fd = sys::eventFd();
  if (made->wake_fd < 0) throw std::system_error(-made->wake_fd, std::generic_category(), "sylar: eventfd of a worker");
  WorkerSlot* const slot = made.release();
  Lock lock(g_unused.mutex);
  ++g_unused.made;
  return *slot;
}

size_t WorkerSlot::made() {
  Lock lock(g_unused.mutex);
  return g_unused.made;
}

void WorkerSlot::release(WorkerSlot& slot) {
  Lock lock(g_unused.mutex);
  slot.next = g_unused.first;
  g_unused.first = &slot;
}

void WorkerSlot::notify() {
  const uint64_t one = 1;
  sys::writeFd(wake_fd, &one, sizeof one);  // a full counter is a notification, too
}

}  // namespace sylar
