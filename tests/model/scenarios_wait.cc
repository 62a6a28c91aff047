// P1: whoever wakes a fiber, it is resumed once for each wait, from a queue, and never for a wait that has ended.
#include <array>
#include <string>
#include <vector>

#include "tests/model/house.h"
#include "tests/model/scenarios.h"

namespace sylar::model {
namespace {

/// One fiber, and the copies of its wakers that others hold.
struct Waits {
  Waits() : core(home.slot()) {}

  /// Opens a wait and hands its epoch to the first `wakers` holders.
  ModelWaker open(size_t wakers) {
    const ModelWaker waker{&core, core.wait.prepare()};
    for (size_t i = 0; i < wakers; ++i) handed[i].exchange(waker.epoch, std::memory_order_release);  // as a lock's end does
    return waker;
  }

  /// A holder: wakes by every epoch that it gets, up to the `last`.
  void holder(size_t i, uint64_t last, WakeReason reason) {
    for (uint64_t seen = 0; seen < last;) {
      seen = next(i, seen);
      wake(seen, reason);
    }
  }

  uint64_t next(size_t i, uint64_t after) {
    await("an epoch", [&] { return handed[i].peek() > after; });
    return handed[i].fetch_or(0, std::memory_order_acquire);  // as a lock's beginning
  }

  void wake(uint64_t epoch, WakeReason reason) {
    const ModelWaker waker{&core, epoch};
    if (!waker.claim(reason)) return;
    require(++wins[epoch] == 1, "a wait is decided once");
    why[epoch] = reason;
    ModelWaker::deliver(core);
  }

  /// After a park: it was woken, by one, for this wait.
  void check(uint64_t epoch, WakeReason reason) {
    require(core.wait.epoch() == epoch, "it is this wait that has ended");
    if (reason == WakeReason::kTimeout || reason == WakeReason::kCanceled) {
      require(wins[epoch] == 0, "no waker has won besides");
    } else {
      require(wins[epoch] == 1 && why[epoch] == reason, "the one who has won says why");
    }
    require(!core.linked.get(), "no delivery is left over");
  }

