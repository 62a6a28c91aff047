// How late a timer is, by its length.
//
//   lateness public|private|pwait2|timerfd idle|yield|compute
//
// public: addTimer; private: a fiber's own wait; pwait2, timerfd: the yardsticks, one thread that does nothing else.
// idle: nothing else runs. yield: on each of two workers a fiber computes 20 us and yields, forever. compute: one of two workers
// computes 200 ms at a time (the yardsticks know idle only).
// Prints one line of JSON a length. `early` counts in ns, from before the call.
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>

#include "bench/sleep/report.h"
#include "sylar/iomanager.h"
#include "sylar/sched/park.h"

namespace {

using bench::die;
using bench::kMs;
using bench::Lateness;
using bench::now;

struct Length {
  int64_t ms;
  int count;
};
constexpr Length kAlone[] = {{1, 800}, {3, 250}, {10, 100}, {30, 40}, {100, 15}, {300, 5}, {1'000, 3}, {3'000, 2}};
constexpr Length kLoaded[] = {{1, 600}, {10, 200}, {100, 15}, {1'000, 1}};

/// Sleeps once for so many ns; when it woke.
using Sleep = std::function<int64_t(int64_t)>;

void measure(std::string_view kind, std::string_view load, const Sleep& sleep) {
  const auto one = [&](Length length) {
    Lateness late;
    for (int i = 0; i < length.count; ++i) {
      const int64_t due = now() + length.ms * kMs;
      late.add(sleep(length.ms * kMs) - due);
    }
    std::printf("{\"kind\": \"%s\", \"load\": \"%s\", \"ms\": %lld, %s}\n", kind.data(), load.data(),
                static_cast<long long>(length.ms), late.json().c_str());
  };
  if (load == "idle") {
    for (const Length& length : kAlone) one(length);
  } else {
    for (const Length& length : kLoaded) one(length);
  }
}

/// The next deadline for `poll`, as an own thread would do it.
void measureRaw(bool timer_fd) {
  prctl(PR_SET_TIMERSLACK, 1);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  epoll_event event = {.events = EPOLLIN, .data = {}};
  if (epoll < 0 || timer < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event) != 0) die("epoll");
  const auto by_timer = [&](int64_t ns) {
    const int64_t due = now() + ns;
    const itimerspec at = {.it_interval = {}, .it_value = {due / 1'000'000'000, due % 1'000'000'000}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, nullptr);
    if (epoll_wait(epoll, &event, 1, -1) != 1) die("epoll_wait");
    return now();
  };
  const auto by_timeout = [&](int64_t ns) {
    const timespec wait = {ns / 1'000'000'000, ns % 1'000'000'000};
    if (syscall(SYS_epoll_pwait2, epoll, &event, 1, &wait, nullptr, 0) != 0) die("epoll_pwait2");
    return now();
  };
  timer_fd ? measure("timerfd", "idle", by_timer) : measure("pwait2", "idle", by_timeout);
}

void compute(int64_t ns) {
  for (const int64_t end = now() + ns; now() < end;) continue;
}

/// The callback measures: what comes after it, waking this thread, is no timer's business.
void measurePublic(sylar::IOManager& iom, std::string_view load) {
  std::mutex mutex;
  std::condition_variable changed;
  int64_t fired_at = 0;
  measure("public", load, [&](int64_t ns) {
    std::unique_lock lock(mutex);
    fired_at = 0;
    iom.addTimer(static_cast<uint64_t>(ns / kMs), [&] {
      const int64_t at = now();
      const std::lock_guard guard(mutex);
      fired_at = at;
      changed.notify_one();
    });
    changed.wait(lock, [&] { return fired_at != 0; });
    return fired_at;
  });
}

void measureOurs(bool is_public, std::string_view load) {
  sylar::IOManager iom(load == "idle" ? 1 : 2, false, "late");
  std::atomic<bool> over{false};
  if (load == "yield") {
    for (int i = 0; i < 2; ++i) {
      iom.place([&] {
        while (!over) {
          compute(20'000);
          sylar::Fiber::YieldToReady();
        }
      });
    }
  } else if (load == "compute") {
    iom.place([&] {
      while (!over) {
        compute(200 * kMs);
        sylar::Fiber::YieldToReady();
      }
    });
  }
  if (is_public) {
    measurePublic(iom, load);
    over = true;
  } else {
    iom.place([&, load] {
      measure("private", load, [](int64_t ns) {
        sylar::parkUntil(sylar::Deadline::after(std::chrono::nanoseconds(ns)));
        return now();
      });
      over = true;
    });
  }
  iom.stop();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc == 3 ? argv[1] : "";
  const std::string_view load = argc == 3 ? argv[2] : "";
  if (kind == "pwait2" || kind == "timerfd") {
    measureRaw(kind == "timerfd");
  } else if ((kind == "public" || kind == "private") && (load == "idle" || load == "yield" || load == "compute")) {
    measureOurs(kind == "public", load);
  } else {
    std::fprintf(stderr, "usage: lateness public|private|pwait2|timerfd idle|yield|compute\n");
    return 2;
  }
}
