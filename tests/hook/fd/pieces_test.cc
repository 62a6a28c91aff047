// A call that takes several attempts: the first is the user's own; every later one is for the number it began with, or for none.
#include "sylar/hook/core/iovec_cursor.h"
#include "sylar/hook/core/wait_loop.h"
#include "tests/hook/support.h"

namespace sylar::test {
namespace {

/// Another socket of the user's behind the number, at the worst moment: in the midst of an attempt.
struct Swap {
  long operator()() const {
    EXPECT_EQ(::dup2(other, fd), fd);
    return 5;
  }
  int other, fd;
};

long never() {
  ADD_FAILURE() << "an attempt on a number that has changed hands";
  return 0;
}

// FM-14. Cause: an attempt that gave something without a wait left the next one without a pin.
TEST(LaterPieces, DoNotTouchANewOwner) {
  inFiber([] {
    const Pair pair = unixPair();
    const Pair other = unixPair();
    IoCall call(pair.a, Direction::kWrite);
    EXPECT_EQ(call.run(Swap{other.a, pair.a}), 5);
    EXPECT_EQ(call.run(never), -EBADF);
  });
}

TEST(LaterPieces, DoNotTouchANewOwnerAfterAnAttemptInRegisters) {
  inFiber([] {
    const Pair pair = unixPair();
    const Pair other = unixPair();
    HookedFd here(pair.a);
    const AttemptResult first = here.attemptFirst(Direction::kWrite, Swap{other.a, pair.a});
    IoCall call(here, Direction::kWrite);
    EXPECT_EQ(call.waitAndRetry(first, never), 5);
    EXPECT_EQ(call.run(never), -EBADF);
  });
}

// write(2): at most 0x7ffff000 bytes.
TEST(LaterPieces, EndAtWhatTheKernelTransfersAtMost) {
  char bytes[8];
  const iovec parts[] = {{bytes, 3}, {bytes + 3, 3}, {bytes + 6, 2}};
  IovecCursor rest(parts, 3, 5);
  iovec some[2];
  rest.skip(1);
  ASSERT_EQ(rest.fill(some), 2u);
  EXPECT_EQ(some[0].iov_base, bytes + 1);
  EXPECT_EQ(some[0].iov_len, 2u);
  EXPECT_EQ(some[1].iov_base, bytes + 3);
  EXPECT_EQ(some[1].iov_len, 2u);
  rest.skip(3);
  ASSERT_EQ(rest.fill(some), 1u);
  EXPECT_EQ(some[0].iov_base, bytes + 4);
  EXPECT_EQ(some[0].iov_len, 1u);
  EXPECT_FALSE(rest.empty());
  rest.skip(1);
  EXPECT_TRUE(rest.empty());
}

TEST(LaterPieces, OfTheSameNumberGoOn) {
  inFiber([] {
    const Pair pair = unixPair();
    IoCall call(pair.a, Direction::kWrite);
    for (long i = 0; i < 3; ++i) EXPECT_EQ(call.run([i] { return i; }), i);
  });
}

}  // namespace
}  // namespace sylar::test