  Worker home;
  Core core;
  std::array<Atomic<uint64_t>, 2> handed;
  std::array<int, 8> wins{};
  std::array<WakeReason, 8> why{};
};

// RT-7.1: two wakers for one wait; the copy of the slower one may be used during the next.
void twoWakers() {
  Waits waits;
  addThread("fiber", [&] {
    for (size_t wakers : {2, 1}) {
      const ModelWaker waker = waits.open(wakers);
      waits.check(waker.epoch, waits.home.park(waits.core));
    }
  });
  addThread("ready", [&] { waits.holder(0, 2, WakeReason::kReady); });
  addThread("closed", [&] { waits.holder(1, 1, WakeReason::kClosed); });
  runThreads();
}

// RT-7.1: two wakers, a timeout and a cancel for one epoch.
void timeoutAndCancel() {
  Waits waits;
  Task cancel([&] {
    if (waits.core.parked && waits.core.wait.claim(waits.core.wait.epoch(), WakeReason::kCanceled)) {
      waits.home.makeRunnable(waits.core);
    }
  });
  addThread("fiber", [&] {
    const ModelWaker waker = waits.open(2);
    waits.check(waker.epoch, waits.home.park(waits.core, true));
  });
  addThread("ready", [&] { waits.holder(0, 1, WakeReason::kReady); });
  addThread("closed", [&] { waits.holder(1, 1, WakeReason::kClosed); });
  addThread("canceller", [&] { waits.home.slot().push(&cancel); });
  runThreads();
  require(!waits.core.linked.get(), "no delivery is left over");
}

// A wait that turns out needless is withdrawn, or the wake-up that was faster is consumed: then the next wait is not ended by it.
void withdraw() {
  Waits waits;
  Atomic<int> done;
  addThread("fiber", [&] {
    for (int want = 1; want <= 2; ++want) {
      const ModelWaker waker = waits.open(1);
      if (done.load(std::memory_order_acquire) >= want && waits.core.wait.withdraw(waker.epoch)) {
        require(waits.wins[waker.epoch] == 0, "what was withdrawn was not decided");
        continue;
      }
      waits.check(waker.epoch, waits.home.park(waits.core));
      require(waits.core.wait.reason() == WakeReason::kReady, "it was woken");
    }
  });
  addThread("waker", [&] {
    for (uint64_t seen = 0; seen < 2;) {
      seen = waits.next(0, seen);
      done.store(static_cast<int>(seen), std::memory_order_release);
      waits.wake(seen, WakeReason::kReady);
    }
  });
  runThreads();
  require(!waits.core.linked.get(), "no delivery is left over");
}

// FM-51: the core of a fiber that has ended belongs to another, on another worker; a waker of the first comes late.
void reusedCore() {
  Waits waits;
  Worker second;
  Atomic<Core*> pool;  // the reserve that threads share
  addThread("first fiber", [&] {
    const ModelWaker waker = waits.open(1);
    waits.check(waker.epoch, waits.home.park(waits.core, true));
    pool.exchange(&waits.core, std::memory_order_release);
  });
  addThread("second fiber", [&] {
    await("a free core", [&] { return pool.peek() != nullptr; });
    pool.exchange(nullptr, std::memory_order_acquire);
    Core& core = waits.core;
    core.home.set(&second.slot());
    const ModelWaker waker{&core, core.wait.prepare()};
    waits.check(waker.epoch, second.park(core, true));
    require(waits.core.wait.reason() == WakeReason::kTimeout, "nobody holds this wait");
  });
  addThread("late", [&] { waits.holder(0, 1, WakeReason::kReady); });
  runThreads();
}

// A fiber that was cancelled and waits again and again is abandoned by its worker, while wakers of its last wait come late.
void abandoning() {
  Waits waits;
  addThread("worker", [&] {
    ModelWaker waker = waits.open(2);
    // Cancelled: the wait is decided here, unless somebody was faster, and its delivery goes through the queue all the same.
    if (waker.claim(WakeReason::kCanceled)) waits.home.makeRunnable(waits.core);
    waits.check(waker.epoch, waits.home.park(waits.core));
    require(!waits.core.wait.isOpen(), "what is abandoned has no open wait");
    waits.core.gone = true;
  });
  addThread("ready", [&] { waits.holder(0, 1, WakeReason::kReady); });
  addThread("closed", [&] { waits.holder(1, 1, WakeReason::kClosed); });
  runThreads();
}

// After the park the fiber sees all that a waker wrote before it woke, by whatever way the delivery came.
void whatWasWrittenIsSeen() {
  Waits waits;
  Var<int> result;
  addThread("fiber", [&] {
    const ModelWaker waker = waits.open(1);
    waits.check(waker.epoch, waits.home.park(waits.core));
    require(result.get() == 7, "the result is there");
    result.set(8);
    waits.open(1);
    waits.home.park(waits.core);
    require(result.get() == 9, "the second, too");
  });
  addThread("waker", [&] {
    const uint64_t first = waits.next(0, 0);
    result.set(7);
    waits.wake(first, WakeReason::kReady);
    const uint64_t next = waits.next(0, first);
    result.set(result.get() + 1);
    waits.wake(next, WakeReason::kReady);
  });
  runThreads();
}

}  // namespace

std::vector<Scenario> waitScenarios() {
  return {
      {"wait/two_wakers", twoWakers},  {"wait/timeout_and_cancel", timeoutAndCancel},
      {"wait/withdraw", withdraw},     {"wait/reused_core", reusedCore},
      {"wait/abandoning", abandoning}, {"wait/what_was_written_is_seen", whatWasWrittenIsSeen},
  };
}

}  // namespace sylar::model
