#include "sylar/fiber/borrowed_thread.h"

#include <cstddef>
#include <utility>

#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/fiber/fiber_core.h"

namespace sylar::detail {
namespace {

constinit OsMutex g_lock;
constinit ThreadLists g_free SYLAR_GUARDED_BY(g_lock);
constinit std::atomic<bool> g_any{false};  // whether it is worth to lock
constinit ThreadAwaiter* g_first SYLAR_GUARDED_BY(g_lock) = nullptr;

}  // namespace

BorrowedThread& BorrowedThread::of(StartedState& state) {
  auto* const address = reinterpret_cast<char*>(&state);
  return *reinterpret_cast<BorrowedThread*>(address - offsetof(BorrowedThread, started));
}

bool BorrowedThread::isWhole(const FiberCore& fiber) const {
  return static_cast<const void*>(&fiber.started()) == static_cast<const void*>(started);
}

BorrowedThread* ThreadLists::take(size_t room) {
  BorrowedThread*& first = m_first[placeOf(room)];
  if (first == nullptr) return nullptr;
  SYLAR_DCHECK(m_count > 0 && first->room == room);
  --m_count;
  return std::exchange(first, first->next);
}

void ThreadLists::put(BorrowedThread& one) {
  BorrowedThread*& first = m_first[placeOf(one.room)];
  one.next = std::exchange(first, &one);
  ++m_count;
}

FreeThreads::~FreeThreads() {
  for (size_t room = kMinStackSize; room <= kMaxStackSize; room *= 2) {
    while (BorrowedThread* const one = m_mine.take(room)) putForAll(*one);
  }
}

BorrowedThread* FreeThreads::take(size_t size) {
  const size_t room = ThreadLists::roomFor(size);
  if (BorrowedThread* const mine = m_mine.take(room)) return mine;
  if (!g_any.load(std::memory_order_relaxed)) return nullptr;
  const Lock lock(g_lock);
  BorrowedThread* const one = g_free.take(room);
  g_any.store(g_free.count() > 0, std::memory_order_relaxed);
  return one;
}

void FreeThreads::put(BorrowedThread& one) {
  SYLAR_DCHECK(!one.over);
  m_mine.count() < kKept ? m_mine.put(one) : putForAll(one);
}

/// In a forked child nobody borrows, and the lock may be held for good.
void FreeThreads::putForAll(BorrowedThread& one) {
  if (sys::inForkedChild()) return;
  const Lock lock(g_lock);
  g_free.put(one);
  g_any.store(true, std::memory_order_relaxed);
}

void ThreadAwaiter::await(SpawnNode& node, const void* tag) {
  node.queue.store(tag, std::memory_order_relaxed);
  const Lock lock(g_lock);
  m_count.fetch_add(1, std::memory_order_seq_cst);
  const bool listed = !m_waiting.empty();
  m_waiting.push(&node);
  if (listed) return;
  ThreadAwaiter** last = &g_first;
  while (*last != nullptr) last = &(*last)->m_later;
  *last = this;
  m_later = nullptr;
}

/// Moves all that wait to `all`, and returns how many those are.
size_t ThreadAwaiter::take(NodeList& all) {
  const Lock lock(g_lock);
  for (ThreadAwaiter** one = &g_first; *one != nullptr; one = &(*one)->m_later) {
    if (*one != this) continue;
    *one = m_later;
    break;
  }
  size_t count = 0;
  for (QueueNode* node; (node = m_waiting.pop()) != nullptr; ++count) {
    static_cast<SpawnNode*>(node)->queue.store(nullptr, std::memory_order_relaxed);
    all.push(node);
  }
  return count;
}

NodeList ThreadAwaiter::takeAll() {
  NodeList all;
  m_count.fetch_sub(take(all), std::memory_order_seq_cst);
  return all;
}

void ThreadAwaiter::releaseAll() {
  Next all;
  all.waiter = this;
  all.count = take(all.nodes);
  if (all.count > 0) letGo(std::move(all));
}

ThreadAwaiter::Next ThreadAwaiter::next(size_t usual, size_t spare) {
  Next next;
  const Lock lock(g_lock);
  while (g_first != nullptr) {
    ThreadAwaiter& waiter = *g_first;
    while (QueueNode* const node = waiter.m_waiting.front()) {
      const size_t room = ThreadLists::roomFor(control(FiberControl::fiberOf(node)).stackSize());
      if (!g_free.has(room) || next.count == g_free.count()) {
        if (next.count == 0) next.room = room;
        break;
      }
      next.nodes.push(waiter.m_waiting.pop());
      ++next.count;
    }
    if (waiter.m_waiting.empty()) g_first = waiter.m_later;
    if (next.count > 0) next.waiter = &waiter;
    if (next.count > 0 || next.room > 0) return next;
  }
  if (g_free.count() < spare) next.room = usual;
  return next;
}

ThreadAwaiter::Next ThreadAwaiter::refuse(size_t room) {
  Next next;
  const Lock lock(g_lock);
  QueueNode* const node = g_first != nullptr ? g_first->m_waiting.front() : nullptr;
  if (node == nullptr || ThreadLists::roomFor(control(FiberControl::fiberOf(node)).stackSize()) != room) return next;
  control(FiberControl::fiberOf(node)).refuseThread();
  next.waiter = g_first;
  next.nodes.push(next.waiter->m_waiting.pop());
  next.count = 1;
  if (next.waiter->m_waiting.empty()) g_first = next.waiter->m_later;
  return next;
}

void ThreadAwaiter::letGo(Next next) {
  ThreadAwaiter& waiter = *next.waiter;
  while (QueueNode* const node = next.nodes.pop()) {
    auto& gone = static_cast<SpawnNode&>(*node);
    waiter.goOn(gone, gone.queue.exchange(nullptr, std::memory_order_relaxed));
  }
  waiter.ended([&waiter, &next] { waiter.m_count.fetch_sub(next.count, std::memory_order_seq_cst); });
}

}  // namespace sylar::detail
