// For tests: code in fibers, and the check that nothing is left behind.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <iterator>
#include <utility>

#include "sylar/fiber/fiber.h"
#include "sylar/io/iomanager.h"

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

/// At the end of its scope there are as many fibers, threads and descriptors as at its beginning.
/// Worker slots keep their wake-up descriptors for reuse, so a first round with as many workers is run before counting.
class LeakCheck {
 public:
  explicit LeakCheck(size_t workers) {
    inFiber([] {}, workers);
    m_fibers = Fiber::TotalFibers();
    m_threads = entriesOf("/proc/self/task");
    m_descriptors = entriesOf("/proc/self/fd");
  }
  ~LeakCheck() {
    EXPECT_EQ(Fiber::TotalFibers(), m_fibers);
    EXPECT_EQ(entriesOf("/proc/self/task"), m_threads);
    EXPECT_EQ(entriesOf("/proc/self/fd"), m_descriptors);
  }
  LeakCheck(const LeakCheck&) = delete;
  LeakCheck& operator=(const LeakCheck&) = delete;

 private:
  uint64_t m_fibers;
  size_t m_threads;
  size_t m_descriptors;
};

/// A test that runs with 1, 2, 4 and 8 workers:
///   INSTANTIATE_TEST_SUITE_P(Workers, MyTest, kWorkerCounts);
class OverWorkers : public testing::TestWithParam<size_t> {
 protected:
  size_t workers() const { return GetParam(); }

 private:
  LeakCheck m_leaks{GetParam()};
};
inline const auto kWorkerCounts = testing::Values(1, 2, 4, 8);

}  // namespace sylar::test
