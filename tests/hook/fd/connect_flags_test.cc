// What another thread does to a descriptor's flags while a fiber connects it stays done.
#include "sylar/hook/core/attempt.h"
#include "tests/hook/support.h"

namespace sylar {
namespace {

/// Runs once, in the next connect(2) of the library, on another thread.
std::function<void()> g_meanwhile;

}  // namespace

long attempt::plainConnect(int fd, const sockaddr* address, socklen_t size) {
  if (g_meanwhile) std::thread(std::exchange(g_meanwhile, nullptr)).join();
  return sys::call(SYS_connect, fd, address, size);
}

namespace test {
namespace {

/// The flags after a connect of a blocking socket during which another thread set `flag`.
int flagsAfterConnect(int flag) {
  int flags = 0;
  const Pair ends({boundSocket(hookedCalls(), SOCK_STREAM), ::socket(AF_INET, SOCK_STREAM, 0)});
  g_meanwhile = [fd = ends.b, flag] { EXPECT_EQ(::fcntl(fd, F_SETFL, flag), 0); };
  inFiber([&] {
    const int result = connectTo(hookedCalls(), ends.b, addressOf(ends.a));
    EXPECT_TRUE(result == 0 || errno == EINPROGRESS) << ::strerror(errno);
  });
  EXPECT_FALSE(g_meanwhile);
  flags = ::fcntl(ends.b, F_GETFL);
  EXPECT_NE(flags, -1);
  return flags;
}

TEST(Connect, KeepsAnONonblockThatIsSetMeanwhile) { EXPECT_NE(flagsAfterConnect(O_NONBLOCK) & O_NONBLOCK, 0); }

TEST(Connect, KeepsOtherFlagsThatAreSetMeanwhile) {
  const int flags = flagsAfterConnect(O_APPEND);
  EXPECT_NE(flags & O_APPEND, 0);
}

TEST(Connect, LeavesABlockingSocketBlocking) { EXPECT_EQ(flagsAfterConnect(0) & O_NONBLOCK, 0); }

}  // namespace
}  // namespace test
}  // namespace sylar
