// sylar's names for libc's own functions: there before any constructor, and never a hook.
#include "tests/hook/fd/kinds.h"

namespace sylar::test {
namespace {

/// What a constructor of another file may do.
struct Early {
  Early() {
    int fds[2] = {socket_f(AF_INET, SOCK_STREAM, 0), -1};
    socket_made = fds[0] >= 0;
    int type = 0;
    socklen_t size = sizeof type;
    type_right = getsockopt_f(fds[0], SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
    flags_right = fcntl_f(fds[0], F_SETFL, O_NONBLOCK) == 0 && (fcntl_f(fds[0], F_GETFL) & O_NONBLOCK) != 0;
    closed = close_f(fds[0]) == 0 && close_f(fds[0]) == -1;
  }
  bool socket_made;
  bool type_right;
  bool flags_right;
  bool closed;
};
__attribute__((init_priority(101))) Early g_early;

// CD-H11
TEST(Originals, WorkInAConstructorBeforeAllOthers) {
  EXPECT_TRUE(g_early.socket_made);
  EXPECT_TRUE(g_early.type_right);
  EXPECT_TRUE(g_early.flags_right);
  EXPECT_TRUE(g_early.closed);
}

/// Whether `call`, in a fiber, lets another one of the same worker run.
bool parks(const std::function<void()>& call) {
  bool other_ran = false;
  bool ran_meanwhile = false;
  inFiber([&] {
    IOManager::GetThis()->schedule([&] { other_ran = true; });
    call();
    ran_meanwhile = other_ran;
  });
  return ran_meanwhile;
}

// CD-H7: through them a fiber blocks its thread, as sylar's users expect of them.
TEST(Originals, BlockTheThread) {
  const timespec moment{0, 1000};
  EXPECT_FALSE(parks([] { EXPECT_EQ(usleep_f(1000), 0); }));
  EXPECT_FALSE(parks([&] { EXPECT_EQ(nanosleep_f(&moment, nullptr), 0); }));
  EXPECT_FALSE(parks([] { EXPECT_EQ(sleep_f(0), 0u); }));
  const Pair pair = unixPair();
  std::thread peer;
  EXPECT_FALSE(parks([&] {
    peer = std::thread([&] {
      libcCalls().usleep(2000);
      libcCalls().write(pair.b, "x", 1);
    });
    char byte;
    EXPECT_EQ(read_f(pair.a, &byte, 1), 1);
  }));
  peer.join();
}

TEST(Originals, AreLibcs) {
  const Pair pair = unixPair();
  const Pair own({socket_f(AF_UNIX, SOCK_STREAM, 0), -1});
  char buffer[16] = {};
  iovec part{buffer, 2};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  inFiber([&] {
    EXPECT_EQ(write_f(pair.b, "ab", 2), 2);
    EXPECT_EQ(send_f(pair.b, "cd", 2, 0), 2);
    EXPECT_EQ(sendto_f(pair.b, "ef", 2, 0, nullptr, 0), 2);
    EXPECT_EQ(writev_f(pair.b, &part, 1), 2);
    EXPECT_EQ(sendmsg_f(pair.b, &message, 0), 2);
    EXPECT_EQ(read_f(pair.a, buffer, 2), 2);
    EXPECT_EQ(recv_f(pair.a, buffer, 2, 0), 2);
    EXPECT_EQ(recvfrom_f(pair.a, buffer, 2, 0, nullptr, nullptr), 2);
    EXPECT_EQ(readv_f(pair.a, &part, 1), 2);
    EXPECT_EQ(recvmsg_f(pair.a, &message, 0), 2);
    int on = 1;
    EXPECT_EQ(ioctl_f(pair.a, FIONBIO, &on), 0);
    EXPECT_EQ(read_f(pair.a, buffer, 1), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(setsockopt_f(pair.a, SOL_SOCKET, SO_RCVBUF, &on, sizeof on), 0);
    EXPECT_EQ(accept_f(pair.a, nullptr, nullptr), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(connect_f(own.a, reinterpret_cast<const sockaddr*>(&on), 1), -1);
    EXPECT_EQ(errno, EINVAL);
  });
}

// Compatibility: they may be passed around like functions.
TEST(Originals, AreFunctionPointers) {
  ssize_t (*const reading)(int, void*, size_t) = read_f;
  char byte;
  EXPECT_EQ(reading(-1, &byte, 1), -1);
  EXPECT_EQ(errno, EBADF);
}

// ---- connect_with_timeout. ----------------------------------------------------------------------------------------------------

/// A TCP listener whose queue is full: connections to it wait.
struct FullListener {
  FullListener() : sockets({boundSocket(hookedCalls(), SOCK_STREAM, 0), ::socket(AF_INET, SOCK_STREAM, 0)}) {
    EXPECT_EQ(connectTo(libcCalls(), sockets.b, addressOf(sockets.a)), 0);
  }
  int connect(int fd, uint64_t timeout_ms) const {
    const sockaddr_in address = addressOf(sockets.a);
    return connect_with_timeout(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address, timeout_ms);
  }
  Pair sockets;
};

// FM-24
TEST(ConnectWithTimeout, EndsAtItsLimit) {
  const FullListener listener;
  inFiber([&] {
    for (const uint64_t ms : {0, 20}) {
      const Pair socket({::socket(AF_INET, SOCK_STREAM, 0), -1});
      EXPECT_EQ(listener.connect(socket.a, ms), -1);
      EXPECT_EQ(errno, ETIMEDOUT);
    }
  });
}

TEST(ConnectWithTimeout, ConnectsWithinIt) {
  const Pair listener({boundSocket(hookedCalls(), SOCK_STREAM), -1});
  const sockaddr_in address = addressOf(listener.a);
  const auto connects = [&](uint64_t ms) {
    const Pair socket({::socket(AF_INET, SOCK_STREAM, 0), -1});
    EXPECT_EQ(connect_with_timeout(socket.a, reinterpret_cast<const sockaddr*>(&address), sizeof address, ms), 0);
  };
  inFiber([&] {
    connects(5000);
    connects(~uint64_t{0});
    connects(~uint64_t{0} - 1);
  });
  connects(1);  // off fibers it is connect
}

// Bad input is the kernel's to refuse.
TEST(ConnectWithTimeout, RefusesWhatIsNoSocket) {
  const sockaddr_in address = loopback(1);
  const auto* const to = reinterpret_cast<const sockaddr*>(&address);
  const Pair pipe = pipePair();
  const auto refuses = [&] {
    for (const int fd : {-1, INT32_MAX, 999}) {
      EXPECT_EQ(connect_with_timeout(fd, to, sizeof address, 10), -1);
      EXPECT_EQ(errno, EBADF);
      EXPECT_EQ(::eventfd_write(fd, 1), -1);
      EXPECT_EQ(errno, EBADF);
      uint64_t value = 0;
      EXPECT_EQ(::eventfd_read(fd, &value), -1);
      EXPECT_EQ(errno, EBADF);
    }
    EXPECT_EQ(connect_with_timeout(pipe.a, to, sizeof address, 10), -1);
    EXPECT_EQ(errno, ENOTSOCK);
  };
  refuses();
  inFiber(refuses);
}

// The socket's own limit comes first, and says so in its own way.
TEST(ConnectWithTimeout, GivesWayToAnEarlierSendTimeout) {
  const FullListener listener;
  inFiber([&] {
    const Pair socket({::socket(AF_INET, SOCK_STREAM, 0), -1});
    setTimeout(hookedCalls(), socket.a, SO_SNDTIMEO, 10'000);
    EXPECT_EQ(listener.connect(socket.a, 60'000), -1);
    EXPECT_EQ(errno, EINPROGRESS);
  });
}

}  // namespace
}  // namespace sylar::test
