#include "sylar/peer_scope.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "tests/net/support.h"

namespace sylar::test {
namespace {

TEST(PeerScope, EndsWaitsWhenThePeerHasGone) {
  inFiber([] {
    const Ends ends = connectedEnds();
    ASSERT_EQ(ends.client->send("x", 1), 1) << "what has come and is not read does not matter";
    const PeerScope scope(*ends.server);
    Fiber::YieldToReady();
    EXPECT_FALSE(scope.hasGone());
    ends.client->close();
    EXPECT_EQ(::usleep(3'600'000'000u), -1);
    EXPECT_TRUE(scope.hasGone());
    EXPECT_TRUE(this_fiber::cancelled());
  });
}

// The scope is for the connection. Another may have its number before the watcher first runs.
TEST(PeerScope, WatchesNoLaterOwnerOfTheNumber) {
  inFiber([] {
    const Ends ends = connectedEnds();
    const int number = ends.server->getSocket();
    const PeerScope scope(*ends.server);
    ends.server->close();
    int next[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, next), 0);
    ASSERT_EQ(::dup2(next[0], number), number);
    EXPECT_EQ(::usleep(3'600'000'000u), -1);
    EXPECT_TRUE(scope.hasGone()) << "the socket was closed here";
    ::close(number);
    ::close(next[0]);
    ::close(next[1]);
  });
}

TEST(PeerScope, IsOfNoFurtherUseAtItsEnd) {
  inFiber([] {
    const Ends ends = connectedEnds();
    {
      const PeerScope scope(*ends.server);
      Fiber::YieldToReady();
    }
    ends.client->close();
    EXPECT_EQ(::usleep(1), 0);
    EXPECT_FALSE(this_fiber::cancelled());
  });
}

}  // namespace
}  // namespace sylar::test
