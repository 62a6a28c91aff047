// What holds a worker is named: the fiber, the system call, the functions. Nothing is said of workers that sleep.
#include "sylar/watchdog.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "tests/hook/support.h"
#include "tests/sched/gate.h"
#include "tests/support/log_lines.h"
#include "tests/support/thread_state.h"

namespace sylar::test {

std::atomic<bool> g_computes{false};
std::atomic<bool> g_told{false};

/// Keeps its thread until the watchdog has told of it. Not static, so that it has a name in a backtrace.
[[gnu::noinline]] void computeUntilTold() {
  g_computes = true;
  while (!g_told.load()) {
  }
}

namespace {

using namespace std::chrono_literals;

constexpr auto kLimit = 20ms;

bool computes(pid_t /*thread*/) { return g_computes.load(); }
bool sleepsNow(pid_t thread) { return stateOfThread(thread) == 'S'; }

/// Runs `body` in a fiber "culprit" of the first of two workers, the other one of which sleeps. Returns what a watchdog told of it.
/// It begins when `is_held`, since a busy machine may keep the culprit from what is to hold it for longer than the limit. `told`
/// is called by the watchdog's thread.
std::vector<HeldWorker> watch(std::function<void()> body, bool (*is_held)(pid_t thread), std::function<void()> told) {
  std::mutex mutex;
  std::vector<HeldWorker> reports;
  std::atomic<pid_t> thread{0};
  IOManager iom(2, false, "watched");
  const auto fiber = std::make_shared<Fiber>([&] {
    thread = threadId();
    body();
  });
  fiber->setName("culprit");
  iom.schedule(fiber);
  busyUntil([&] { return thread != 0 && is_held(thread); });
  const Watchdog watchdog(iom, kLimit, [&](const HeldWorker& held) {
    {
      const std::lock_guard lock(mutex);
      reports.push_back(held);
    }
    told();
  });
  fiber->join();
  const std::lock_guard lock(mutex);
  return reports;
}

[[maybe_unused]] bool has(const std::vector<std::string>& lines, const std::string& word) {
  return std::ranges::any_of(lines, [&](const std::string& line) { return line.find(word) != std::string::npos; });
}

// FM-20.
TEST(Watchdog, NamesAFiberThatComputes) {
  g_computes = g_told = false;
  const std::vector<HeldWorker> reports = watch(computeUntilTold, computes, [] { g_told = true; });
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].worker.rfind("watched_", 0), 0u) << reports[0].worker;
  EXPECT_GT(reports[0].thread, 0);
  EXPECT_GE(reports[0].held, kLimit);
  EXPECT_EQ(reports[0].call, "");
  EXPECT_EQ(reports[0].fiber_name, "culprit");
  EXPECT_GT(reports[0].fiber_id, 0u);
#ifndef SYLAR_TSAN  // which keeps signals back from a thread that computes
  EXPECT_TRUE(has(reports[0].backtrace, "computeUntilTold")) << ::testing::PrintToString(reports[0].backtrace);
#endif
}

TEST(Watchdog, NamesAFiberThatAnotherHasResumed) {
  g_computes = g_told = false;
  const auto inner = std::make_shared<Fiber>(computeUntilTold);
  inner->setName("inner");
  const std::vector<HeldWorker> reports = watch([&] { inner->resume(); }, computes, [] { g_told = true; });
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].fiber_name, "inner");
}

// FM-20: a call behind the hooks, which SA_RESTART lets go on.
TEST(Watchdog, NamesTheCallThatBlocks) {
  std::atomic<uint32_t> word{0};
  const std::vector<HeldWorker> reports = watch(
      [&] {
        while (word.load() == 0) sys::futexWait(word, 0, kNever);
      },
      sleepsNow,
      [&] {
        word.store(1);
        sys::futexWake(word, 1);
      });
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].call, "futex");
  EXPECT_EQ(reports[0].fiber_name, "culprit");
#ifndef SYLAR_TSAN
  EXPECT_FALSE(reports[0].backtrace.empty());
#endif
}

/// Makes `call` in the culprit, which must give `result` though the watchdog tells of it. `finish` lets it succeed.
void expectUndisturbed(const char* name, long result, const std::function<long()>& call, const std::function<void()>& finish) {
  long got = -1;
  const std::vector<HeldWorker> reports = watch([&] { got = call(); }, sleepsNow, finish);
  EXPECT_EQ(got, result) << name;
  ASSERT_EQ(reports.size(), 1u) << name;
  EXPECT_EQ(reports[0].call, name);
  EXPECT_EQ(reports[0].fiber_name, "culprit") << name;
  EXPECT_TRUE(reports[0].backtrace.empty()) << name;
}

