// For tests: code in fibers, and the check that nothing is left behind.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/base/sys.h"
#include "sylar/fiber.h"
#include "sylar/iomanager.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "sylar/sched/worker_slot.h"

namespace sylar::test {

inline size_t entriesOf(const char* directory) {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator()));
}

/// Runs `body` in a fiber on an IOManager of its own and returns when everything it started has ended.
inline void inFiber(std::function<void()> body, size_t workers = 1) {
  IOManager iom(workers, false, "test");
  iom.schedule(std::move(body));
}

/// After a stop with a deadline: how many workers a busy machine has kept in a fiber for so long that they were left behind, each
/// with its thread, its descriptors and the fiber that it is about to end.
inline size_t lateWorkersOf(Scheduler& scheduler) {
  const auto& workers = coreOf(scheduler).workers();
  return static_cast<size_t>(
      std::count_if(workers.begin(), workers.end(), [](const auto& worker) { return worker->detached(); }));
}

/// Returns how many threads the process has, by the kernel's own count. A listing of /proc/self/task ends early at a thread that is
/// just gone.
inline size_t threads() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) return std::stoul(line.substr(8));
  }
  return 0;
}

/// Returns how many threads the process has after a first one has come and gone. ThreadSanitizer starts one of its own together
/// with that.
inline size_t threadsToStay() {
  pid_t first = 0;
  std::thread([&first] { first = sys::threadId(); }).join();
  while (std::filesystem::exists("/proc/self/task/" + std::to_string(first))) sched_yield();
  return threads();
}

/// Waits until no more than `expected` threads are left, a minute at most. The kernel counts a thread a moment longer than anybody
/// can wait for it: pthread_join returns when it has left user space.
inline void awaitThreads(size_t expected) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (threads() > expected && std::chrono::steady_clock::now() < end) sched_yield();
}

/// At the end of its scope there are as many fibers and descriptors as at its beginning, and no more threads, not counting those
/// that the library keeps: of the list of mounts, and to wake workers to come.
class LeakCheck {
 public:
  LeakCheck() : m_fibers(Fiber::TotalFibers()), m_threads(threadsToStay()), m_descriptors(descriptors()) {}
  ~LeakCheck() {
    if (m_left_behind) return;
    EXPECT_EQ(Fiber::TotalFibers(), m_fibers);
    awaitThreads(m_threads);
    EXPECT_LE(threads(), m_threads);  // less: one that had been joined before was still counted at the beginning
    EXPECT_EQ(descriptors(), m_descriptors);
  }
  /// For a scheduler that has stopped by a deadline. If a worker was late, nothing is counted.
  void excuseLateWorkersOf(Scheduler& scheduler) { m_left_behind = m_left_behind || lateWorkersOf(scheduler) > 0; }
  LeakCheck(const LeakCheck&) = delete;
  LeakCheck& operator=(const LeakCheck&) = delete;

 private:
  static size_t descriptors() {
    size_t lists = 0;
    for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;  // the iterator's own
      lists += std::filesystem::read_symlink(one, gone).filename() == "mountinfo";
    }
    return entriesOf("/proc/self/fd") - lists - WorkerSlot::opened();
  }

  const uint64_t m_fibers;
  const size_t m_threads;
  const size_t m_descriptors;
  bool m_left_behind = false;
};

/// Returns 1, 2 and 8, or only the count in SYLAR_TEST_WORKERS, with which scripts/nightly.sh has 4.
inline std::vector<size_t> workerCounts() {
  const char* const given = std::getenv("SYLAR_TEST_WORKERS");
  return given == nullptr ? std::vector<size_t>{1, 2, 8} : std::vector<size_t>{std::stoul(given)};
}

/// A test that runs with each of these:
///   INSTANTIATE_TEST_SUITE_P(Workers, MyTest, kWorkerCounts);
class OverWorkers : public testing::TestWithParam<size_t> {
 protected:
  size_t workers() const { return GetParam(); }
  LeakCheck& leaks() { return m_leaks; }

 private:
  LeakCheck m_leaks;
};
inline const auto kWorkerCounts = testing::ValuesIn(workerCounts());

}  // namespace sylar::test
