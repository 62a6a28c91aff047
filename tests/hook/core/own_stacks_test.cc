// Waits on a stack that the program has made by itself inside of a fiber, as coroutines of other libraries do.
#include <semaphore.h>

#include <condition_variable>
#include <csetjmp>
#include <csignal>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "sylar/fiber.h"
#include "sylar/mutex.h"
#include "tests/hook/fd/kinds.h"
#include "tests/hook/process/children.h"
#include "tests/support/coroutine.h"

namespace sylar::test {
namespace {

/// Runs `wait` in a coroutine of a fiber, beside another fiber of the same worker, which runs `finish`.
void waitsInCoroutine(const std::function<void()>& wait, const std::function<void()>& finish) {
  inFiber([&] {
    bool other_ran = false;
    const auto other = std::make_shared<Fiber>([&] {
      other_ran = true;
      finish();
    });
    IOManager::GetThis()->schedule(other);
    inCoroutine(wait);
    EXPECT_TRUE(other_ran);
    other->join();
  });
}

struct Wait {
  std::string name;
  std::function<void()> wait;
  std::function<void()> finish;
};

/// The waits of one shape, each with objects of its own, which live as long as the functions.
template <class Objects, class Waits, class Finish>
Wait waitOn(std::string name, std::shared_ptr<Objects> objects, Waits waits, Finish finish) {
  return {std::move(name), [=] { waits(*objects); }, [=] { finish(*objects); }};
}

Wait descriptorWait(std::string name, std::function<void(int)> waits) {
  return waitOn(
      std::move(name), std::make_shared<Pair>(makeUnix(hookedCalls(), SOCK_STREAM)),
      [waits = std::move(waits)](Pair& ends) { waits(ends.a); }, [](Pair& ends) { EXPECT_EQ(::write(ends.b, "x", 1), 1); });
}

std::vector<Wait> descriptorWaits() {
  static const auto in = [](int fd) { return pollfd{fd, POLLIN, 0}; };
  return {
      descriptorWait("read",
                     [](int fd) {
                       char byte;
                       EXPECT_EQ(::read(fd, &byte, 1), 1);
                     }),
      descriptorWait("recv",
                     [](int fd) {
                       char byte;
                       EXPECT_EQ(::recv(fd, &byte, 1, MSG_WAITALL), 1);
                     }),
      descriptorWait("poll",
                     [](int fd) {
                       pollfd one = in(fd);
                       EXPECT_EQ(::poll(&one, 1, -1), 1);
                     }),
      descriptorWait("epoll_wait",
                     [](int fd) {
                       const int epoll = ::epoll_create1(0);
                       epoll_event event{EPOLLIN, {}};
                       EXPECT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
                       EXPECT_EQ(::epoll_wait(epoll, &event, 1, -1), 1);
                       ::close(epoll);
                     }),
  };
}

/// A write that has to wait for room.
Wait writeWait() {
  static const std::vector<char> bytes(1'000'000);
  return waitOn(
      "write", std::make_shared<Pair>(makeUnix(hookedCalls(), SOCK_STREAM)),
      [](Pair& ends) { EXPECT_EQ(::write(ends.a, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size())); },
      [](Pair& ends) {
        std::vector<char> got(bytes.size() - 1);
        EXPECT_EQ(::recv(ends.b, got.data(), got.size(), MSG_WAITALL), static_cast<ssize_t>(got.size()));
      });
}

Wait acceptWait() {
  const auto sockets = std::make_shared<Pair>(Ends{boundSocket(hookedCalls(), SOCK_STREAM), ::socket(AF_INET, SOCK_STREAM, 0)});
  return waitOn(
      "accept", sockets,
      [](Pair& ends) {
        const int accepted = ::accept(ends.a, nullptr, nullptr);
        EXPECT_GE(accepted, 0);
        ::close(accepted);
      },
      [](Pair& ends) { EXPECT_EQ(connectTo(hookedCalls(), ends.b, addressOf(ends.a)), 0); });
}

struct Condition {
  std::mutex mutex;
  std::condition_variable changed;
  bool ready = false;
};

struct PosixSemaphore {
  PosixSemaphore() { ::sem_init(&semaphore, 0, 0); }
  ~PosixSemaphore() { ::sem_destroy(&semaphore); }
  sem_t semaphore;
};

std::vector<Wait> lockWaits() {
  return {
      waitOn(
          "condition_variable", std::make_shared<Condition>(),
          [](Condition& one) {
            std::unique_lock lock(one.mutex);
            one.changed.wait(lock, [&one] { return one.ready; });
          },
          [](Condition& one) {
            const std::lock_guard lock(one.mutex);
            one.ready = true;
            one.changed.notify_one();
          }),
      waitOn(
          "sem_wait", std::make_shared<PosixSemaphore>(), [](PosixSemaphore& one) { EXPECT_EQ(::sem_wait(&one.semaphore), 0); },
          [](PosixSemaphore& one) { ::sem_post(&one.semaphore); }),
      waitOn(
          "Semaphore", std::make_shared<Semaphore>(0), [](Semaphore& one) { one.wait(); }, [](Semaphore& one) { one.notify(); }),
  };
}

std::vector<Wait> allWaits() {
  std::vector<Wait> all = descriptorWaits();
  for (Wait& one : lockWaits()) all.push_back(std::move(one));
  all.push_back(writeWait());
  all.push_back(acceptWait());
  all.push_back({"usleep", [] { EXPECT_EQ(::usleep(20'000), 0); }, [] {}});
  all.push_back({"poll with a timeout", [] { EXPECT_EQ(::poll(nullptr, 0, 20), 0); }, [] {}});
  all.push_back({"YieldToReady", [] { Fiber::YieldToReady(); }, [] {}});
  return all;
}

// Cause: a wait on another stack than the fiber's was taken for one in a signal handler with a stack of its own, and blocked the
// worker.
TEST(OwnStack, WaitLetsOtherFibersRun) {
  for (const Wait& one : allWaits()) {
    SCOPED_TRACE(one.name);
    waitsInCoroutine(one.wait, one.finish);
  }
}

// Cause: the same. It deadlocks if the owner of the mutex is a fiber of the worker.
TEST(OwnStack, WaitsForAMutexThatAnotherFiberHolds) {
  std::mutex mutex;
  inFiber([&mutex] {
    mutex.lock();
    bool locked = false;
    IOManager::GetThis()->schedule([&] {
      inCoroutine([&] {
        const std::lock_guard lock(mutex);
        locked = true;
      });
    });
    ::usleep(1000);
    EXPECT_FALSE(locked);
    mutex.unlock();
    while (!locked) Fiber::YieldToReady();
  });
}

/// Reads ten bytes and gives control back after each, with waits and exceptions in between. Returns their sum.
int converse(Coroutine& self, int fd, std::mutex& mutex) {
  int sum = 0;
  for (int k = 0; k < 10; ++k) {
    char byte = 0;
    EXPECT_EQ(::read(fd, &byte, 1), 1);
    {
      const std::lock_guard lock(mutex);
      ::usleep(100);
    }
    try {
      throw byte;
    } catch (const char& caught) {
      ::usleep(100);
      sum += caught;
    }
    self.yield();
  }
  return sum;
}

// Cause: the same. What a switch keeps belongs to the fiber, on whatever stack it is.
TEST(OwnStack, CoroutinesOfManyFibersConverse) {
  for (const size_t workers : {1, 2}) {
    std::mutex mutex;
    std::atomic<int> right{0};
    const auto conversation = [&](int i) {
      const Pair pair = unixPair();
      int sum = 0;
      Coroutine reader([&](Coroutine& self) { sum = converse(self, pair.a, mutex); });
      for (int k = 0; k < 10; ++k) {
        const char byte = static_cast<char>(i + k);
        EXPECT_EQ(::write(pair.b, &byte, 1), 1);
        reader.resume();
        ::usleep(100);
      }
      reader.resume();
      if (reader.ended() && sum == 10 * i + 45) ++right;
    };
    {
      IOManager iom(workers, false, "coroutines");
      for (int i = 0; i < 20; ++i) iom.schedule([&conversation, i] { conversation(i); });
    }
    EXPECT_EQ(right, 20) << workers;
  }
}

TEST(OwnStack, ExceptionsAreTheFibersOwn) {
  std::string caught;
  waitsInCoroutine(
      [&caught] {
        try {
          throw std::runtime_error("mine");
        } catch (...) {
          ::usleep(1000);
          EXPECT_EQ(std::uncaught_exceptions(), 0);
          try {
            throw;
          } catch (const std::exception& error) {
            caught = error.what();
          }
        }
      },
      [] { EXPECT_THROW(throw 1, int); });
  EXPECT_EQ(caught, "mine");
}

TEST(OwnStack, FiberMovesWithIt) {
  IOManager there(1, false, "there");
  inFiber([&there] {
    bool moved = false;
    inCoroutine([&] {
      EXPECT_TRUE(there.switchTo());
      moved = Scheduler::GetThis() == &there;
      EXPECT_EQ(::usleep(1000), 0);
    });
    EXPECT_TRUE(moved && Scheduler::GetThis() == &there);
  });
}

TEST(OwnStack, CancelEndsItsWait) {
  inFiber([] {
    const Pair pair = unixPair();
    const auto waits = std::make_shared<Fiber>([&pair] {
      inCoroutine([&pair] {
        char byte;
        EXPECT_EQ(::read(pair.a, &byte, 1), -1);
        EXPECT_EQ(errno, ECANCELED);
      });
    });
    IOManager::GetThis()->schedule(waits);
    Fiber::YieldToReady();
    waits->cancel();
    waits->join();
  });
}

TEST(OwnStack, ForkedChildGoesOnThere) {
  inFiber([] {
    inCoroutine([] {
      const pid_t child = startChild([] { return ::usleep(1000) == 0 && Fiber::GetThis() != nullptr ? 7 : 1; });
      int status = 0;
      EXPECT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
    });
  });
}

// ---- Signal handlers that interrupt a coroutine ------------------------------------------------------------------------------

/// Installs a handler of SIGUSR1 for a scope.
class Handler {
 public:
  explicit Handler(void (*handler)(int), int flags = 0) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    ::sigaction(SIGUSR1, &action, &m_before);
  }
  ~Handler() { ::sigaction(SIGUSR1, &m_before, nullptr); }
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;

 private:
  struct sigaction m_before {};
};

int g_ran;
sigjmp_buf g_place;
Coroutine* g_second;

/// Runs `body` in a coroutine of a fiber beside another fiber, which runs once: g_ran is 1 then.
void besideAnother(const std::function<void(Coroutine&)>& body) {
  g_ran = 0;
  inFiber([&body] {
    IOManager::GetThis()->schedule([] { ++g_ran; });
    Coroutine coroutine(body);
    while (!coroutine.ended()) coroutine.resume();
  });
  EXPECT_EQ(g_ran, 1);
}

// Cause: a handler on another stack than the fiber's had no scope. It is not suspended, and what it has interrupted is, afterwards.
TEST(OwnStack, HandlerThereIsNotSuspended) {
  const Handler handler([](int) {
    EXPECT_EQ(::usleep(1000), 0);
    EXPECT_EQ(g_ran, 0);
  });
  besideAnother([](Coroutine&) {
    ::raise(SIGUSR1);
    EXPECT_EQ(g_ran, 0);
    EXPECT_EQ(::usleep(1000), 0);
    EXPECT_EQ(g_ran, 1);
  });
}

TEST(OwnStack, HandlerThereMayJumpOutOfIt) {
  const Handler handler([](int) { siglongjmp(g_place, 1); });
  besideAnother([](Coroutine&) {
    if (sigsetjmp(g_place, 1) == 0) ::raise(SIGUSR1);
    EXPECT_EQ(::usleep(1000), 0);
    EXPECT_EQ(g_ran, 1);
  });
}

TEST(OwnStack, HandlerThereIsStillOneAfterAJumpInsideIt) {
  const Handler handler([](int) {
    if (sigsetjmp(g_place, 1) == 0) siglongjmp(g_place, 1);
    EXPECT_EQ(::usleep(1000), 0);
    EXPECT_EQ(g_ran, 0);
  });
  besideAnother([](Coroutine&) { ::raise(SIGUSR1); });
}

// What the handler of a preemptive scheduler of coroutines does. The handlers do not end in the order in which they began.
TEST(OwnStack, HandlersMaySwitchToOtherCoroutines) {
  static Coroutine* first;
  static bool in_second;
  in_second = false;
  const Handler handler([](int) { (in_second ? g_second : first)->yield(); }, SA_NODEFER);
  besideAnother([](Coroutine&) {
    Coroutine second([](Coroutine&) {
      in_second = true;
      ::raise(SIGUSR1);
      EXPECT_EQ(::usleep(1000), 0);
      EXPECT_EQ(g_ran, 1);
    });
    Coroutine inner([](Coroutine& self) {
      first = &self;
      ::raise(SIGUSR1);
    });
    g_second = &second;
    inner.resume();
    second.resume();  // both are in their handlers
    inner.resume();   // the first handler ends before the second
    EXPECT_TRUE(inner.ended());
    EXPECT_EQ(g_ran, 0);
    second.resume();
    EXPECT_TRUE(second.ended());
  });
}

}  // namespace
}  // namespace sylar::test
