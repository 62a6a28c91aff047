// poll against numbers that are closed, in any order of the two.
#include "sylar/io/fd_table.h"
#include "tests/hook/support.h"

namespace sylar::test {
namespace {

// FM-14: a poll that begins while the number is being closed comes after it. Cause: it reported the old one as closed.
TEST(PollDuringAClose, SeesWhatIsThereAfterIt) {
  const Pair old = unixPair();
  const Pair fresh = pipePair();
  ASSERT_EQ(::write(fresh.b, "x", 1), 1);
  std::atomic<bool> closing{false};
  std::atomic<bool> begun{false};
  std::thread closer([&] {
    FdTable::close(old.a, [&] {
      closing.store(true, std::memory_order_release);
      spinUntil(begun, true);
      return libcCalls().dup2(fresh.a, old.a);
    });
  });
  inFiber([&] {
    while (!closing.load(std::memory_order_acquire)) Fiber::YieldToReady();
    begun.store(true, std::memory_order_release);
    pollfd one{old.a, POLLIN, 0};
    EXPECT_EQ(::poll(&one, 1, -1), 1);
    EXPECT_EQ(one.revents, POLLIN);
  });
  closer.join();
}

// FM-13: one of several numbers is closed and opened again while the poll waits; it says so, whatever the new one does.
TEST(PollOfSeveral, ReportsTheOneThatWasClosed) {
  inFiber([] {
    Pair pair = unixPair();
    const Pair other = unixPair();
    const int number = pair.a;
    int result = 0;
    pollfd fds[2] = {{number, POLLIN, 0}, {other.a, POLLIN, 0}};
    const auto poller = std::make_shared<Fiber>([&] { result = ::poll(fds, 2, -1); });
    IOManager::GetThis()->schedule(poller);
    untilParked(*poller);
    pair.closeA();
    const Pair next = unixPair();
    EXPECT_EQ(next.a, number);
    EXPECT_EQ(::write(next.b, "x", 1), 1);  // not the poller's business
    poller->join();
    EXPECT_EQ(result, 1);
    EXPECT_EQ(fds[0].revents, POLLNVAL);
    EXPECT_EQ(fds[1].revents, 0);
  });
}

// FM-14: woken by one of them, it does not look at a number that has changed hands meanwhile.
TEST(PollOfSeveral, WokenByAnotherDoesNotTouchANewOwner) {
  inFiber([] {
    Pair pair = unixPair();
    const Pair other = unixPair();
    const int number = pair.a;
    int result = 0;
    pollfd fds[2] = {{other.a, POLLIN, 0}, {number, POLLIN, 0}};
    const auto poller = std::make_shared<Fiber>([&] { result = ::poll(fds, 2, -1); });
    IOManager::GetThis()->schedule(poller);
    untilParked(*poller);
    FdTable::at(other.a)->wakeAll(Direction::kRead);  // it will look again
    pair.closeA();
    const Pair next = unixPair();
    EXPECT_EQ(next.a, number);
    EXPECT_EQ(::write(next.b, "x", 1), 1);
    poller->join();
    EXPECT_EQ(result, 1);
    EXPECT_EQ(fds[0].revents, 0);
    EXPECT_EQ(fds[1].revents, POLLNVAL);
  });
}

// FM-17: closed behind our back, the kernel is asked.
TEST(PollOfSeveral, ANumberClosedBehindOurBackIsToldByTheKernel) {
  inFiber([] {
    const Pair pair = unixPair();
    const int gone = ::dup(pair.a);
    sys::call(SYS_close, gone);
    pollfd fds[2] = {{pair.a, POLLIN, 0}, {gone, POLLIN, 0}};
    EXPECT_EQ(::poll(fds, 2, -1), 1);
    EXPECT_EQ(fds[1].revents, POLLNVAL);
  });
}

// FM-25: more descriptors than it has room for without memory of its own.
TEST(PollOfSeveral, ThousandIncludingTheSameTwice) {
  inFiber([] {
    const Pair pair = unixPair();
    std::vector<pollfd> fds(1000, pollfd{pair.a, POLLIN | POLLPRI, 0});
    IOManager::GetThis()->schedule([&] { EXPECT_EQ(::write(pair.b, "x", 1), 1); });
    EXPECT_EQ(::poll(fds.data(), fds.size(), -1), 1000);
    for (const pollfd& one : fds) EXPECT_EQ(one.revents, POLLIN);
  });
}

}  // namespace
}  // namespace sylar::test
