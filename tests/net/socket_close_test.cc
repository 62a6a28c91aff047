// close() and cancel against calls that are running: in fibers, on threads, and between them.
#include <netinet/tcp.h>

#include <atomic>

#include "tests/net/support.h"
#include "tests/support/thread_state.h"

namespace sylar::test {
namespace {

/// Lets whoever runs beside get to where he waits: a fiber for certain, for there is one worker; a thread as far as it can be
/// seen.
class Waits {
 public:
  void begin() { m_thread = sys::threadId(); }
  void await() const {
    if (IOManager::GetThis() != nullptr) {
      for (int i = 0; i < 10; ++i) Fiber::YieldToReady();
      return;
    }
    while (m_thread == 0) sched_yield();
    while (stateOfThread(m_thread) != 'S') sched_yield();
  }

 private:
  std::atomic<pid_t> m_thread{0};
};

class CloseTest : public InBothPlaces {
 protected:
  /// Returns the result of `call` on `socket`, with errno, if `end` comes while it waits.
  void expectEnds(const char* name, const Socket::ptr& socket, const std::function<long(Socket&)>& call,
                  const std::function<void(Socket&)>& end, int error, Socket::Failure failure) {
    SCOPED_TRACE(name);
    Waits waits;
    long result = 0;
    int why = 0;
    {
      Beside caller([&] {
        waits.begin();
        result = call(*socket);
        why = errno;
      });
      waits.await();
      end(*socket);
    }
    EXPECT_EQ(result, -1);
    EXPECT_EQ(why, error) << std::strerror(why);
    EXPECT_EQ(socket->getFailure(), failure);
  }
};
INSTANTIATE_TEST_SUITE_P(Places, CloseTest, kPlaces, placeName);

long receive(Socket& socket) {
  char byte;
  return socket.recv(&byte, 1);
}
long receiveFrom(Socket& socket) {
  char byte;
  return socket.recvFrom(&byte, 1, std::make_shared<IPv4Address>());
}
long acceptOne(Socket& socket) { return socket.accept() != nullptr ? 0 : -1; }
/// One byte more than there is room for. An acknowledgement that the kernel has held back may make room in between: then again.
long sendMuch(Socket& socket) {
  const std::string much(1 << 20, 'x');
  long sent;
  do {
    while (socket.send(much.data(), much.size(), MSG_DONTWAIT) > 0) continue;
    sent = socket.send("x", 1);
  } while (sent == 1);
  return sent;
}
/// What the kernel says of a TCP socket. Of a listener, tcpi_unacked is the number of connections in its queue, and tcpi_sacked
/// its backlog.
tcp_info infoOf(const Socket& socket) {
  tcp_info info{};
  EXPECT_TRUE(socket.getOption(IPPROTO_TCP, TCP_INFO, info));
  return info;
}

// FM-13.
TEST_P(CloseTest, CloseEndsACallThatWaits) {
  run([this] {
    const auto closes = [](Socket& socket) { EXPECT_TRUE(socket.close()); };
    const auto expect_closed = [&](const char* name, const Socket::ptr& socket, const std::function<long(Socket&)>& call) {
      expectEnds(name, socket, call, closes, EBADF, Socket::Failure::kClosed);
    };
    const SocketDirectory directory;
    const Ends tcp = connectedEnds(), tcp_full = connectedEnds(), local = connectedEnds(directory.address("pair"));
    expect_closed("recv on TCP", tcp.client, receive);
    expect_closed("recv on a Unix socket", local.client, receive);
    expect_closed("send on TCP", tcp_full.client, sendMuch);
    expect_closed("accept on TCP", listenerOn(), acceptOne);
    expect_closed("accept on a Unix socket", listenerOn(directory.address("listener")), acceptOne);
    const Socket::ptr udp = Socket::CreateUDPSocket();
    ASSERT_TRUE(udp->bind(loopback()));
    expect_closed("recvFrom on UDP", udp, receiveFrom);
  });
}

// A full backlog does not answer: the connect of a fiber ends with the close, that of a thread, too.
TEST_P(CloseTest, CloseEndsAConnectThatWaits) {
  run([this] {
    const Socket::ptr listener = Socket::CreateTCPSocket();
    ASSERT_TRUE(listener->bind(loopback()));
    ASSERT_TRUE(listener->listen(0));
    std::vector<Socket::ptr> clients;
    // A connect that has failed proves nothing: on a busy machine its time may be up before the fiber looks.
    for (tcp_info info{}; info.tcpi_unacked <= info.tcpi_sacked; info = infoOf(*listener)) {
      clients.push_back(Socket::CreateTCPSocket());
      clients.back()->connect(listener->getLocalAddress(), 20);
    }
    const Socket::ptr client = Socket::CreateTCPSocket();
    expectEnds(
        "connect", client, [&](Socket& socket) { return socket.connect(listener->getLocalAddress()) ? 0 : -1; },
        [](Socket& socket) {
          while (infoOf(socket).tcpi_state == TCP_CLOSE) sched_yield();  // if it came later, it would open the socket again
          EXPECT_TRUE(socket.close());
        },
        EBADF, Socket::Failure::kClosed);
    EXPECT_EQ(client->getSocket(), -1);
  });
}

// Of two calls that wait, both end, and the descriptor goes with the last.
TEST_P(CloseTest, CloseEndsEveryCall) {
  run([] {
    const Ends ends = connectedEnds();
    std::atomic<int> ended{0};
    {
      std::vector<std::unique_ptr<Beside>> callers;
      Waits waits[3];
      for (Waits& one : waits) {
        callers.push_back(std::make_unique<Beside>([&] {
          one.begin();
          if (receive(*ends.client) == -1 && errno == EBADF) ++ended;
        }));
      }
      for (const Waits& one : waits) one.await();
      EXPECT_TRUE(ends.client->close());
    }
    EXPECT_EQ(ended, 3);
    EXPECT_EQ(ends.client->getSocket(), -1);
    EXPECT_EQ(receive(*ends.server), 0) << "the peer learns of it";
  });
}

// FM-14. A call that is under way may be about to use the number, so it is nobody else's until that call has left.
TEST(Close, KeepsTheNumberUntilTheLastCallHasLeft) {
  inFiber([] {
    const Ends ends = connectedEnds();
    const int number = ends.client->getSocket();
    Beside reader([&] { EXPECT_EQ(receive(*ends.client), -1); });
    for (int i = 0; i < 10; ++i) Fiber::YieldToReady();
    EXPECT_TRUE(ends.client->close());
    const Socket::ptr meanwhile = Socket::CreateTCPSocket();  // the reader has not run since
    EXPECT_NE(meanwhile->getSocket(), number);
    EXPECT_EQ(ends.client->getSocket(), number);
    reader.join();
    EXPECT_EQ(ends.client->getSocket(), -1);
    EXPECT_EQ(Socket::CreateTCPSocket()->getSocket(), number);
  });
}

// A fiber's wait is ended without shutdown, which would concern other processes, too: here a copy stands for theirs.
TEST(Close, OfAListenerLeavesItsCopiesAlone) {
  inFiber([] {
    const Socket::ptr listener = listenerOn();
    const int copy = ::fcntl(listener->getSocket(), F_DUPFD_CLOEXEC, 0);
    ASSERT_GE(copy, 0);
    const Address::ptr address = listener->getLocalAddress();
    {
      Beside acceptor([&] { EXPECT_EQ(listener->accept(), nullptr); });
      for (int i = 0; i < 10; ++i) Fiber::YieldToReady();
      EXPECT_TRUE(listener->close());
    }
    const Socket::ptr client = connectedTo(address);
    const int fd = ::accept4(copy, nullptr, nullptr, SOCK_CLOEXEC);
    EXPECT_GE(fd, 0);
    ::close(fd);
    ::close(copy);
  });
}

TEST(Cancel, EndsTheWaitAndNotTheConnection) {
  inFiber([] {
    const Ends ends = connectedEnds();
    const auto expect_canceled = [](auto call, auto cancel) {
      Beside caller([&] {
        EXPECT_EQ(call(), -1);
        EXPECT_EQ(errno, ECANCELED);
      });
      while (!cancel()) Fiber::YieldToReady();  // until it waits
    };
    expect_canceled([&] { return receive(*ends.client); }, [&] { return ends.client->cancelRead(); });
    EXPECT_EQ(ends.client->getFailure(), Socket::Failure::kCanceled);
    expect_canceled([&] { return receive(*ends.client); }, [&] { return ends.client->cancelAll(); });
    expect_canceled([&] { return sendMuch(*ends.client); }, [&] { return ends.client->cancelWrite(); });
    const Socket::ptr listener = listenerOn();
    expect_canceled([&] { return acceptOne(*listener); }, [&] { return listener->cancelAccept(); });
    EXPECT_FALSE(ends.client->cancelRead()) << "nobody waits";
    EXPECT_FALSE(listener->cancelAll());
    ASSERT_EQ(ends.server->send("x", 1), 1);
    EXPECT_EQ(receive(*ends.client), 1) << "the connection is as it was";
  });
}

// Reading is cancelled, not writing.
TEST(Cancel, ConcernsItsDirectionOnly) {
  inFiber([] {
    const Ends ends = connectedEnds();
    int wrote = 0;
    Beside writer([&] { wrote = static_cast<int>(sendMuch(*ends.client)); });
    Beside reader([&] { EXPECT_EQ(receive(*ends.client), -1); });
    while (!ends.client->cancelRead()) Fiber::YieldToReady();  // until it waits
    reader.join();
    EXPECT_EQ(wrote, 0) << "it waits";
    while (!ends.client->cancelWrite()) Fiber::YieldToReady();
  });
}

TEST(Cancel, OfTheFiberEndsItsCalls) {
  inFiber([] {
    const Ends ends = connectedEnds();
    const auto reader = std::make_shared<Fiber>([&] {
      EXPECT_EQ(receive(*ends.client), -1);
      EXPECT_EQ(ends.client->getFailure(), Socket::Failure::kCanceled);
    });
    IOManager::GetThis()->schedule(reader);
    for (int i = 0; i < 10; ++i) Fiber::YieldToReady();
    reader->cancel();
    reader->join();
  });
}

}  // namespace
}  // namespace sylar::test
