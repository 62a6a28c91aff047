// pthread_once, call_once. Fibers and threads that come while the routine runs wait in the parking lot. Source: pthread_once(3p).
//
// The initialization of a static variable in a function needs no hook of its own: libstdc++ waits for it by futex(2), as soon as it
// believes that the process has several threads. With several fibers it has to.
#include <pthread.h>
#include <sys/single_threaded.h>
#include <threads.h>

#include <atomic>

#include "sylar/base/sys.h"
#include "sylar/hook/lock_wait.h"
#include "sylar/hook/real.h"

namespace sylar {
namespace {

constexpr LotKind kOnce{detail::SyncKind::kOnce};

// libc's own states of the word, so that a child of a fork, where nothing is hooked, goes on with them.
constexpr int kRuns = 1;
constexpr int kDone = 2;

std::atomic_ref<int> wordOf(pthread_once_t* once) { return std::atomic_ref(*once); }

/// Runs the routine, and lets the others go on; or, if it is left by an exception, the next of them run it.
void run(pthread_once_t* once, void (*routine)()) {
  struct Outcome {
    pthread_once_t* const once;
    int word = 0;
    ~Outcome() {
      wordOf(once).exchange(word, std::memory_order_acq_rel);
      ParkingLot::wakeAll(once);
    }
  } outcome{once};
  routine();
  outcome.word = kDone;
}

void awaitEnd(pthread_once_t* once) {
  const bool as_fiber = !outsideFibers() && locksSuspend();
  std::optional<this_fiber::CancelShield> shield;
  if (as_fiber) {
    countCallOf(*runningFiber(), Hook::pthread_once);
    shield.emplace();
    if (!reserveWithinScope(Deadline::never())) return;
  }
  LotWait wait(once, kOnce, as_fiber);
  if (!wait.enterUnless([=] { return wordOf(once).load(std::memory_order_relaxed) != kRuns; })) return;
  Interruptible call(EndedBy::kNone);
  wait.park(Deadline::never(), call);
}

}  // namespace
}  // namespace sylar

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int pthread_once(pthread_once_t* once, void (*routine)()) {
  for (;;) {
    int word = wordOf(once).load(std::memory_order_acquire);
    if ((word & kDone) != 0) return 0;
    if (sys::inForkedChild() || (word & ~kRuns) != 0) return real::pthread_once(once, routine);
    if (word == kRuns) {
      awaitEnd(once);
    } else if (wordOf(once).compare_exchange_strong(word, kRuns, std::memory_order_acquire)) {
      run(once, routine);
      return 0;
    }
  }
}

void call_once(once_flag* once, void (*routine)()) { pthread_once(reinterpret_cast<pthread_once_t*>(once), routine); }

}  // extern "C"