// FM-20: a call that a signal would end is left alone. So is one that would return in part, or fails because it has a timeout.
TEST(Watchdog, DoesNotInterruptACall) {
  const Pair pair = unixPair();
  const auto finish = [&] { EXPECT_EQ(sys::call(SYS_write, pair.b, "x", 1), 1); };
  pollfd one{pair.a, POLLIN, 0};
  expectUndisturbed(
      "ppoll", 1, [&] { return sys::call(SYS_ppoll, &one, 1, nullptr, nullptr, 0); }, finish);
  char byte = 0;
  EXPECT_EQ(sys::call(SYS_read, pair.a, &byte, 1), 1);
  const timeval minute{60, 0};
  ASSERT_EQ(::setsockopt(pair.a, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof minute), 0);
  expectUndisturbed(
      "read", 1, [&] { return sys::call(SYS_read, pair.a, &byte, 1); }, finish);
  std::vector<char> bytes(8 << 20), read(1 << 20);
  expectUndisturbed(
      "write", static_cast<long>(bytes.size()), [&] { return sys::call(SYS_write, pair.b, bytes.data(), bytes.size()); },
      [&] {
        for (size_t done = 0; done < bytes.size();) {
          const long n = sys::call(SYS_read, pair.a, read.data(), read.size());
          ASSERT_GT(n, 0);
          done += static_cast<size_t>(n);
        }
      });
  const std::atomic<uint32_t> word{0};
  expectUndisturbed(
      "futex", -ETIMEDOUT, [&] { return long{sys::futexWait(word, 0, steadyClock().nowNs() + 2'000'000'000)}; }, [] {});
}

// The second watchdog is slower, so the first has looked several times more when it tells.
TEST(Watchdog, TellsOnceOfEachTime) {
  std::atomic<int> first{0};
  std::atomic<int> second{0};
  IOManager iom(1, false, "watched");
  const Watchdog quick(iom, 10ms, [&](const HeldWorker&) { ++first; });
  const Watchdog slow(iom, 100ms, [&](const HeldWorker&) { ++second; });
  for (int time = 1; time <= 2; ++time) {
    const auto fiber = std::make_shared<Fiber>([&, time] {
      while (first < time || second < time) {
      }
    });
    iom.schedule(fiber);
    fiber->join();
    EXPECT_EQ(first, time);
    EXPECT_EQ(second, time);
  }
}

// FM-20: it is over then, and nobody need look for it.
TEST(Watchdog, TellsForHowLongAWorkerWasHeld) {
  HeldWorker held, was_held;
  std::atomic<bool> told{false};
  Gate back;
  IOManager iom(1, false, "watched");
  const Watchdog watchdog(
      iom, kLimit,
      [&](const HeldWorker& now) {
        held = now;
        told = true;
      },
      [&](const HeldWorker& now) {
        was_held = now;
        back.open();
      });
  const auto fiber = std::make_shared<Fiber>([&] {
    while (!told) {
    }
  });
  fiber->setName("culprit");
  iom.schedule(fiber);
  ASSERT_TRUE(back.wait());
  EXPECT_GE(held.held, kLimit);
  EXPECT_GE(was_held.held, held.held);
  EXPECT_EQ(was_held.worker, "watched_0");
  EXPECT_EQ(was_held.thread, held.thread);
  EXPECT_EQ(was_held.fiber_id, fiber->getId());
  EXPECT_EQ(was_held.fiber_name, "culprit");
  EXPECT_EQ(back.count(), 1u);
}

TEST(Watchdog, ItsLogLineSaysAll) {
  std::string line;
  const LogLines lines([&](log::Level level, std::string_view text) {
    EXPECT_EQ(level, log::Level::kWarn);
    line = text;
  });
  HeldWorker held;
  held.worker = "io_0";
  held.thread = 12;
  held.held = 103ms;
  logHeldWorker(held);
  EXPECT_EQ(line, "io_0 (thread 12) is held for 103 ms by an unknown fiber, which computes");
  held.fiber_id = 7;
  held.fiber_name = "reports";
  held.call = "flock";
  held.backtrace = {"flock (libc.so.6)", "lockTable() (reports)"};
  logHeldWorker(held);
  EXPECT_EQ(line,
            "io_0 (thread 12) is held for 103 ms by fiber 7 reports, in flock\n    flock (libc.so.6)\n    lockTable() (reports)");
  held.held = 1'730ms;
  logWorkerIsBack(held);
  EXPECT_EQ(line, "io_0 (thread 12) is back, it was held for 1730 ms by fiber 7 reports");
}

TEST(Watchdog, EndsWhileAWorkerIsHeld) {
  std::atomic<bool> go_on{false};
  std::atomic<bool> runs{false};
  IOManager iom(1, false, "watched");
  {
    const Watchdog watchdog(iom, 1h, [](const HeldWorker&) { ADD_FAILURE(); });
    iom.schedule([&] {
      runs = true;
      while (!go_on) {
      }
    });
    while (!runs) ::sched_yield();
  }
  go_on = true;
}

TEST(Watchdog, ItsEndInAForkedChildDoesNotHang) {
  IOManager iom(1, false, "watched");
  auto watchdog = std::make_unique<Watchdog>(iom, 1h);
  const pid_t child = ::fork();
  if (child == 0) {
    watchdog.reset();
    ::_exit(7);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Watchdog, RefusesALimitOfNothing) {
  IOManager iom(1, false, "watched");
  EXPECT_THROW(Watchdog(iom, 0ms), std::invalid_argument);
  EXPECT_THROW(Watchdog(iom, -1ms), std::invalid_argument);
}

}  // namespace
}  // namespace sylar::test
