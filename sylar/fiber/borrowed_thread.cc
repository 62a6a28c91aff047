#include "sylar/fiber/borrowed_thread.h"

#include <cstddef>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/fiber/fiber_core.h"

namespace sylar::detail {

constinit ThreadLending<LendingTypes> g_threads;

BorrowedThread& BorrowedThread::of(StartedState& state) {
  auto* const address = reinterpret_cast<char*>(&state);
  return *reinterpret_cast<BorrowedThread*>(address - offsetof(BorrowedThread, started));
}

bool BorrowedThread::isWhole(const FiberCore& fiber) const {
  return static_cast<const void*>(&fiber.started()) == static_cast<const void*>(started);
}

size_t LendingTypes::roomOf(QueueNode* node) { return threadRoomFor(control(FiberControl::fiberOf(node)).stackSize()); }

void LendingTypes::refuse(QueueNode* node) { control(FiberControl::fiberOf(node)).refuseThread(); }

bool LendingTypes::inForkedChild() { return sys::inForkedChild(); }

FreeThreads::~FreeThreads() {
  while (BorrowedThread* const one = m_mine.takeLargest()) putForAll(*one);
}

BorrowedThread* FreeThreads::take(size_t size) {
  const size_t room = threadRoomFor(size);
  BorrowedThread* const mine = m_mine.take(room);
  return mine != nullptr ? mine : g_threads.take(room);
}

void FreeThreads::put(BorrowedThread& one) {
  SYLAR_DCHECK(!one.over);
  m_mine.count() < kKept ? m_mine.put(one) : putForAll(one);
}

/// The maker does not look for unused ones while there are few.
void FreeThreads::putForAll(BorrowedThread& one) {
  if (g_threads.put(one) == g_threads.kKept + 1) ThreadLender::get()->call();
}

/// In a forked child nobody ends it, and the lock may be held for good.
void FreeThreads::putOver(BorrowedThread& one) {
  SYLAR_DCHECK(one.over);
  if (sys::inForkedChild()) return;
  g_threads.putOver(one);
  ThreadLender::get()->call();
}

}  // namespace sylar::detail
