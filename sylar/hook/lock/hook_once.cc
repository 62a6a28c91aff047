// pthread_once, call_once. Fibers and threads that come while the routine runs wait in the parking lot. Source: pthread_once(3p).
//
// The initialization of a static variable in a function needs no hook of its own: libstdc++ waits for it by futex(2), as soon as it
// believes that the process has several threads. With several fibers it has to.
#include <pthread.h>
#include <threads.h>

#include <atomic>
#include <mutex>
#include <optional>

#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/lock/lock_wait.h"

namespace sylar::detail {
namespace {

constexpr LotKind kOnce{SyncKind::kOnce};

// libc's own states of the word: it is being run, or done. Above these bits stands the number of forks, because the routine of
// another thread does not go on in the child of a fork, which runs it again.
constexpr int kRuns = 1;
constexpr int kDone = 2;
constexpr int kFork = 4;
int runsNow() { return ParkingLot::forks() * kFork | kRuns; }

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

/// What std::call_once leaves to the routine, in variables of the thread. Another fiber of the thread that calls it changes them.
/// Source: libstdc++, <mutex>.
class CallOfStd {
 public:
  [[gnu::noinline]] void save() {
    const tsan::Exempt of_this_thread;
    m_callable = std::__once_callable;
    m_call = std::__once_call;
  }
  [[gnu::noinline]] void restore() const {
    const tsan::Exempt of_this_thread;
    std::__once_callable = m_callable;
    std::__once_call = m_call;
  }

 private:
  void* m_callable;
  void (*m_call)();
};

[[gnu::noinline]] void awaitEnd(pthread_once_t* once) {
  const bool as_fiber = !outsideFibers() && locksSuspend();
  std::optional<this_fiber::CancelShield> shield;
  if (as_fiber) {
    countCallOf(*runningFiber(), Hook::pthread_once);
    shield.emplace();
  }
  LotWait wait(once, kOnce, as_fiber);
  if (!wait.enterUnless([=] { return wordOf(once).load(std::memory_order_relaxed) != runsNow(); })) return;
  CallOfStd call_once;
  call_once.save();
  CallWait call(EndedBy::kNone);
  wait.park(Deadline::never(), call);
  call_once.restore();
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int pthread_once(pthread_once_t* once, void (*routine)()) {
  for (;;) {
    int word = wordOf(once).load(std::memory_order_acquire);
    if ((word & kDone) != 0) return 0;
    if (sys::inForkedChild()) return real::pthread_once(once, routine);
    if (word == runsNow()) {
      awaitEnd(once);
    } else if (wordOf(once).compare_exchange_strong(word, runsNow(), std::memory_order_acquire)) {
      run(once, routine);
      return 0;
    }
  }
}

void call_once(once_flag* once, void (*routine)()) { pthread_once(reinterpret_cast<pthread_once_t*>(once), routine); }

}  // extern "C"
