// A wait for more than is there sleeps until more comes. What is there was reported once.
#include "sylar/io/fd_table.h"
#include "tests/hook/fd/kinds.h"

namespace sylar::test {
namespace {

constexpr uint64_t kPolls = 50;

/// `call` waits on `fd`; how many events come while its worker looks kPolls times, and then `more` ends the wait.
uint64_t eventsWhile(int fd, const std::function<void()>& call, const std::function<void()>& more) {
  const auto waiter = std::make_shared<Fiber>(call);
  IOManager::GetThis()->schedule(waiter);
  untilParked(*waiter);
  const Entry& entry = *FdTable::find(fd);
  const uint64_t before = entry.edges(Direction::kRead);
  untilPolled(kPolls);
  const uint64_t events = entry.edges(Direction::kRead) - before;
  more();
  waiter->join();
  return events;
}

// Cause: on a descriptor that others may know each wait asked the kernel to report what is there again.
TEST(AWaitForMoreThanIsThere, DoesNotSpinOnACopy) {
  inFiber([] {
    const Pair pair = tcpPair();
    const Pair copy({::dup(pair.a), -1});
    ASSERT_EQ(::write(pair.b, "12345", 5), 5);
    char buffer[10];
    const auto peek = [&] { EXPECT_EQ(::recv(copy.a, buffer, sizeof buffer, MSG_PEEK | MSG_WAITALL), 10); };
    EXPECT_LE(eventsWhile(copy.a, peek, [&] { EXPECT_EQ(::write(pair.b, "67890", 5), 5); }), 2u);
  });
}

TEST(AWaitForMoreThanIsThere, DoesNotSpinOnARawTerminal) {
  Owned owned;
  const Ends ends = makeTerminal(owned, true, 5, 250);
  inFiber([&] {
    ASSERT_EQ(::write(ends[1], "123", 3), 3);
    char buffer[5];
    const auto read = [&] { EXPECT_EQ(::read(ends[0], buffer, sizeof buffer), 5); };
    EXPECT_LE(eventsWhile(ends[0], read, [&] { EXPECT_EQ(::write(ends[1], "45", 2), 2); }), 2u);
  });
}

// What is there is not what the call waits for. Cause: each wait asked the kernel to report it again.
TEST(ASelectThatFindsNothing, DoesNotSpinOnACopy) {
  inFiber([] {
    Pair pair = unixPair();
    Pair copy({::dup(pair.a), -1});
    pair.closeB();  // which is no exception
    const auto select = [&] {
      fd_set exceptions;
      FD_ZERO(&exceptions);
      FD_SET(copy.a, &exceptions);
      EXPECT_EQ(::select(copy.a + 1, nullptr, nullptr, &exceptions, nullptr), -1);
    };
    EXPECT_LE(eventsWhile(copy.a, select, [&] { copy.closeA(); }), 2u);
  });
}

}  // namespace
}  // namespace sylar::test
