// For tests: fibers of two managers and plain threads that come to wait one after the other.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/base/sys.h"
#include "sylar/iomanager.h"
#include "tests/sched/gate.h"
#include "tests/support/thread_state.h"
#include "tests/sync/waiter.h"

namespace sylar::test {

class Arrivals {
 public:
  explicit Arrivals(size_t workers) : m_one(workers, false, "one"), m_other(1, false, "other") {}
  /// Waits until all that were added have ended.
  ~Arrivals() { join(); }
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  /// Has a fiber of one manager, a fiber of the other, or a thread run `body`, and returns when it waits.
  void add(std::function<void()> body) {
    switch (m_added++ % 3) {
      case 0: waiterOn(m_one, std::move(body)); return;
      case 1: waiterOn(m_other, std::move(body)); return;
      default: break;
    }
    std::atomic<pid_t> id{0};
    m_threads.emplace_back([&id, body = std::move(body)] {
      id = sys::threadId();
      body();
    });
    EXPECT_TRUE(eventually([&] { return id != 0 && stateOfThread(id) == 'S'; }));
  }
  void join() {
    for (std::thread& thread : m_threads) thread.join();
    m_threads.clear();
    m_one.stop();
    m_other.stop();
  }

 private:
  size_t m_added = 0;
  std::vector<std::thread> m_threads;
  IOManager m_one, m_other;
};

}  // namespace sylar::test
