// Unmodified Abseil: what waits in it waits by futex(2) in a record of its thread, and each fiber is one.
#include <absl/synchronization/barrier.h>
#include <absl/synchronization/blocking_counter.h>
#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>
#include <absl/time/time.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/sync/event.h"
#include "tests/integration/clients/crowd.h"

namespace sylar::test {
namespace {

const absl::Duration kPatienceOfAbsl = absl::FromChrono(kPatience);

class Absl : public Crowds {
 protected:
  void SetUp() override {
    if (!ThreadsAreFibers::supported()) GTEST_SKIP() << "fibers run as their worker in this build";
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, Absl, kOneAndTwo);

// HA-6
TEST_P(Absl, AMutexIsHeldOverASleep) {
  absl::Mutex mutex;
  std::atomic<int> inside{0};
  size_t visits = 0;
  const auto visit = [&] {
    EXPECT_EQ(inside.fetch_add(1), 0);
    ::usleep(1);
    EXPECT_EQ(inside.fetch_sub(1), 1);
    ++visits;
  };
  mutex.Lock();
  {
    Crowd crowd(workers(), [&](Crowd& us, size_t) {
      us.arrive();
      for (int i = 0; i < 20; ++i) {
        const absl::MutexLock lock(&mutex);
        visit();
      }
    });
    crowd.untilAllWait();
    mutex.Unlock();
    for (int i = 0; i < 20; ++i) {
      const absl::MutexLock lock(&mutex);
      visit();
    }
  }
  EXPECT_EQ(visits, 20 * (Crowd::kSize + 1));
}

TEST_P(Absl, ReadersAreTogetherAndWritersAlone) {
  absl::Mutex mutex;
  std::atomic<int> readers{0}, writers{0};
  std::atomic<bool> together{false};
  size_t visits = 0;
  {
    Crowd crowd(workers(), [&](Crowd&, size_t i) {
      for (int round = 0; round < 20; ++round) {
        if (i % 4 == 0) {
          const absl::WriterMutexLock lock(&mutex);
          EXPECT_EQ(writers.fetch_add(1), 0);
          EXPECT_EQ(readers.load(), 0);
          ::usleep(1);
          ++visits;
          writers.fetch_sub(1);
        } else {
          const absl::ReaderMutexLock lock(&mutex);
          EXPECT_EQ(writers.load(), 0);
          if (readers.fetch_add(1) > 0) together = true;
          ::usleep(1);
          readers.fetch_sub(1);
        }
      }
    });
  }
  EXPECT_EQ(visits, 20 * Crowd::kSize / 4);
  EXPECT_TRUE(together.load());
}

TEST_P(Absl, ConditionVariablesOfAQueue) {
  constexpr int kNumbers = 20;
  absl::Mutex mutex;
  absl::CondVar filled, emptied;
  std::deque<size_t> queue;
  std::vector<size_t> taken;
  Crowd crowd(workers(), [&](Crowd& us, size_t i) {
    us.arrive();
    for (int n = 0; n < kNumbers; ++n) {
      const absl::MutexLock lock(&mutex);
      if (i % 2 == 0) {
        while (queue.size() >= 3) emptied.Wait(&mutex);
        queue.push_back(i);
        filled.Signal();
      } else {
        while (queue.empty()) EXPECT_FALSE(filled.WaitWithTimeout(&mutex, kPatienceOfAbsl));
        taken.push_back(queue.front());
        queue.pop_front();
        emptied.Signal();
      }
    }
  });
  crowd.end();
  EXPECT_TRUE(queue.empty());
  for (size_t i = 0; i < Crowd::kSize; i += 2) EXPECT_EQ(std::count(taken.begin(), taken.end(), i), kNumbers);
}

TEST_P(Absl, SomeWaitForAConditionAndOthersForASignal) {
  absl::Mutex mutex;
  absl::CondVar told;
  bool go = false;
  size_t gone = 0;
  Crowd crowd(workers(), [&](Crowd& us, size_t i) {
    const absl::MutexLock lock(&mutex);
    us.arrive();
    switch (i % 4) {
      case 0: mutex.Await(absl::Condition(&go)); break;
      case 1: EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&go), kPatienceOfAbsl)); break;
      case 2:
        while (!go) told.Wait(&mutex);
        break;
      default:
        while (!go) EXPECT_FALSE(told.WaitWithTimeout(&mutex, kPatienceOfAbsl));
    }
    EXPECT_TRUE(go);
    ++gone;
  });
  crowd.untilAllWait();
  {
    const absl::MutexLock lock(&mutex);
    EXPECT_EQ(gone, 0u);
    go = true;
    told.SignalAll();
  }
  crowd.end();
  EXPECT_EQ(gone, Crowd::kSize);
}

