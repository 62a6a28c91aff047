// How many fibers there are: a count for each thread, because one for all would be the line that all threads write.
#include <algorithm>
#include <atomic>
#include <utility>

#include "sylar/base/counter.h"
#include "sylar/base/tsan.h"
#include "sylar/base/worker_local.h"
#include "sylar/check.h"
#include "sylar/fiber/thread_fibers.h"

namespace sylar::detail {

/// The count of one thread, and of earlier threads that had its place. The list only grows, so any thread may read it at any
/// time, and neither a fork nor a signal finds it locked. A thread that has ended leaves its place to a later one.
struct alignas(64) ThreadFibers::Count {
  Counter fibers;
  std::atomic<bool> taken{true};
  Count* next = nullptr;

  static Count& acquire() {
    Count* const first = s_first.load(std::memory_order_acquire);
    for (Count* count = first; count != nullptr; count = count->next) {
      if (!count->taken.load(std::memory_order_relaxed) && !count->taken.exchange(true, std::memory_order_acquire)) return *count;
    }
    auto* const made = new Count;
    made->next = first;
    while (!s_first.compare_exchange_weak(made->next, made, std::memory_order_acq_rel, std::memory_order_acquire)) {
    }
    return *made;
  }

  static constinit std::atomic<Count*> s_first;
  static constinit std::atomic<uint64_t> s_others;  // counted by threads that run no fibers
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Count* t_own;
};
constinit std::atomic<ThreadFibers::Count*> ThreadFibers::Count::s_first{nullptr};
constinit std::atomic<uint64_t> ThreadFibers::Count::s_others{0};
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadFibers::Count* ThreadFibers::Count::t_own = nullptr;

ThreadFibers::ThreadFibers() {
  m_own_stack.adoptThread();
  tsan::exemptErrno();
  Count::t_own = &Count::acquire();
}

ThreadFibers::~ThreadFibers() {
  SYLAR_CHECK(t_running == nullptr);
  m_own_handle = nullptr;  // its end is counted
  std::exchange(Count::t_own, nullptr)->taken.store(false, std::memory_order_release);
}

[[gnu::noinline]] void ThreadFibers::countFiber(int change) {
  const auto count = static_cast<uint64_t>(int64_t{change});  // a thread's count may fall below 0: others' fibers end on it
  if (Count* const own = ofWorker(Count::t_own)) {
    own->fibers.add(count);
  } else {
    Count::s_others.fetch_add(count, std::memory_order_relaxed);
  }
}

uint64_t ThreadFibers::countedFibers() {
  uint64_t total = Count::s_others.load(std::memory_order_relaxed);
  for (const Count* count = Count::s_first.load(std::memory_order_acquire); count != nullptr; count = count->next) {
    total += count->fibers.get();
  }
  return static_cast<uint64_t>(std::max<int64_t>(static_cast<int64_t>(total), 0));
}

}  // namespace sylar::detail
