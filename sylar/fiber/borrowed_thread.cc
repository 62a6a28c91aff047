#include "sylar/fiber/borrowed_thread.h"

#include <cstddef>
#include <utility>

#include "sylar/base/os_mutex.h"
#include "sylar/check.h"
#include "sylar/fiber/fiber_core.h"

namespace sylar::detail {
namespace {

constinit OsMutex g_lock;
constinit BorrowedThread* g_first SYLAR_GUARDED_BY(g_lock) = nullptr;
constinit std::atomic<bool> g_any{false};  // whether it is worth to lock

BorrowedThread* takeFrom(BorrowedThread** at, size_t size) {
  while (*at != nullptr && (*at)->room < size) at = &(*at)->next;
  return *at != nullptr ? std::exchange(*at, (*at)->next) : nullptr;
}

}  // namespace

BorrowedThread& BorrowedThread::of(StartedState& state) {
  auto* const address = reinterpret_cast<char*>(&state);
  return *reinterpret_cast<BorrowedThread*>(address - offsetof(BorrowedThread, started));
}

bool BorrowedThread::isWhole(const FiberCore& fiber) const {
  return static_cast<const void*>(&fiber.started()) == static_cast<const void*>(started);
}

FreeThreads::~FreeThreads() {
  while (m_first != nullptr) putForAll(*std::exchange(m_first, m_first->next));
}

BorrowedThread* FreeThreads::take(size_t size) {
  BorrowedThread* const mine = takeFrom(&m_first, size);
  if (mine == nullptr) return takeOfAll(size);
  SYLAR_DCHECK(m_count > 0);
  --m_count;
  return mine;
}

void FreeThreads::put(BorrowedThread& one) {
  SYLAR_DCHECK(!one.over && !one.first);
  if (m_count == kKept) return putForAll(one);
  one.next = m_first;
  m_first = &one;
  ++m_count;
}

void FreeThreads::putForAll(BorrowedThread& one) {
  const Lock lock(g_lock);
  one.next = std::exchange(g_first, &one);
  g_any.store(true, std::memory_order_relaxed);
}

BorrowedThread* FreeThreads::takeOfAll(size_t size) {
  if (!g_any.load(std::memory_order_relaxed)) return nullptr;
  const Lock lock(g_lock);
  BorrowedThread* const one = takeFrom(&g_first, size);
  g_any.store(g_first != nullptr, std::memory_order_relaxed);
  return one;
}

}  // namespace sylar::detail
