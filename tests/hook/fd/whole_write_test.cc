// A blocking write transfers everything, however small the buffers on its way are, and every byte arrives once and in order.
#include <sys/mman.h>

#include <functional>

#include "sylar/base/sanitizers.h"
#include "tests/hook/support.h"

namespace sylar::test {
namespace {

constexpr size_t kSize = 8 << 20;

/// `send` in one fiber and the check of what arrives in another one of the same worker.
void arrivesWhole(const Pair& pair, const std::function<ssize_t(int fd, std::vector<char>& bytes)>& send) {
  const LeakCheck leaks;
  std::vector<char> bytes = streamBytes(kSize);
  inFiber([&] {
    IOManager::GetThis()->schedule([&] {
      EXPECT_EQ(send(pair.b, bytes), ssize_t(kSize));
      EXPECT_EQ(::shutdown(pair.b, SHUT_WR), 0);
    });
    char buffer[64 * 1024];
    size_t received = 0;
    for (;;) {
      const ssize_t n = ::read(pair.a, buffer, sizeof buffer);
      ASSERT_GE(n, 0);
      if (n == 0) break;
      for (ssize_t i = 0; i < n; ++i, ++received) ASSERT_EQ(buffer[i], streamByte(received)) << "byte " << received;
    }
    EXPECT_EQ(received, kSize);
  });
}

std::vector<iovec> oddParts(std::vector<char>& bytes, size_t count) {
  std::vector<iovec> parts;
  size_t at = 0;
  for (size_t i = 0; i + 1 < count; ++i) {
    const size_t size = i % 7 == 3 ? 0 : (i * 7919) % (2 * kSize / count);  // empty ones among them
    parts.push_back({bytes.data() + at, std::min(size, bytes.size() - at)});
    at += parts.back().iov_len;
  }
  parts.push_back({bytes.data() + at, bytes.size() - at});
  return parts;
}

ssize_t sendParts(int fd, std::vector<iovec>& parts, int flags, void* control = nullptr, size_t control_size = 0) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = control;
  message.msg_controllen = control_size;
  return ::sendmsg(fd, &message, flags);
}

class WholeWrite : public testing::TestWithParam<bool> {
 protected:
  /// With buffers as small as the kernel allows.
  static Ends make() {
    const Ends ends = GetParam() ? makeTcp(hookedCalls()) : makeUnix(hookedCalls(), SOCK_STREAM);
    setBuffer(ends[1], SO_SNDBUF, 4096);
    setBuffer(ends[0], SO_RCVBUF, 16 * 1024);
    return ends;
  }
};

// CD-H8, FM-07
TEST_P(WholeWrite, Write) {
  arrivesWhole(Pair(make()), [](int fd, std::vector<char>& bytes) { return ::write(fd, bytes.data(), bytes.size()); });
}
TEST_P(WholeWrite, Send) {
  arrivesWhole(Pair(make()), [](int fd, std::vector<char>& bytes) { return ::send(fd, bytes.data(), bytes.size(), 0); });
}
TEST_P(WholeWrite, WritevOfManyOddParts) {
  arrivesWhole(Pair(make()), [](int fd, std::vector<char>& bytes) {
    const std::vector<iovec> parts = oddParts(bytes, 1000);
    return ::writev(fd, parts.data(), static_cast<int>(parts.size()));
  });
}
TEST_P(WholeWrite, SendmsgOfManyOddParts) {
  arrivesWhole(Pair(make()), [](int fd, std::vector<char>& bytes) {
    std::vector<iovec> parts = oddParts(bytes, 333);
    return sendParts(fd, parts, MSG_NOSIGNAL);
  });
}
TEST_P(WholeWrite, OnADescriptorThatWasMadeWithoutHooks) {
  const Ends ends = make();
  const Ends strangers{libcCalls().dup(ends[0]), libcCalls().dup(ends[1])};
  for (const int fd : ends) ::close(fd);
  arrivesWhole(Pair(strangers), [](int fd, std::vector<char>& bytes) { return ::write(fd, bytes.data(), bytes.size()); });
}

INSTANTIATE_TEST_SUITE_P(Over, WholeWrite, testing::Bool(), [](const auto& one) { return one.param ? "Tcp" : "Unix"; });

// CD-H8: a pipe is a stream, too.
TEST(WholeWrite, IntoAPipe) {
  const Pair pair = pipePair();
  const std::vector<char> bytes = streamBytes(kSize);
  inFiber([&] {
    IOManager::GetThis()->schedule([&] { EXPECT_EQ(::write(pair.b, bytes.data(), bytes.size()), ssize_t(kSize)); });
    std::vector<char> got(kSize);
    for (size_t done = 0; done < kSize;) {
      const ssize_t n = ::read(pair.a, got.data() + done, kSize - done);
      ASSERT_GT(n, 0);
      done += static_cast<size_t>(n);
    }
    EXPECT_EQ(got, bytes);
  });
}

/// Receives everything of a stream, and counts the descriptors that come with it.
size_t receiveWithRights(int fd, size_t* descriptors) {
  size_t received = 0;
  for (;;) {
    char buffer[32 * 1024];
    alignas(cmsghdr) char control[256];
    iovec part{buffer, sizeof buffer};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    EXPECT_GE(n, 0);
    if (n <= 0) return received;
    for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
      int sent = -1;
      std::memcpy(&sent, CMSG_DATA(one), sizeof sent);
      ::close(sent);
      ++*descriptors;
    }
    for (ssize_t i = 0; i < n; ++i, ++received) EXPECT_EQ(buffer[i], streamByte(received));
    if (testing::Test::HasFailure()) return received;
  }
}

