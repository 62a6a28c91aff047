// A short read proves nothing: one test for each way in which there is more, or the end, behind it. None hangs.
#include "tests/hook/fd/kinds.h"

namespace sylar::test {
namespace {

/// Reads with room for more than there is.
std::string shortRead(int fd) {
  char buffer[256];
  const ssize_t n = ::read(fd, buffer, sizeof buffer);
  return n < 0 ? ::strerrorname_np(errno) : std::string(buffer, static_cast<size_t>(n));
}
std::string shortRecv(int fd, int flags) {
  char buffer[256];
  const ssize_t n = ::recv(fd, buffer, sizeof buffer, flags);
  return n < 0 ? ::strerrorname_np(errno) : std::string(buffer, static_cast<size_t>(n));
}

void writeAll(int fd, const std::string& text) { EXPECT_EQ(::write(fd, text.data(), text.size()), ssize_t(text.size())); }

// FM-06
TEST(ShortRead, DataAndEndTogetherOnTcp) {
  inFiber([] {
    Pair pair = tcpPair();
    whenParked([&] {
      writeAll(pair.b, "last");
      pair.closeB();
    });
    EXPECT_EQ(shortRead(pair.a), "last");
    EXPECT_EQ(shortRead(pair.a), "");
    EXPECT_EQ(shortRead(pair.a), "");
  });
}

// FM-11: the end of a pipe comes as a hang-up.
TEST(ShortRead, CloseBehindDataOnAPipe) {
  inFiber([] {
    Pair pair = pipePair();
    whenParked([&] {
      writeAll(pair.b, "last");
      pair.closeB();
    });
    EXPECT_EQ(shortRead(pair.a), "last");
    EXPECT_EQ(shortRead(pair.a), "");
  });
  inFiber([] {
    Pair pair = pipePair();
    whenParked([&] { writeAll(pair.b, "some"); });
    EXPECT_EQ(shortRead(pair.a), "some");
    whenParked([&] { pair.closeB(); });
    EXPECT_EQ(shortRead(pair.a), "");
  });
}

// FM-07: an urgent byte cuts a read, with more behind it.
TEST(ShortRead, OutOfBand) {
  inFiber([] {
    const Pair pair = tcpPair();
    whenParked([&] {
      EXPECT_EQ(::send(pair.b, "ab!", 3, MSG_OOB), 3);
      writeAll(pair.b, "cd");
    });
    EXPECT_EQ(shortRead(pair.a), "ab");
    EXPECT_EQ(shortRecv(pair.a, MSG_OOB), "!");
    EXPECT_EQ(shortRead(pair.a), "cd");
    EXPECT_EQ(shortRecv(pair.a, MSG_OOB), "EINVAL");  // taken: it does not wait for the next
    whenParked([&] { writeAll(pair.b, "next"); });
    EXPECT_EQ(shortRead(pair.a), "next");
  });
}

// FM-15: descriptors cut a read.
TEST(ShortRead, DescriptorsInTheStream) {
  inFiber([] {
    const Pair pair = unixPair();
    const Pair passenger = pipePair();
    whenParked([&] {
      for (const char* text : {"ab", "cd", "ef"}) {
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        iovec part{const_cast<char*>(text), 2};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* const rights = CMSG_FIRSTHDR(&message);
        *rights = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        std::memcpy(CMSG_DATA(rights), &passenger.a, sizeof(int));
        EXPECT_EQ(::sendmsg(pair.b, &message, 0), 2);
      }
    });
    for (const char* text : {"ab", "cd", "ef"}) EXPECT_EQ(shortRead(pair.a), text);
    whenParked([&] { writeAll(pair.b, "next"); });
    EXPECT_EQ(shortRead(pair.a), "next");
  });
}

// FM-07: a peek takes nothing.
TEST(ShortRead, Peek) {
  for (const bool tcp : {false, true}) {
    inFiber([=] {
      const Pair pair(tcp ? makeTcp(hookedCalls()) : makeUnix(hookedCalls(), SOCK_STREAM));
      whenParked([&] { writeAll(pair.b, "data"); });
      EXPECT_EQ(shortRecv(pair.a, MSG_PEEK), "data");
      EXPECT_EQ(shortRecv(pair.a, MSG_PEEK), "data");
      EXPECT_EQ(shortRead(pair.a), "data");
      whenParked([&] { writeAll(pair.b, "next"); });
      EXPECT_EQ(shortRecv(pair.a, MSG_PEEK), "next");
      EXPECT_EQ(shortRead(pair.a), "next");
    });
  }
}

/// Several messages wait; each read takes one.
void messages(const Pair& pair) {
  inFiber([&] {
    whenParked([&] {
      for (const char* text : {"one", "three", "five"}) writeAll(pair.b, text);
    });
    for (const char* text : {"one", "three", "five"}) EXPECT_EQ(shortRead(pair.a), text);
    whenParked([&] { writeAll(pair.b, "next"); });
    EXPECT_EQ(shortRead(pair.a), "next");
  });
}

// FM-07
TEST(ShortRead, Udp) { messages(udpPair()); }
TEST(ShortRead, UnixDatagram) { messages(unixPair(SOCK_DGRAM)); }
TEST(ShortRead, SeqPacket) { messages(unixPair(SOCK_SEQPACKET)); }

// FM-07: a pipe of packets.
TEST(ShortRead, PacketPipe) {
  int fds[2];
  ASSERT_EQ(::pipe2(fds, O_DIRECT), 0);
  messages(Pair({fds[0], fds[1]}));
}

// FM-07: a terminal gives line by line.
TEST(ShortRead, Terminal) {
  Owned owned;
  const Ends ends = makeTerminal(owned, false);
  inFiber([&] {
    whenParked([&] { writeAll(ends[1], "one\ntwo\nthr"); });
    EXPECT_EQ(shortRead(ends[0]), "one\n");
    EXPECT_EQ(shortRead(ends[0]), "two\n");
    whenParked([&] { writeAll(ends[1], "ee\n"); });
    EXPECT_EQ(shortRead(ends[0]), "three\n");
    whenParked([&] { writeAll(ends[0], "back"); });
    EXPECT_EQ(shortRead(ends[1]), "back");
  });
}

// FM-07: after MSG_WAITALL took less than there was, and after it took all.
TEST(ShortRead, WaitAll) {
  inFiber([] {
    for (const bool tcp : {false, true}) {
      Pair pair(tcp ? makeTcp(hookedCalls()) : makeUnix(hookedCalls(), SOCK_STREAM));
      char buffer[8] = {};
      whenParked([&] {
        writeAll(pair.b, "abc");
        whenParked([&] { writeAll(pair.b, "defg"); });
      });
      EXPECT_EQ(::recv(pair.a, buffer, 5, MSG_WAITALL), 5);
      EXPECT_EQ(std::string(buffer), "abcde");
      EXPECT_EQ(shortRead(pair.a), "fg");
      whenParked([&] {
        writeAll(pair.b, "end");
        pair.closeB();
      });
      EXPECT_EQ(::recv(pair.a, buffer, 8, MSG_WAITALL), 3);
      EXPECT_EQ(shortRead(pair.a), "");
    }
  });
}

// A peek for all of it neither spins nor misses the last piece.
TEST(ShortRead, PeekForAll) {
  inFiber([] {
    const Pair pair = tcpPair();
    int turns = 0;
    whenParked([&] {
      for (const char* piece : {"ab", "cd", "ef"}) {
        for (int i = 0; i < 50; ++i, ++turns) Fiber::YieldToReady();
        writeAll(pair.b, piece);
      }
    });
    char buffer[8] = {};
    EXPECT_EQ(::recv(pair.a, buffer, 6, MSG_WAITALL | MSG_PEEK), 6);
    EXPECT_EQ(std::string(buffer), "abcdef");
    EXPECT_EQ(turns, 150);
    EXPECT_EQ(shortRead(pair.a), "abcdef");
  });
}

}  // namespace
}  // namespace sylar::test
