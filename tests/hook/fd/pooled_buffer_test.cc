// A fiber that waits for bytes of a TCP connection holds no memory for them.
#include "sylar/hook_stats.h"
#include "tests/hook/fd/counted_buffer.h"
#include "tests/hook/support.h"

namespace sylar::test {
namespace {

TEST(PooledBuffer, IsTakenForTheBytesAndKept) {
  inFiber([] {
    const Pair pair = tcpPair();
    CountedBuffer buffer;
    ASSERT_EQ(::write(pair.b, "hello", 5), 5);
    untilPolled();
    ASSERT_EQ(receiveIntoPool(pair.a, buffer, 0), 5);
    EXPECT_TRUE(buffer.held);
    EXPECT_EQ(buffer.bytes(5), "hello");
  });
}

TEST(PooledBuffer, IsNotHeldDuringAWait) {
  inFiber([] {
    const Pair pair = tcpPair();
    for (int round = 0; round < 3; ++round) {
      CountedBuffer buffer;
      whenParked([&] {
        EXPECT_FALSE(buffer.held);
        EXPECT_EQ(buffer.taken, round == 0 ? 1 : 0);  // a read has proved the socket empty
        EXPECT_EQ(::write(pair.b, "ab", 2), 2);
      });
      EXPECT_EQ(receiveIntoPool(pair.a, buffer, 0), 2);
      EXPECT_TRUE(buffer.held);
      EXPECT_EQ(buffer.bytes(2), "ab");
    }
  });
}

TEST(PooledBuffer, IsGivenBackIfNothingComes) {
  inFiber([] {
    CountedBuffer buffer;
    const Pair pair = tcpPair();
    setTimeout(hookedCalls(), pair.a, SO_RCVTIMEO, 1000);
    EXPECT_EQ(receiveIntoPool(pair.a, buffer, 0), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_FALSE(buffer.held);
    EXPECT_EQ(receiveIntoPool(pair.a, buffer, MSG_DONTWAIT), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_FALSE(buffer.held);
    ASSERT_EQ(::shutdown(pair.b, SHUT_WR), 0);
    EXPECT_EQ(receiveIntoPool(pair.a, buffer, 0), 0);
    EXPECT_FALSE(buffer.held);
    EXPECT_EQ(receiveIntoPool(-1, buffer, 0), -1);
    EXPECT_EQ(errno, EBADF);
    EXPECT_FALSE(buffer.held);
  });
}

TEST(PooledBuffer, WithoutMemoryTheBytesStayInTheKernel) {
  inFiber([] {
    const Pair pair = tcpPair();
    CountedBuffer buffer;
    ASSERT_EQ(::write(pair.b, "x", 1), 1);
    untilPolled();
    buffer.refuses = true;
    EXPECT_EQ(receiveIntoPool(pair.a, buffer, 0), -1);
    EXPECT_EQ(errno, ENOMEM);
    buffer.refuses = false;
    EXPECT_EQ(receiveIntoPool(pair.a, buffer, 0), 1);
  });
}

TEST(PooledBuffer, WorksForOtherDescriptorsAndOnAThread) {
  CountedBuffer of_thread;
  const Pair on_thread = unixPair();
  ASSERT_EQ(::write(on_thread.b, "x", 1), 1);
  EXPECT_EQ(receiveIntoPool(on_thread.a, of_thread, 0), 1);
  EXPECT_TRUE(of_thread.held);
  inFiber([] {
    const Pair pair = unixPair();
    CountedBuffer buffer;
    whenParked([&] {
      EXPECT_FALSE(buffer.held);
      EXPECT_EQ(::write(pair.b, "x", 1), 1);
    });
    EXPECT_EQ(receiveIntoPool(pair.a, buffer, 0), 1);
    EXPECT_TRUE(buffer.held);
    const Pair messages = unixPair(SOCK_DGRAM);
    CountedBuffer early;
    whenParked([&] { EXPECT_EQ(::write(messages.b, "x", 1), 1); });
    EXPECT_EQ(receiveIntoPool(messages.a, early, 0), 1);
    EXPECT_TRUE(early.held);
  });
}

uint64_t receives() {
  for (const HookStats& one : hookStats()) {
    if (std::string_view(one.name) == "recv") return one.calls;
  }
  return 0;
}

TEST(PooledBuffer, CountsAsOneCall) {
  inFiber([] {
    const Pair tcp = tcpPair(), messages = unixPair(SOCK_DGRAM);
    for (const Pair* pair : {&tcp, &messages}) {
      CountedBuffer buffer;
      ASSERT_EQ(::write(pair->b, "x", 1), 1);
      untilPolled();
      const uint64_t before = receives();
      EXPECT_EQ(receiveIntoPool(pair->a, buffer, 0), 1);
      EXPECT_EQ(receives() - before, 1u);
    }
  });
}

}  // namespace
}  // namespace sylar::test