// CD-H8
TEST(WholeWrite, SendmsgSendsItsDescriptorExactlyOnce) {
  const LeakCheck leaks;
  const Pair pair = unixPair();
  const Pair passenger = pipePair();
  setBuffer(pair.b, SO_SNDBUF, 4096);
  std::vector<char> bytes = streamBytes(kSize);
  size_t descriptors = 0;
  inFiber([&] {
    IOManager::GetThis()->schedule([&] {
      alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
      auto* const rights = reinterpret_cast<cmsghdr*>(control);
      *rights = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
      std::memcpy(CMSG_DATA(rights), &passenger.b, sizeof(int));
      std::vector<iovec> parts = oddParts(bytes, 100);
      EXPECT_EQ(sendParts(pair.b, parts, 0, control, sizeof control), ssize_t(kSize));
      ::shutdown(pair.b, SHUT_WR);
    });
    EXPECT_EQ(receiveWithRights(pair.a, &descriptors), kSize);
  });
  EXPECT_EQ(descriptors, 1u);
}

// Messages are never cut or joined, and keep their order when the sender has to wait.
TEST(WholeWrite, MessagesStayWholeAndInOrder) {
  for (const int type : {SOCK_DGRAM, SOCK_SEQPACKET}) {
    const Pair pair = unixPair(type);
    inFiber([&] {
      IOManager::GetThis()->schedule([&] {
        for (size_t i = 0; i < 2000; ++i) {
          std::vector<size_t> message(1 + i % 50, i);
          const size_t size = message.size() * sizeof(size_t);
          EXPECT_EQ(::write(pair.b, message.data(), size), ssize_t(size));
        }
      });
      for (size_t i = 0; i < 2000; ++i) {
        size_t message[64];
        const ssize_t n = ::read(pair.a, message, sizeof message);
        ASSERT_EQ(n, ssize_t((1 + i % 50) * sizeof(size_t)));
        EXPECT_EQ(message[0], i);
        EXPECT_EQ(message[i % 50], i);
      }
    });
  }
}

#if !defined(SYLAR_ASAN) && !defined(SYLAR_TSAN)  // which look at every byte
// write(2), send(2): more than 0x7ffff000 bytes are not transferred with one call.
TEST(AWriteOfThreeGigabytes, TransfersWhatTheKernelDoesAtMost) {
  constexpr size_t kAll = size_t{3} << 30;
  void* const zeros = ::mmap(nullptr, kAll, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  Pair pair = tcpPair();
  std::thread reader([&] {
    while (libcCalls().recv(pair.a, nullptr, 1 << 24, MSG_TRUNC) > 0) continue;  // TCP drops them uncopied
  });
  inFiber([&] {
    EXPECT_EQ(::write(pair.b, zeros, kAll), 0x7ffff000);
    pair.closeB();
  });
  reader.join();
  EXPECT_EQ(::munmap(zeros, kAll), 0);
}
#endif

}  // namespace
}  // namespace sylar::test
