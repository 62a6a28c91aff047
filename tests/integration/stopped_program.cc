// The program that stopped_test.cc stops in the middle: timers and sleeps of up to four seconds, and two recurring timers. Prints
// "ready" when they are armed, "woken" when it has seen a pause of its process, and then what was wrong, or "right".
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "sylar/clock.h"
#include "sylar/iomanager.h"
#include "tests/sched/gate.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;

constexpr size_t kTimers = 2'000;
constexpr int64_t kLongestMs = 4'000;
constexpr int64_t kPeriodMs = 100;
constexpr int64_t kMs = 1'000'000;

int64_t nowNs() { return steadyClock().nowNs(); }
int64_t delayMs(size_t i) { return 1 + static_cast<int64_t>(i) * kLongestMs / static_cast<int64_t>(kTimers); }

bool g_right = true;
void expect(bool holds, const char* what, int64_t seen) {
  if (holds) return;
  g_right = false;
  std::printf("%s: %lld\n", what, static_cast<long long>(seen));
}

/// When something ran, in order; written by one run at a time.
struct Runs {
  void add() {
    const size_t n = count.load();
    if (n < at_ns.size()) at_ns[n] = nowNs();
    count.store(n + 1);
  }
  std::array<int64_t, 1'000> at_ns{};
  std::atomic<size_t> count{0};
};

/// That it did not make up for what it missed. The pause is the longest time without a run: another thread may see a longer one.
void checkRecurring(const Runs& runs, int64_t start_ns) {
  const size_t count = std::min(runs.count.load(), runs.at_ns.size());
  expect(count > 0, "no recurring run", 0);
  if (count == 0) return;
  int64_t pause_ns = runs.at_ns[0] - start_ns;
  for (size_t i = 1; i < count; ++i) pause_ns = std::max(pause_ns, runs.at_ns[i] - runs.at_ns[i - 1]);
  const int64_t active_ns = runs.at_ns[count - 1] - start_ns - pause_ns;
  expect(count < runs.at_ns.size(), "a storm of recurring runs", static_cast<int64_t>(count));
  expect(static_cast<int64_t>(count) <= active_ns / (kPeriodMs * kMs) + 2, "more runs than periods", static_cast<int64_t>(count));
}

int run() {
  static std::array<std::atomic<int>, kTimers> runs, sleeps;  // how often each; early ones count a thousand times
  static Runs delay, skip;
  test::Gate asleep, done;
  IOManager iom(2, false, "stopped");
  const int64_t start_ns = nowNs();
  const Timer::ptr recurring = iom.addTimer(
      kPeriodMs, [] { delay.add(); }, Repeat::kDelay);
  const TimerId skipping = iom.startTimer(
      std::chrono::milliseconds(kPeriodMs), [] { skip.add(); }, Repeat::kSkip);
  const auto count = [&](std::atomic<int>& times, size_t i, int64_t armed_ns) {
    times += nowNs() - armed_ns < delayMs(i) * kMs ? 1'000 : 1;
    done.open();
  };
  for (size_t i = 0; i < kTimers; ++i) {
    iom.addTimer(static_cast<uint64_t>(delayMs(i)), [&count, i, armed_ns = nowNs()] { count(runs[i], i, armed_ns); });
    iom.schedule([&count, &asleep, i] {
      asleep.open();
      const int64_t armed_ns = nowNs();
      ::usleep(static_cast<useconds_t>(delayMs(i)) * 1'000);
      count(sleeps[i], i, armed_ns);
    });
  }
  expect(asleep.wait(kTimers), "not all fibers began", static_cast<int64_t>(asleep.count()));
  std::this_thread::sleep_for(50ms);  // the last of them is between that and its sleep
  int64_t pause_ns = 0;               // as a thread that looks often sees it, from before it says that it is ready
  int64_t last_ns = nowNs();
  std::puts("ready");
  std::fflush(stdout);
  while (pause_ns < 3'000 * kMs && last_ns - start_ns < 60'000 * kMs) {
    std::this_thread::sleep_for(10ms);
    const int64_t now_ns = nowNs();
    pause_ns = std::max(pause_ns, now_ns - last_ns);
    last_ns = now_ns;
  }
  expect(pause_ns >= 3'000 * kMs, "there was no pause, ms", pause_ns / kMs);
  std::puts("woken");
  expect(done.wait(2 * kTimers), "not all timers and sleeps ended", static_cast<int64_t>(done.count()));
  const size_t rounds = delay.count;
  expect(test::eventually([&] { return delay.count > rounds + 2 && skip.count > 0; }), "recurring timers stopped", 0);
  expect(recurring->cancel(), "the recurring timer was gone", 0);
  expect(iom.stopTimerSync(skipping) != TimerStop::kGone, "the recurring timer with an id was gone", 0);
  iom.stop();
  for (size_t i = 0; i < kTimers; ++i) {
    expect(runs[i] == 1, "a timer ran early, twice or never", runs[i]);
    expect(sleeps[i] == 1, "a sleep ended early, twice or never", sleeps[i]);
  }
  checkRecurring(delay, start_ns);
  checkRecurring(skip, start_ns);
  std::puts(g_right ? "right" : "wrong");
  return g_right ? 0 : 1;
}

}  // namespace
}  // namespace sylar

int main() { return sylar::run(); }
