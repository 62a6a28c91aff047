#include "sylar/fiber/fiber_core.h"

#include <pthread.h>

#include <new>

#include "sylar/base/sys.h"
#include "sylar/fiber/fiber_refused.h"
#include "sylar/fiber/stack_watch.h"

namespace sylar::detail {

constinit CoreReserve<FiberCore> CorePool::s_reserve;

/// Runs before main. If there is no memory for the handlers, forked children may hang.
void CorePool::followForks() {
  (void)::pthread_atfork([] { s_reserve.beforeFork(); }, [] { s_reserve.afterFork(); }, [] { s_reserve.afterForkInChild(); });
}

FiberCore* CorePool::mapSlab() {
  constexpr size_t kSize = sizeof(FiberCore);
  int error = 0;
  auto* const slab = static_cast<char*>(sys::mapMemory(kChunk * kSize, &error));
  if (slab == nullptr) {
    noteRefused("mmap for fibers", error);
    return nullptr;
  }
  if (stack_watch::isOn()) stack_watch::hold(slab, kChunk * kSize);
  FiberCore* first = nullptr;
  for (size_t i = 0; i < kChunk; ++i) {
    auto* const core = ::new (slab + i * kSize) FiberCore;
    core->next = first;
    first = core;
  }
  return first;
}

}  // namespace sylar::detail
