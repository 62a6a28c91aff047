// For tests of closers: waits that must end with EBADF, and somebody who takes every number that becomes free.
#pragma once

#include <functional>

#include "tests/hook/support.h"

namespace sylar::test {

/// Grabs every number that becomes free, at once, and checks that nobody else reads from or writes to it. It is at work when the
/// constructor returns.
class NewOwner {
 public:
  NewOwner() : m_thread([this] { run(); }) { m_rounds.wait(0); }
  ~NewOwner() { finish(); }
  NewOwner(const NewOwner&) = delete;
  NewOwner& operator=(const NewOwner&) = delete;

  /// Rounds in which everything was whole. The first that was not ends the test.
  int finish() {
    m_done.store(true);
    if (m_thread.joinable()) m_thread.join();
    return m_rounds;
  }

 private:
  void run() {
    for (int i = 0; !m_done.load(std::memory_order_relaxed) && !testing::Test::HasFailure(); ++i) {
      const Ends ends = i % 2 == 0 ? makeUnix(hookedCalls(), SOCK_STREAM) : makePipe(hookedCalls());
      const std::vector<char> sent = streamBytes(64);
      // In pieces: a thief would find something at any moment.
      for (size_t at = 0; at < sent.size(); at += 16) ASSERT_EQ(::write(ends[1], sent.data() + at, 16), 16);
      std::vector<char> got(128);
      ASSERT_EQ(::read(ends[0], got.data(), got.size()), ssize_t(sent.size()));  // neither less nor more
      got.resize(sent.size());
      ASSERT_EQ(got, sent);
      ASSERT_EQ(::close(ends[0]), 0);
      ASSERT_EQ(::close(ends[1]), 0);
      ++m_rounds;
      m_rounds.notify_one();
    }
  }

  std::atomic<bool> m_done{false};
  std::atomic<int> m_rounds{0};
  std::thread m_thread;
};

/// Counts the waits that ended as they must.
struct Ended {
  void check(ssize_t result) {
    const int error = errno;
    EXPECT_EQ(result, -1);
    EXPECT_EQ(error, EBADF) << ::strerror(error);
    count.fetch_add(1);
  }
  std::atomic<int> count{0};
};

/// A read that waits on `fd` forever; what it gave.
inline ssize_t readOn(int fd) {
  char buffer[64];
  return ::read(fd, buffer, sizeof buffer);
}

/// A waiter on worker `thread`, and `parked` called there as soon as it waits.
inline void waitThere(IOManager& iom, int thread, std::function<void()> wait, std::function<void()> parked) {
  iom.schedule(
      [wait = std::move(wait), parked = std::move(parked), thread, &iom] {
        iom.schedule(parked, thread);  // the worker begins it when this fiber leaves the thread
        wait();
      },
      thread);
}

}  // namespace sylar::test
