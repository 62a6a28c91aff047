// accept on listeners that others know, too: another number, another thread, another process. The worker never blocks, whoever
// gets the connection.
#include <sys/wait.h>

#include "sylar/sync/blocking_pool.h"
#include "tests/hook/support.h"

namespace sylar::test {
namespace {

/// Connects, sends `byte`, and waits until it was taken.
void callOnce(const sockaddr_in& address, char byte) {
  const int fd = libcCalls().socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(connectTo(libcCalls(), fd, address), 0);
  ASSERT_EQ(libcCalls().write(fd, &byte, 1), 1);
  char answer = 0;
  ASSERT_EQ(libcCalls().read(fd, &answer, 1), 1);
  EXPECT_EQ(answer, byte);
  libcCalls().close(fd);
}

/// Serves connections until one says so.
void serve(const Calls& calls, int listener, std::atomic<int>& served) {
  for (char byte = 0; byte != 'q';) {
    const int fd = calls.accept(listener, nullptr, nullptr);
    ASSERT_GE(fd, 0) << ::strerror(errno);
    ASSERT_EQ(calls.read(fd, &byte, 1), 1);
    served.fetch_add(1);
    ASSERT_EQ(calls.write(fd, &byte, 1), 1);
    calls.close(fd);
  }
}

// Fibers and a plain thread compete; the only worker's heart goes on beating whoever is faster.
TEST(SharedListener, FibersAndAThreadShareTheConnections) {
  constexpr int kFibers = 4;
  constexpr int kCalls = 500;
  const LeakCheck leaks;
  const Pair listeners({boundSocket(hookedCalls(), SOCK_STREAM), -1});
  const Pair copies({::dup(listeners.a), -1});
  const sockaddr_in address = addressOf(listeners.a);
  std::atomic<int> by_fibers{0};
  std::atomic<int> by_thread{0};
  std::atomic<int> beats{0};
  std::atomic<int> left{kFibers};
  {
    IOManager iom(1, false, "accept");
    for (int i = 0; i < kFibers; ++i) {
      iom.schedule([&, fd = i % 2 == 0 ? listeners.a : copies.a] {
        serve(hookedCalls(), fd, by_fibers);
        left.fetch_sub(1);
      });
    }
    iom.schedule([&] {
      while (left.load() > 0) {
        beats.fetch_add(1);
        ::usleep(100);
      }
    });
    std::thread rival([&] { serve(libcCalls(), copies.a, by_thread); });
    for (int i = 0; i < kCalls; ++i) {
      const int before = beats.load();
      callOnce(address, 'c');
      if (i % 50 == 0) {
        while (beats.load() == before) std::this_thread::yield();  // forever, if the worker is blocked
      }
    }
    for (int i = 0; i < kFibers + 1; ++i) callOnce(address, 'q');
    rival.join();
  }
  EXPECT_EQ(by_fibers.load() + by_thread.load(), kCalls + kFibers + 1);
  EXPECT_GT(by_fibers.load(), 0);
  BlockingPool::process().endAll();
}

// The same between two processes that have the listener since a fork.
TEST(SharedListener, ParentAndChildShareTheConnections) {
  const LeakCheck leaks;
  const Pair listeners({boundSocket(hookedCalls(), SOCK_STREAM), -1});
  const sockaddr_in address = addressOf(listeners.a);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(300);
    std::atomic<int> served{0};
    serve(libcCalls(), listeners.a, served);
    ::_exit(testing::Test::HasFailure());
  }
  std::atomic<int> served{0};
  {
    IOManager iom(1, false, "accept");
    for (int i = 0; i < 2; ++i) iom.schedule([&] { serve(hookedCalls(), listeners.a, served); });
    for (int i = 0; i < 200; ++i) callOnce(address, 'c');
    for (int i = 0; i < 3; ++i) callOnce(address, 'q');
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_GE(served.load(), 2);
  BlockingPool::process().endAll();
}

// What does not listen fails as it does without us; a non-blocking listener never waits; a timeout holds.
TEST(SharedListener, GivesTheKernelsErrors) {
  const LeakCheck leaks;
  inFiber([] {
    const Pair stream({::socket(AF_INET, SOCK_STREAM, 0), -1});
    const Pair copy({::dup(stream.a), -1});
    EXPECT_EQ(::accept(stream.a, nullptr, nullptr), -1);
    EXPECT_EQ(errno, EINVAL);
    const Pair messages({::socket(AF_INET, SOCK_DGRAM, 0), -1});
    const Pair copies({::dup(messages.a), -1});
    EXPECT_EQ(::accept(copies.a, nullptr, nullptr), -1);
    EXPECT_EQ(errno, EOPNOTSUPP);
    const Pair listener({boundSocket(hookedCalls(), SOCK_STREAM), -1});
    const Pair other({::dup(listener.a), -1});
    setTimeout(hookedCalls(), listener.a, SO_RCVTIMEO, 2000);
    EXPECT_EQ(::accept(other.a, nullptr, nullptr), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(::fcntl(listener.a, F_SETFL, O_NONBLOCK), 0);
    EXPECT_EQ(::accept(other.a, nullptr, nullptr), -1);
    EXPECT_EQ(errno, EAGAIN);
  });
}

TEST(SharedListener, ACloseEndsTheWaits) {
  const LeakCheck leaks;
  inFiber([] {
    const int listener = boundSocket(hookedCalls(), SOCK_STREAM);
    const Pair copy({::dup(listener), -1});
    const auto waiter = std::make_shared<Fiber>([&] {
      EXPECT_EQ(::accept(listener, nullptr, nullptr), -1);
      EXPECT_EQ(errno, EBADF);
    });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    EXPECT_EQ(::close(listener), 0);
    waiter->join();
  });
}

}  // namespace
}  // namespace sylar::test
