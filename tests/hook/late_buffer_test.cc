// A fiber that waits for bytes of a TCP connection holds no memory for them.
#include "sylar/hook/late_buffer.h"

#include "tests/hook/support.h"

namespace sylar::test {
namespace {

class CountedBuffer final : public LateBuffer {
 public:
  char* take() noexcept override {
    EXPECT_FALSE(held);
    if (refuses) return nullptr;
    held = true;
    ++taken;
    return m_bytes;
  }
  void giveBack() noexcept override {
    EXPECT_TRUE(held);
    held = false;
  }
  std::string_view bytes(ssize_t count) const { return {m_bytes, static_cast<size_t>(count)}; }

  bool held = false;
  bool refuses = false;
  int taken = 0;

 private:
  char m_bytes[kSize] = {};
};

TEST(LateBuffer, IsTakenForTheBytesAndKept) {
  inFiber([] {
    const Pair pair = tcpPair();
    CountedBuffer buffer;
    ASSERT_EQ(::write(pair.b, "hello", 5), 5);
    untilPolled();
    ASSERT_EQ(receiveLate(pair.a, buffer, 0), 5);
    EXPECT_TRUE(buffer.held);
    EXPECT_EQ(buffer.bytes(5), "hello");
  });
}

TEST(LateBuffer, IsNotHeldDuringAWait) {
  inFiber([] {
    const Pair pair = tcpPair();
    for (int round = 0; round < 3; ++round) {
      CountedBuffer buffer;
      whenParked([&] {
        EXPECT_FALSE(buffer.held);
        EXPECT_EQ(buffer.taken, round == 0 ? 1 : 0);  // a read has proved the socket empty
        EXPECT_EQ(::write(pair.b, "ab", 2), 2);
      });
      EXPECT_EQ(receiveLate(pair.a, buffer, 0), 2);
      EXPECT_TRUE(buffer.held);
      EXPECT_EQ(buffer.bytes(2), "ab");
    }
  });
}

TEST(LateBuffer, IsGivenBackIfNothingComes) {
  inFiber([] {
    CountedBuffer buffer;
    const Pair pair = tcpPair();
    setTimeout(hookedCalls(), pair.a, SO_RCVTIMEO, 1000);
    EXPECT_EQ(receiveLate(pair.a, buffer, 0), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_FALSE(buffer.held);
    EXPECT_EQ(receiveLate(pair.a, buffer, MSG_DONTWAIT), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_FALSE(buffer.held);
    ASSERT_EQ(::shutdown(pair.b, SHUT_WR), 0);
    EXPECT_EQ(receiveLate(pair.a, buffer, 0), 0);
    EXPECT_FALSE(buffer.held);
    EXPECT_EQ(receiveLate(-1, buffer, 0), -1);
    EXPECT_EQ(errno, EBADF);
    EXPECT_FALSE(buffer.held);
  });
}

TEST(LateBuffer, WithoutMemoryTheBytesStayInTheKernel) {
  inFiber([] {
    const Pair pair = tcpPair();
    CountedBuffer buffer;
    ASSERT_EQ(::write(pair.b, "x", 1), 1);
    untilPolled();
    buffer.refuses = true;
    EXPECT_EQ(receiveLate(pair.a, buffer, 0), -1);
    EXPECT_EQ(errno, ENOMEM);
    buffer.refuses = false;
    EXPECT_EQ(receiveLate(pair.a, buffer, 0), 1);
  });
}

TEST(LateBuffer, WorksForOtherDescriptorsAndOnAThread) {
  CountedBuffer of_thread;
  const Pair on_thread = unixPair();
  ASSERT_EQ(::write(on_thread.b, "x", 1), 1);
  EXPECT_EQ(receiveLate(on_thread.a, of_thread, 0), 1);
  EXPECT_TRUE(of_thread.held);
  inFiber([] {
    const Pair pair = unixPair();
    CountedBuffer buffer;
    whenParked([&] { EXPECT_EQ(::write(pair.b, "x", 1), 1); });
    EXPECT_EQ(receiveLate(pair.a, buffer, 0), 1);
    EXPECT_TRUE(buffer.held);
  });
}

}  // namespace
}  // namespace sylar::test
