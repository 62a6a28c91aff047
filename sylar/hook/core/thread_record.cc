#include "sylar/hook/core/thread_record.h"

#ifdef SYLAR_THREAD_POINTER

#include "sylar/base/sys.h"

namespace sylar::detail {

constinit std::atomic<int> g_threads_are_fibers{0};
constinit std::atomic<uint64_t> g_never_blocked{0};
constinit thread_local FiberThread FiberThread::t_mine;

FiberThread& FiberThread::of(pthread_t thread) {
  const uintptr_t offset = reinterpret_cast<uintptr_t>(&t_mine) - threadPointer();
  return *reinterpret_cast<FiberThread*>(thread + offset);  // glibc's pthread_t is the thread pointer
}

void FiberThread::isLeft() {
  fiber.store(nullptr, std::memory_order_seq_cst);
  while (senders.load(std::memory_order_seq_cst) != 0 && !sys::inForkedChild()) sys::call(SYS_sched_yield);
}

std::atomic<uint32_t>& FiberThread::count() {
  static constinit std::atomic<uint32_t> s_count{0};
  return s_count;
}

}  // namespace sylar::detail

#endif
