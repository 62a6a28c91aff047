#include "sylar/fiber/fiber_core.h"

#include <pthread.h>

#include <new>

#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"

namespace sylar {
namespace {

constexpr size_t kSlabSize = 64 * 1024;
constexpr size_t kCoresPerSlab = kSlabSize / sizeof(FiberCore);

/// Cores of threads that have ended, for threads to come.
struct Reserve {
  OsMutex mutex;
  QueueNode* free SYLAR_GUARDED_BY(mutex) = nullptr;
};
constinit Reserve g_reserve;

/// Before main. A fork waits until the reserve is whole, and its child finds it free. No memory for it: then children may hang.
[[gnu::constructor]] void followForks() {
  (void)::pthread_atfork([]() SYLAR_NO_THREAD_SAFETY_ANALYSIS { g_reserve.mutex.lock(); },
                         []() SYLAR_NO_THREAD_SAFETY_ANALYSIS { g_reserve.mutex.unlock(); },
                         [] { new (&g_reserve.mutex) OsMutex; });
}

}  // namespace

CorePool::~CorePool() {
  if (m_free == nullptr) return;
  QueueNode* last = m_free;
  while (last->next != nullptr) last = last->next;
  Lock lock(g_reserve.mutex);
  last->next = g_reserve.free;
  g_reserve.free = m_free;
}

FiberCore* CorePool::take() {
  if (m_free == nullptr && !refill()) return nullptr;
  auto* core = static_cast<FiberCore*>(m_free);
  m_free = core->next;
  core->next = nullptr;
  return core;
}

void CorePool::give(FiberCore* core) {
  core->next = m_free;
  m_free = core;
}

bool CorePool::refill() {
  {
    Lock lock(g_reserve.mutex);
    // As many as a slab has, not all: or the next threads would map new ones, and the memory would grow with every thread.
    for (size_t i = 0; i < kCoresPerSlab && g_reserve.free != nullptr; ++i) {
      QueueNode* const core = g_reserve.free;
      g_reserve.free = core->next;
      core->next = m_free;
      m_free = core;
    }
    if (m_free != nullptr) return true;
  }
  int error = 0;
  auto* slab = static_cast<char*>(sys::mapMemory(kSlabSize, &error));
  if (slab == nullptr) return false;
  for (size_t i = 0; i < kCoresPerSlab; ++i) give(::new (slab + i * sizeof(FiberCore)) FiberCore);
  return true;
}

}  // namespace sylar
