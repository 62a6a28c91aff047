// Unmodified Boost.Thread in many fibers, and in threads that they make.
#define BOOST_THREAD_VERSION 4
#include <algorithm>
#include <atomic>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/chrono.hpp>
#include <boost/thread.hpp>
#include <boost/thread/barrier.hpp>
#include <boost/thread/condition_variable.hpp>
#include <boost/thread/future.hpp>
#include <boost/thread/latch.hpp>
#include <boost/thread/mutex.hpp>
#include <boost/thread/once.hpp>
#include <boost/thread/recursive_mutex.hpp>
#include <boost/thread/shared_mutex.hpp>

#include "tests/integration/clients/crowd.h"

namespace sylar::test {
namespace {

const boost::chrono::seconds kPatienceOfBoost(kPatience.count());

class BoostThread : public Crowds {};
INSTANTIATE_TEST_SUITE_P(Workers, BoostThread, kOneAndTwo);

/// Locks `mutex` in all fibers and on the test's thread, over a suspension.
template <class Mutex, class Lock>
void isHeldOverASleep(size_t workers, Lock lock) {
  constexpr size_t kRounds = 20;
  Mutex mutex;
  std::atomic<int> inside{0};
  size_t visits = 0;
  const auto visit = [&] {
    for (size_t i = 0; i < kRounds; ++i) {
      lock(mutex);
      EXPECT_EQ(inside.fetch_add(1), 0);
      ::usleep(1);
      EXPECT_EQ(inside.fetch_sub(1), 1);
      ++visits;
      mutex.unlock();
    }
  };
  mutex.lock();
  {
    Crowd crowd(workers, [&](Crowd& us, size_t) {
      us.arrive();
      visit();
    });
    crowd.untilAllWait();
    mutex.unlock();
    visit();
  }
  EXPECT_EQ(visits, kRounds * (Crowd::kSize + 1));
}

// HA-6
TEST_P(BoostThread, AMutexIsHeldOverASleep) {
  isHeldOverASleep<boost::mutex>(workers(), [](auto& mutex) { mutex.lock(); });
}
TEST_P(BoostThread, ATimedMutexIsHeldOverASleep) {
  isHeldOverASleep<boost::timed_mutex>(workers(), [](auto& mutex) { EXPECT_TRUE(mutex.try_lock_for(kPatienceOfBoost)); });
}
TEST_P(BoostThread, AWriterIsAlone) {
  isHeldOverASleep<boost::shared_mutex>(workers(), [](auto& mutex) { mutex.lock(); });
}
TEST_P(BoostThread, ARecursiveMutexIsAFibers) {
  isHeldOverASleep<boost::recursive_mutex>(workers(), [](auto& mutex) {
    mutex.lock();
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
  });
}

TEST_P(BoostThread, AReaderBecomesTheWriter) {
  boost::shared_mutex mutex;
  std::atomic<int> writers{0};
  std::atomic<bool> together{false};
  std::atomic<int> readers{0};
  int visits = 0;
  {
    Crowd crowd(workers(), [&](Crowd&, size_t i) {
      for (int round = 0; round < 10; ++round) {
        if (i % 4 == 0) {
          boost::upgrade_lock<boost::shared_mutex> reads(mutex);
          const int before = visits;
          ::usleep(1);
          const boost::upgrade_to_unique_lock<boost::shared_mutex> writes(reads);
          EXPECT_EQ(writers.fetch_add(1), 0);
          EXPECT_EQ(readers.load(), 0);
          ::usleep(1);
          visits = before + 1;
          writers.fetch_sub(1);
        } else {
          const boost::shared_lock<boost::shared_mutex> reads(mutex);
          EXPECT_EQ(writers.load(), 0);
          if (readers.fetch_add(1) > 0) together = true;
          ::usleep(1);
          readers.fetch_sub(1);
        }
      }
    });
  }
  EXPECT_EQ(visits, 10 * static_cast<int>(Crowd::kSize) / 4);
  EXPECT_TRUE(together.load());
}

TEST_P(BoostThread, TimedWaitsEndAtTheirTime) {
  boost::timed_mutex held;
  boost::shared_timed_mutex held_shared;
  held.lock();
  held_shared.lock();
  boost::promise<int> promise;
  boost::shared_future<int> never(promise.get_future());
  Crowd crowd(workers(), [&](Crowd&, size_t) {
    const boost::chrono::milliseconds delay(5);
    const auto begin = boost::chrono::steady_clock::now();
    EXPECT_FALSE(held.try_lock_for(delay));
    EXPECT_FALSE(held_shared.try_lock_for(delay));
    EXPECT_FALSE(held_shared.try_lock_shared_for(delay));
    EXPECT_TRUE(never.wait_for(delay) == boost::future_status::timeout);
    boost::mutex mutex;
    boost::condition_variable condition;
    boost::unique_lock<boost::mutex> lock(mutex);
    EXPECT_FALSE(condition.wait_for(lock, delay, [] { return false; }));
    boost::this_thread::sleep_for(delay);
    EXPECT_GE(boost::chrono::steady_clock::now() - begin, 6 * delay);
  });
  crowd.end();
  held.unlock();
  held_shared.unlock();
}

TEST_P(BoostThread, ConditionVariablesOfAQueue) {
  constexpr int kNumbers = 20;
  boost::mutex mutex;
  boost::condition_variable filled;
  boost::condition_variable_any emptied;
  std::deque<size_t> queue;
  std::vector<size_t> taken;
  Crowd crowd(workers(), [&](Crowd&, size_t i) {
    for (int n = 0; n < kNumbers; ++n) {
      boost::unique_lock<boost::mutex> lock(mutex);
      if (i % 2 == 0) {
        emptied.wait(lock, [&] { return queue.size() < 3; });
        queue.push_back(i);
        filled.notify_one();
      } else {
        EXPECT_TRUE(filled.wait_for(lock, kPatienceOfBoost, [&] { return !queue.empty(); }));
        taken.push_back(queue.front());
        queue.pop_front();
        emptied.notify_one();
      }
    }
  });
  crowd.end();
  EXPECT_TRUE(queue.empty());
  for (size_t i = 0; i < Crowd::kSize; i += 2) EXPECT_EQ(std::count(taken.begin(), taken.end(), i), kNumbers);
}

TEST_P(BoostThread, ABarrierOfAllAndTheThread) {
  constexpr size_t kRounds = 10;
  boost::barrier barrier(Crowd::kSize + 1);
  std::atomic<size_t> arrivals{0}, last{0};
  const auto pass = [&](size_t round) {
    ++arrivals;
    if (barrier.wait()) ++last;
    EXPECT_GE(arrivals.load(), (round + 1) * (Crowd::kSize + 1));
  };
  Crowd crowd(workers(), [&](Crowd& us, size_t) {
    us.arrive();
    for (size_t round = 0; round < kRounds; ++round) pass(round);
  });
  crowd.untilAllWait();
  for (size_t round = 0; round < kRounds; ++round) pass(round);
  crowd.end();
  EXPECT_EQ(last.load(), kRounds);
}

TEST_P(BoostThread, CallOnceWaitsForAFiberThatIsSuspendedInIt) {
  boost::once_flag once = BOOST_ONCE_INIT;
  std::atomic<int> tries{0}, failures{0};
  {
    Crowd crowd(workers(), [&](Crowd&, size_t) {
      try {
        boost::call_once(once, [&] {
          ::usleep(1);
          if (++tries < 4) throw std::runtime_error("not yet");
        });
        EXPECT_EQ(tries.load(), 4);
      } catch (const std::runtime_error&) {
        ++failures;
      }
    });
  }
  EXPECT_EQ(tries.load(), 4);
  EXPECT_EQ(failures.load(), 3);
}

TEST_P(BoostThread, FuturesOfAThreadAreForAll) {
  boost::promise<std::string> promise;
  boost::shared_future<std::string> future(promise.get_future());
  boost::latch all(Crowd::kSize);
  Crowd crowd(workers(), [&](Crowd& us, size_t i) {
    us.arrive();
    if (i % 2 == 0) all.wait();
    EXPECT_EQ(future.get(), "told");
  });
  crowd.untilAllWait();
  promise.set_value("told");
  for (size_t i = 0; i < Crowd::kSize; ++i) all.count_down();
}

// The threads wait for fibers of the worker that joins them.
TEST_P(BoostThread, FibersMakeThreadsAndJoinThem) {
  boost::mutex mutex;
  boost::condition_variable told;
  bool go = false;
  std::atomic<int> woken{0};
  const auto wait = [&] {
    boost::unique_lock<boost::mutex> lock(mutex);
    told.wait(lock, [&] { return go; });
    return ++woken;
  };
  Crowd crowd(workers(), [&](Crowd& us, size_t i) {
    if (i % 3 == 0) {
      us.arrive();
      boost::thread(wait).join();
    } else if (i % 3 == 1) {
      us.arrive();
      EXPECT_GT(boost::async(boost::launch::async, wait).get(), 0);
    } else {
      boost::packaged_task<int()> task(wait);
      boost::future<int> result = task.get_future();
      boost::thread thread(std::move(task));
      us.arrive();
      EXPECT_GT(result.get(), 0);
      thread.join();
    }
  });
  crowd.untilAllWait();
  {
    const boost::lock_guard<boost::mutex> lock(mutex);
    go = true;
  }
  told.notify_all();
  crowd.end();
  EXPECT_EQ(woken.load(), static_cast<int>(Crowd::kSize));
}

// A thread is interrupted while a fiber joins it.
TEST_P(BoostThread, AThreadIsInterruptedInItsWait) {
  Crowd crowd(workers(), [&](Crowd&, size_t) {
    bool interrupted = false;
    boost::latch waits(1);
    boost::thread thread([&] {
      boost::mutex mutex;
      boost::condition_variable never;
      boost::unique_lock<boost::mutex> lock(mutex);
      waits.count_down();
      try {
        for (;;) never.wait(lock);
      } catch (const boost::thread_interrupted&) {
        interrupted = true;
      }
    });
    waits.wait();
    thread.interrupt();
    EXPECT_TRUE(thread.try_join_for(kPatienceOfBoost));
    EXPECT_TRUE(interrupted);
  });
}

}  // namespace
}  // namespace sylar::test
