// HA-11: ThreadsAreFibers in a program that has the library inside. What POSIX says of threads is tested under sylar-run
// (tests/integration/threads_test.py).
#include <pthread.h>
#include <threads.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sylar/clock.h"
#include "sylar/fiber.h"
#include "sylar/fiber_local.h"
#include "sylar/hook.h"
#include "sylar/iomanager.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sync/blocking_pool.h"
#include "sylar/threads_are_fibers.h"
#include "tests/hook/support.h"
#include "tests/sched/gate.h"

namespace sylar::test {
namespace {

size_t kernelThreads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

class FiberThreads : public OverWorkers {
 protected:
  void SetUp() override {
    if (!ThreadsAreFibers::supported()) GTEST_SKIP() << "threads stay threads in this build";
  }
  /// Runs `body` in a fiber of workers() workers, with threads that are fibers.
  template <class Body>
  void run(Body body) {
    const ThreadsAreFibers threads_are_fibers;
    IOManager iom(workers(), false, "threads");
    iom.schedule(body);
    iom.stop();
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, FiberThreads, testing::Values(1, 2));

TEST_P(FiberThreads, NeedNoKernelThreads) {
  run([] {
    const size_t before = kernelThreads();
    std::mutex mutex;
    std::condition_variable all_here, go_on;
    size_t here = 0;
    bool may_end = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < 100; ++i) {
      threads.emplace_back([&] {
        std::unique_lock lock(mutex);
        ++here;
        all_here.notify_one();
        go_on.wait(lock, [&] { return may_end; });
      });
    }
    {
      std::unique_lock lock(mutex);
      all_here.wait(lock, [&] { return here == 100; });
      EXPECT_TRUE(eventually([&] { return kernelThreads() <= before; }));  // the last one is leaving
      may_end = true;
      go_on.notify_all();
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST_P(FiberThreads, AreThreadsOnlyWhileAskedFor) {
  IOManager iom(workers(), false, "threads");
  iom.schedule([] {
    const auto id_of_kernel = [] { return static_cast<pid_t>(::syscall(SYS_gettid)); };
    pid_t fibers = 0, threads = 0;
    {
      const ThreadsAreFibers threads_are_fibers;
      std::thread([&] { fibers = Fiber::GetFiberId() != 0; }).join();
    }
    std::thread([&] { threads = Fiber::GetFiberId() == 0 && id_of_kernel() == ::gettid(); }).join();
    EXPECT_EQ(fibers, 1);
    EXPECT_EQ(threads, 1);
  });
  iom.stop();
  BlockingPool::process().endAll();  // which has joined the thread
}

thread_local int t_number = 1;
std::atomic<int> g_destroyed{0};
struct Destroyed {
  ~Destroyed() { g_destroyed += value; }
  int value = 0;
};
thread_local Destroyed t_destroyed;

TEST_P(FiberThreads, HaveTheirOwnVariables) {
  g_destroyed = 0;
  run([] {
    t_number = 5;
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int i = 0; i < 20; ++i) {
      threads.emplace_back([&, i] {
        wrong += t_number != 1;
        t_number = 100 + i;
        t_destroyed.value = 1;
        errno = i;
        ::usleep(1);
        wrong += t_number != 100 + i || errno != i;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(g_destroyed, 20);
  });
}

TEST_P(FiberThreads, HandleTheirExceptionsByThemselves) {
  run([] {
    std::vector<std::future<int>> results;
    for (int i = 0; i < 10; ++i) {
      results.push_back(std::async(std::launch::async, [i]() -> int {
        try {
          throw std::runtime_error(std::to_string(i));
        } catch (const std::exception& mine) {
          ::usleep(1);
          EXPECT_EQ(mine.what(), std::to_string(i));
          throw;
        }
      }));
    }
    for (int i = 0; i < 10; ++i) {
      try {
        results[static_cast<size_t>(i)].get();
        ADD_FAILURE() << "no exception";
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(error.what(), std::to_string(i));
      }
    }
  });
}

TEST_P(FiberThreads, HaveIdsOfTheirOwn) {
  run([] {
    std::mutex mutex;
    std::set<pid_t> ids;
    std::set<std::thread::id> names;
    const auto note = [&] {
      const std::lock_guard lock(mutex);
      ids.insert(::gettid());
      names.insert(std::this_thread::get_id());
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 10; ++i) {
      threads.emplace_back([&] {
        note();
        ::usleep(1);
        note();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(ids.size(), 10u);
    EXPECT_EQ(names.size(), 10u);
  });
}

TEST_P(FiberThreads, MakeThreadsThemselves) {
  run([] {
    int sum = 0;
    std::thread([&] {
      std::thread([&] {
        std::thread([&] { sum += 1; }).join();
        sum += 10;
      }).join();
      sum += 100;
    }).join();
    EXPECT_EQ(sum, 111);
  });
}

void* exitsDeepDown(void* value) {
  struct Unwound {
    ~Unwound() { g_destroyed += 1000; }
  } unwound;
  ::usleep(1);
  ::pthread_exit(value);
}

TEST_P(FiberThreads, AreLeftByPthreadExit) {
  g_destroyed = 0;
  run([] {
    pthread_t thread;
    int answer = 0;
    ASSERT_EQ(::pthread_create(&thread, nullptr, exitsDeepDown, &answer), 0);
    void* value = nullptr;
    ASSERT_EQ(::pthread_join(thread, &value), 0);
    EXPECT_EQ(value, &answer);
    EXPECT_EQ(g_destroyed, 1000);
  });
}

std::atomic<int> g_detached{0};
TEST_P(FiberThreads, MayBeDetached) {
  g_detached = 0;
  run([] {
    for (int i = 0; i < 10; ++i) {
      pthread_t thread;
      const auto function = [](void*) -> void* {
        ::usleep(1);
        ++g_detached;
        return nullptr;
      };
      ASSERT_EQ(::pthread_create(&thread, nullptr, function, nullptr), 0);
      ASSERT_EQ(::pthread_detach(thread), 0);
    }
  });
  EXPECT_EQ(g_detached, 10);  // the stop has waited for them
}

TEST_P(FiberThreads, OfC11AreJoinedWithTheirResult) {
  run([] {
    thrd_t thread;
    const auto function = [](void* value) -> int {
      ::usleep(1);
      return *static_cast<int*>(value) + 1;
    };
    int value = 41, result = 0;
    ASSERT_EQ(::thrd_create(&thread, function, &value), thrd_success);
    ASSERT_EQ(::thrd_join(thread, &result), thrd_success);
    EXPECT_EQ(result, 42);
  });
}

std::atomic<pthread_t> g_handled_by{0};

TEST_P(FiberThreads, GetTheSignalsThatAreSentToThem) {
  g_handled_by = 0;
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { g_handled_by = ::pthread_self(); };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  setHookEintr(HookEintr::kPosix);
  run([] {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    std::promise<pthread_t> self;
    std::atomic<bool> ended{false};
    std::thread reader([&] {
      self.set_value(::pthread_self());
      char byte;
      EXPECT_EQ(::read(ends[0], &byte, 1), -1);
      EXPECT_EQ(errno, EINTR);
      ended = true;
    });
    const pthread_t target = self.get_future().get();
    while (!ended) {  // it may not wait yet
      EXPECT_EQ(::pthread_kill(target, SIGUSR1), 0);
      ::usleep(100);
    }
    EXPECT_EQ(g_handled_by, target);
    reader.join();
    ::close(ends[0]);
    ::close(ends[1]);
  });
  setHookEintr(HookEintr::kRestart);
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_P(FiberThreads, AreCancelledWhileTheyWait) {
  setHookEintr(HookEintr::kPosix);
  run([] {
    pthread_t thread;
    const auto waits = [](void*) -> void* {
      for (;;) ::pause();
    };
    ASSERT_EQ(::pthread_create(&thread, nullptr, waits, nullptr), 0);
    ASSERT_EQ(::pthread_cancel(thread), 0);
    void* value = nullptr;
    ASSERT_EQ(::pthread_join(thread, &value), 0);
    EXPECT_EQ(value, PTHREAD_CANCELED);
  });
  setHookEintr(HookEintr::kRestart);
}

/// Says when it is destroyed.
struct Value {
  ~Value() {
    if (destroyed != nullptr) ++*destroyed;
  }
  std::atomic<int>* destroyed = nullptr;
};

// Cause: the values' list was looked for at the top of the stack that the thread runs on, which is libc's.
TEST_P(FiberThreads, HaveValuesOfFiberLocalThatEndWithThem) {
  static FiberLocal<Value> s_value;
  std::atomic<int> destroyed{0};
  run([&] {
    for (int i = 1; i <= 3; ++i) {
      std::thread([&] {
        EXPECT_EQ(s_value->destroyed, nullptr);
        s_value->destroyed = &destroyed;
        ::usleep(1);  // suspends it, so that another may run
        EXPECT_EQ(s_value->destroyed, &destroyed);
      }).join();
      EXPECT_EQ(destroyed, i);
    }
  });
}

// Cause: a thread that had ended was joined before its values had ended.
TEST_P(FiberThreads, AreJoinedAfterTheirValuesOfFiberLocalHaveEnded) {
  struct Slow {
    ~Slow() {
      if (ended == nullptr) return;
      for (int i = 0; i < 200'000; ++i) Fiber::YieldToReady();  // longer than a kernel thread takes to end
      *ended = true;
    }
    std::atomic<bool>* ended = nullptr;
  };
  static FiberLocal<Slow> s_value;
  run([] {
    std::atomic<bool> ended{false};
    std::thread([&] { s_value->ended = &ended; }).join();
    EXPECT_TRUE(ended);
  });
}

// Cause: so was what such a thread joins, which is nothing. A stop that came while it waited followed what libc has there.
TEST_P(FiberThreads, AreNotTakenForJoinersWhileTheSchedulerStops) {
  const ThreadsAreFibers threads_are_fibers;
  IOManager iom(workers(), false, "threads");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Gate waits;
  const auto wait = [&waits, from = ends[0]] {
    char byte;
    waits.open();
    EXPECT_EQ(::read(from, &byte, 1), 1);
  };
  iom.schedule([&] { std::thread(wait).detach(); });
  const auto fiber = std::make_shared<Fiber>(wait);
  iom.schedule(fiber);
  iom.schedule([&] { fiber->join(); });
  ASSERT_TRUE(waits.wait(2));
  std::thread stopper([&] { iom.stop(); });  // a thread of the kernel's: no fiber has made it
  EXPECT_TRUE(eventually([&] { return coreOf(iom).isStopping() && coreOf(iom).idle().sleeping() == workers(); }));
  EXPECT_EQ(::write(ends[1], "ab", 2), 2);
  stopper.join();
  for (const int end : ends) ::close(end);
}

// Cause: the same, where it was cancelled and did not heed it.
TEST_P(FiberThreads, ThatDoNotHeedAStopAreAbandoned) {
  const auto stop_with_deadline = [this] {
    const ThreadsAreFibers threads_are_fibers;
    IOManager iom(workers(), false, "threads");
    Gate begun;
    iom.schedule([&] {
      std::thread([&] {
        begun.open();
        for (;;) ::usleep(1000);
      }).detach();
    });
    ::_exit(begun.wait() && iom.stop(Deadline::after(std::chrono::milliseconds(1))).abandoned.size() == 1 ? 0 : 1);
  };
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // a new program: in a mere fork the hooks would pass through
  EXPECT_EXIT(stop_with_deadline(), testing::ExitedWithCode(0), "");
}

TEST_P(FiberThreads, ComeAndGoByTheThousand) {
  run([] {
    int sum = 0;
    for (int i = 0; i < 2000; ++i) std::thread([&] { ++sum; }).join();
    EXPECT_EQ(sum, 2000);
  });
}

}  // namespace
}  // namespace sylar::test
