// What a user may get wrong: refused with an error, never a crash, and nothing is left behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <stdexcept>

#include "sylar/io/fd_table.h"
#include "sylar/iomanager.h"
#include "tests/io/descriptors.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar::test {
namespace {

constexpr IOManager::Event kEvents[] = {IOManager::READ, IOManager::WRITE};
/// No descriptor has such a number: negative, beyond every limit, just not open.
constexpr int kNoDescriptors[] = {-1, INT_MIN, -4096, 1 << 24, (1 << 24) - 1, INT_MAX, 900};

// CD-I4, CD-U3
TEST(BadInput, NumbersThatNoDescriptorHasAreRefusedEverywhere) {
  const LeakCheck leaks;
  IOManager iom(1, false, "bad");
  const auto tryAll = [&iom] {
    for (const int fd : kNoDescriptors) {
      SCOPED_TRACE(fd);
      for (const IOManager::Event event : kEvents) {
        errno = 0;
        EXPECT_EQ(iom.addEvent(fd, event, [] { ADD_FAILURE(); }), -1);
        EXPECT_EQ(errno, EBADF);
        EXPECT_FALSE(iom.delEvent(fd, event));
        EXPECT_FALSE(iom.cancelEvent(fd, event));
      }
      EXPECT_FALSE(iom.cancelAll(fd));
      EXPECT_EQ(FdTable::close(fd, [] { return -3; }), -3);
    }
  };
  tryAll();
  Gate done;
  iom.schedule([&] {
    tryAll();
    done.open();
  });
  EXPECT_TRUE(done.wait());
  iom.stop();
}

// CD-I4: no callback and no fiber that could be scheduled instead; a null function is no callback.
TEST(BadInput, NoCallbackOutsideAFiberIsRefused) {
  const LeakCheck leaks;
  const Ends pipe = makePipe();
  IOManager iom(1, false, "bad");
  errno = 0;
  EXPECT_EQ(iom.addEvent(pipe[0], IOManager::READ), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(iom.addEvent(pipe[0], IOManager::READ, std::function<void()>()), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_FALSE(iom.cancelAll(pipe[0]));
}

TEST(BadInput, EventsThatAreNotOneDirectionAreRefused) {
  const LeakCheck leaks;
  const Ends pipe = makePipe();
  IOManager iom(1, false, "bad");
  for (const int value : {0, 2, 3, 5, 7}) {
    SCOPED_TRACE(value);
    const auto event = static_cast<IOManager::Event>(value);
    errno = 0;
    EXPECT_EQ(iom.addEvent(pipe[0], event, [] { ADD_FAILURE(); }), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_FALSE(iom.delEvent(pipe[0], event));
    EXPECT_FALSE(iom.cancelEvent(pipe[0], event));
  }
}

TEST(BadInput, AfterStopNothingIsTakenAndNothingIsFound) {
  const LeakCheck leaks;
  const Ends pipe = makePipe();
  IOManager iom(2, false, "bad");
  iom.stop();
  for (const IOManager::Event event : kEvents) {
    errno = 0;
    EXPECT_EQ(iom.addEvent(pipe[event == IOManager::READ ? 0 : 1], event, [] { ADD_FAILURE(); }), -1);
    EXPECT_EQ(errno, ECANCELED);
    EXPECT_FALSE(iom.delEvent(pipe[0], event));
    EXPECT_FALSE(iom.cancelEvent(pipe[0], event));
  }
  EXPECT_FALSE(iom.cancelAll(pipe[0]));
  iom.stop();
}

TEST(BadInput, TakingBackTwiceFindsNothing) {
  const LeakCheck leaks;
  const Ends pipe = makePipe();
  IOManager iom(1, false, "bad");
  ASSERT_EQ(iom.addEvent(pipe[0], IOManager::READ, [] { ADD_FAILURE(); }), 0);
  EXPECT_TRUE(iom.delEvent(pipe[0], IOManager::READ));
  EXPECT_FALSE(iom.delEvent(pipe[0], IOManager::READ));
  EXPECT_FALSE(iom.delEvent(pipe[0], IOManager::WRITE));
}

// A number that was closed without being told: addEvent asks the kernel.
TEST(BadInput, AClosedDescriptorIsRefused) {
  const LeakCheck leaks;
  const Ends pipe = makePipe();
  const int closed = ::fcntl(pipe[0], F_DUPFD_CLOEXEC, 500);  // a number that nobody gets: sanitizers' runtimes take low ones
  IOManager iom(1, false, "bad");
  ASSERT_EQ(iom.addEvent(closed, IOManager::READ, [] { ADD_FAILURE(); }), 0);
  EXPECT_TRUE(iom.delEvent(closed, IOManager::READ));
  ::close(closed);
  errno = 0;
  EXPECT_EQ(iom.addEvent(closed, IOManager::READ, [] { ADD_FAILURE(); }), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(BadInput, ACallbackThatThrowsHarmsNobody) {
  const LeakCheck leaks;
  const Ends pipe = makePipe();
  std::atomic<int> ran{0};
  IOManager iom(1, false, "bad");
  pipe.put(1);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(iom.addEvent(pipe[0], IOManager::READ,
                           [&] {
                             ran.fetch_add(1);
                             throw std::runtime_error("of a callback");
                           }),
              0);
  }
  iom.stop();
  EXPECT_EQ(ran.load(), 2);
}

}  // namespace
}  // namespace sylar::test
