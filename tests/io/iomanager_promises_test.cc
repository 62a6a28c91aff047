// Promises of the compatibility page that no other test of this module is about.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "sylar/io/fd_table.h"
#include "sylar/iomanager.h"
#include "sylar/sched/park.h"
#include "tests/io/descriptors.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::Gate;

class PromisesTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, PromisesTest, test::kWorkerCounts);

// CD-I5: one direction is taken back while the other fires; the event that comes then is nobody's.
TEST_P(PromisesTest, ADirectionMayBeTakenBackWhileItFires) {
  IOManager iom(workers(), false, "mask");
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  std::atomic<int> fired{0};
  int armed = 0;
  int taken_back = 0;
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(iom.addEvent(fds[0], IOManager::READ, [&fired] { ++fired; }), 0);
    ASSERT_EQ(iom.addEvent(fds[0], IOManager::WRITE, [&fired] { ++fired; }), 0);
    armed += 2;
    ASSERT_EQ(write(fds[1], "x", 1), 1);
    taken_back += iom.delEvent(fds[0], IOManager::READ) ? 1 : 0;
    taken_back += iom.delEvent(fds[0], IOManager::WRITE) ? 1 : 0;
    char byte;
    ASSERT_EQ(read(fds[0], &byte, 1), 1);
  }
  iom.stop();
  EXPECT_EQ(fired + taken_back, armed);
  close(fds[0]);
  close(fds[1]);
}

// RG-18: stop(deadline) does not wait for callbacks. One that an engine is about to run when the last worker falls asleep is
// dropped, like those that still wait.
TEST(Promises, ACallbackThatComesWithTheEndLeavesNothing) {
  const test::LeakCheck leaks;
  const test::Ends sockets = test::makeSockets();
  const auto captured = std::make_shared<int>(0);
  Gate ready;
  Gate locked;
  std::thread holder;
  {
    IOManager iom(2, false, "end");
    SchedulerCore& core = coreOf(iom);
    Worker& first = *core.workers()[0];
    const auto sleeps = [&first] {
      WorkerStats stats;
      first.addStats(stats);
      return stats.sleeps;
    };
    // The stopping thread is in its last wait, and wakes nobody from then on, if a wake reaches it.
    const auto stops = [&core] { return ::syscall(SYS_futex, &core.idle().doneWord(), FUTEX_WAKE_PRIVATE, 1) == 1; };
    const auto lockUntilTheEnd = [&] {
      const auto hold = [&](const FdWaiter<EpollEngine>&) {
        locked.open();
        EXPECT_TRUE(test::eventually([&] { return core.idle().done(); }));
        return false;
      };
      FdTable::find(sockets[0])->dequeueIf(Direction::kRead, hold, [](FdWaiter<EpollEngine>&) {});
    };
    // The first worker gets an event, and then waits for the lock.
    iom.schedule(
        [&] {
          ready.open();
          EXPECT_TRUE(test::eventually(stops));
          EXPECT_EQ(iom.addEvent(sockets[0], IOManager::READ, [] { FAIL(); }), 0);
          EXPECT_EQ(iom.addEvent(sockets[0], IOManager::WRITE, [captured] { FAIL(); }), 0);
          holder = std::thread(lockUntilTheEnd);
          EXPECT_TRUE(locked.wait());
        },
        first.threadId());
    // The second one is the last to fall asleep.
    iom.schedule(
        [&] {
          EXPECT_TRUE(ready.wait());
          const uint64_t before = sleeps();
          ready.open();
          EXPECT_TRUE(test::eventually([&] { return sleeps() > before; }));
        },
        core.workers()[1]->threadId());
    ASSERT_TRUE(ready.wait(2));
    EXPECT_TRUE(iom.stop(Deadline::after(test::kPatience)).clean);
    holder.join();
  }
  EXPECT_EQ(captured.use_count(), 1);
}

// CD-I7: nothing of the library's survives an exec, nothing of it blocks.
TEST_P(PromisesTest, TheLibrarysDescriptorsAreCloseOnExec) {
  std::filesystem::path folder = "/proc/self/fd";
  const auto descriptors = [&] {
    std::set<int> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) found.insert(std::stoi(entry.path().filename()));
    return found;
  };
  const std::set<int> before = descriptors();
  IOManager iom(workers(), false, "exec");
  int looked = 0;
  for (const int fd : descriptors()) {
    if (before.count(fd) != 0 || fcntl(fd, F_GETFD) == -1) continue;  // the second: the one that looked
    ++looked;
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << fd;
    std::error_code gone;  // a worker that begins moves the descriptor of its ring
    const std::string what = std::filesystem::read_symlink(folder / std::to_string(fd), gone);
    if (gone || what.find("eventpoll") != what.npos || what.find("io_uring") != what.npos) continue;  // they have no such flag
    EXPECT_NE(fcntl(fd, F_GETFL) & O_NONBLOCK, 0) << what;
  }
  EXPECT_GT(looked, 0);
}

// CD-I8, TD-5: a deadline beyond 2^31 ms keeps nobody else.
TEST_P(PromisesTest, ADistantDeadlineKeepsNobody) {
  IOManager iom(workers(), false, "far");
  const Timer::ptr month = iom.addTimer(uint64_t{30} * 24 * 3600 * 1000, [] { FAIL(); });
  const Timer::ptr never = iom.addTimer(~uint64_t{0}, [] { FAIL(); });
  const auto sleeper = std::make_shared<Fiber>([] { EXPECT_EQ(parkUntil(Deadline::after(30 * 24h)), WakeReason::kCanceled); });
  iom.schedule(sleeper);
  Gate fired;
  iom.addTimer(1, [&] { fired.open(); });
  EXPECT_TRUE(fired.wait());
  iom.schedule([&] { fired.open(); });
  EXPECT_TRUE(fired.wait(2));
  EXPECT_TRUE(month->cancel());
  EXPECT_TRUE(never->cancel());
  sleeper->cancel();
}

// CD-I4: from a thread without a scheduler, for an IOManager that is not the thread's.
TEST_P(PromisesTest, APlainThreadMayRegister) {
  IOManager iom(workers(), false, "plain");
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  Gate fired;
  std::thread([&] {
    EXPECT_EQ(IOManager::GetThis(), nullptr);
    EXPECT_EQ(iom.addEvent(fds[0], IOManager::WRITE,
                           [&] {
                             EXPECT_EQ(IOManager::GetThis(), &iom);
                             fired.open();
                           }),
              0);
    EXPECT_EQ(iom.addEvent(fds[0], IOManager::READ), -1) << "there is no fiber to go on with";
    EXPECT_EQ(errno, EINVAL);
  }).join();
  EXPECT_TRUE(fired.wait());
  close(fds[0]);
  close(fds[1]);
}

// A fiber that was started by hand on a plain thread has no worker to go on with either.
TEST(Promises, AddEventWithoutACallbackIsForFibersOfWorkers) {
  IOManager iom(1, false, "plain");
  const auto fiber = std::make_shared<Fiber>([&] {
    EXPECT_EQ(iom.addEvent(0, IOManager::READ), -1);
    EXPECT_EQ(errno, EINVAL);
  });
  fiber->resume();
  EXPECT_EQ(fiber->getState(), Fiber::TERM);
}

}  // namespace
}  // namespace sylar
