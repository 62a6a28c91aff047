// For tests: a scheduler whose stop() waits for jobs that it knows nothing of but their number.
#pragma once

#include <atomic>
#include <cstddef>

#include "sylar/scheduler.h"

namespace sylar::test {

class Counting final : public Scheduler {
 public:
  explicit Counting(size_t threads) : Scheduler(threads, false, "counting") {}
  ~Counting() override { stop(); }

  /// Captured by work: its destructor calls back into the scheduler.
  struct Job {
    explicit Job(Counting& counting) : owner(counting) { ++owner.pending; }
    ~Job() {
      owner.pendingEnded([this] { --owner.pending; });
      (void)owner.trySchedule([] {});
    }
    Counting& owner;
  };
  std::atomic<int> pending{0};

 protected:
  bool stopping() override { return Scheduler::stopping() && pending == 0; }
};

}  // namespace sylar::test