TEST_P(Absl, WaitsEndAtTheirTime) {
  absl::Mutex mutex;
  absl::CondVar silent;
  absl::Notification never;
  const bool no = false;
  const absl::Duration delay = absl::Milliseconds(5);
  Crowd crowd(workers(), [&](Crowd&, size_t) {
    for (int i = 0; i < 3; ++i) {
      const absl::Time begin = absl::Now();
      {
        const absl::MutexLock lock(&mutex);
        EXPECT_TRUE(silent.WaitWithTimeout(&mutex, delay));
        EXPECT_FALSE(mutex.AwaitWithTimeout(absl::Condition(&no), delay));
      }
      EXPECT_FALSE(never.WaitForNotificationWithTimeout(delay));
      EXPECT_GE(absl::Now() - begin, 3 * delay);
    }
  });
}

TEST_P(Absl, ANotificationOfAThreadWakesAll) {
  absl::Notification notification;
  absl::BlockingCounter all(static_cast<int>(Crowd::kSize));
  std::atomic<size_t> woken{0};
  Crowd crowd(workers(), [&](Crowd& us, size_t) {
    us.arrive();
    notification.WaitForNotification();
    EXPECT_TRUE(notification.HasBeenNotified());
    ++woken;
    all.DecrementCount();
  });
  crowd.untilAllWait();
  EXPECT_EQ(woken.load(), 0u);
  notification.Notify();
  all.Wait();
  EXPECT_EQ(woken.load(), Crowd::kSize);
}

// Each fiber waits for the others: by a counter that it has itself, and at a barrier.
TEST_P(Absl, FibersWaitForOneAnother) {
  std::vector<std::unique_ptr<absl::BlockingCounter>> counters;
  for (size_t i = 0; i < Crowd::kSize; ++i)
    counters.push_back(std::make_unique<absl::BlockingCounter>(static_cast<int>(Crowd::kSize)));
  auto* const barrier = new absl::Barrier(static_cast<int>(Crowd::kSize));
  std::atomic<size_t> counted{0}, last{0};
  Crowd crowd(workers(), [&](Crowd&, size_t i) {
    ++counted;
    for (const auto& counter : counters) counter->DecrementCount();
    counters[i]->Wait();
    EXPECT_EQ(counted.load(), Crowd::kSize);
    if (barrier->Block()) {
      ++last;
      delete barrier;
    }
  });
  crowd.end();
  EXPECT_EQ(last.load(), 1u);
}

// ---- A thread may stand in one queue of Abseil only, and fibers that run as their worker are one thread to it. ---------------

TEST_P(Absl, OneFiberThatRunsAsItsWorkerWaitsWithoutIt) {
  absl::Notification notification;
  Event others;
  std::atomic<size_t> firsts{0};
  Crowd crowd(
      workers(),
      [&](Crowd& us, size_t) {
        static thread_local bool t_has_first = false;
        us.arrive();
        if (std::exchange(t_has_first, true)) {
          EXPECT_TRUE(others.wait());
        } else {
          ++firsts;
          notification.WaitForNotification();
        }
      },
      FiberIdentity::kWorker);
  crowd.untilAllWait();
  EXPECT_EQ(firsts.load(), workers());
  notification.Notify();
  others.set();
}

TEST_P(Absl, TwoFibersThatRunAsTheirWorkerMustNotWait) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto wait = [this] {
    absl::Notification notification;
    Crowd crowd(
        workers(), [&](Crowd&, size_t) { notification.WaitForNotification(); }, FiberIdentity::kWorker);
    crowd.end();
  };
  EXPECT_DEATH(wait(), "illegal recursion into Mutex");
}

}  // namespace
}  // namespace sylar::test
