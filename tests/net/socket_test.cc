#include "sylar/socket.h"

#include <netinet/tcp.h>
#include <sys/file.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>

#include "sylar/hook.h"
#include "sylar/net/socket_control.h"
#include "sylar/socket_stream.h"
#include "tests/net/support.h"

namespace sylar::test {
namespace {

class SocketTest : public InBothPlaces {};
INSTANTIATE_TEST_SUITE_P(Places, SocketTest, kPlaces, placeName);

void expectEcho(Socket& a, Socket& b) {
  char buffer[8] = {};
  ASSERT_EQ(a.send("hello", 5), 5);
  ASSERT_EQ(b.recv(buffer, sizeof buffer), 5);
  EXPECT_STREQ(buffer, "hello");
  ASSERT_EQ(b.send("world", 5), 5);
  ASSERT_EQ(a.recv(buffer, sizeof buffer), 5);
  EXPECT_STREQ(buffer, "world");
}

TEST_P(SocketTest, TcpConnectsBothEnds) {
  run([] {
    for (const char* host : {"127.0.0.1", "::1"}) {
      const Address::ptr address = IPAddress::Create(host);
      const Socket::ptr probe = Socket::CreateTCP(address);
      if (!probe->bind(address)) continue;  // a host without IPv6
      const auto [client, server] = connectedEnds(address);
      ASSERT_NE(server, nullptr);
      EXPECT_TRUE(client->isConnected());
      EXPECT_TRUE(server->isConnected());
      EXPECT_EQ(*client->getRemoteAddress(), *server->getLocalAddress());
      EXPECT_EQ(*client->getLocalAddress(), *server->getRemoteAddress());
      expectEcho(*client, *server);
      EXPECT_TRUE(client->close());
      char byte;
      EXPECT_EQ(server->recv(&byte, 1), 0) << "the peer has closed";
      EXPECT_TRUE(server->isConnected()) << "until it is closed here";
    }
  });
}

TEST_P(SocketTest, UnixConnectsBothEnds) {
  run([] {
    const SocketDirectory directory;
    const std::string abstract = '\0' + std::string("sylar_net_socket_test_") + std::to_string(::getpid());
    for (const Address::ptr& address : {directory.address("s"), Address::ptr(std::make_shared<UnixAddress>(abstract))}) {
      const auto [client, server] = connectedEnds(address);
      ASSERT_NE(server, nullptr);
      EXPECT_EQ(*client->getRemoteAddress(), *address);
      EXPECT_EQ(server->getRemoteAddress()->toString(), "") << "a client without a name";
      expectEcho(*client, *server);
    }
  });
}

TEST_P(SocketTest, UdpSendsToAnybodyAndToItsPeer) {
  run([] {
    const Socket::ptr a = Socket::CreateUDPSocket();
    const Socket::ptr b = Socket::CreateUDPSocket();
    EXPECT_TRUE(a->isConnected()) << "UDP counts as connected";
    ASSERT_TRUE(a->bind(loopback()));
    ASSERT_TRUE(b->bind(loopback()));
    ASSERT_EQ(a->sendTo("one", 3, b->getLocalAddress()), 3);
    char buffer[8] = {};
    const auto from = std::make_shared<IPv4Address>();
    ASSERT_EQ(b->recvFrom(buffer, sizeof buffer, from), 3);
    EXPECT_EQ(*from, *a->getLocalAddress());
    ASSERT_TRUE(b->connect(from));
    ASSERT_TRUE(a->connect(b->getLocalAddress()));
    expectEcho(*a, *b);
  });
}

TEST_P(SocketTest, UnixMessagesTellTheirSender) {
  run([] {
    const SocketDirectory directory;
    const Socket::ptr a = Socket::CreateUnixUDPSocket();
    const Socket::ptr b = Socket::CreateUnixUDPSocket();
    ASSERT_TRUE(a->bind(directory.address("a")));
    ASSERT_TRUE(b->bind(directory.address("b")));
    ASSERT_EQ(a->sendTo("one", 3, directory.address("b")), 3);
    char buffer[8] = {};
    const auto from = std::make_shared<UnixAddress>();
    ASSERT_EQ(b->recvFrom(buffer, sizeof buffer, from), 3);
    EXPECT_EQ(from->getPath(), directory.path("a"));
    ASSERT_EQ(Socket::CreateUnixUDPSocket()->sendTo("one", 3, directory.address("b")), 3);
    ASSERT_EQ(b->recvFrom(buffer, sizeof buffer, from), 3);
    EXPECT_EQ(from->getPath(), "") << "the next has no name";
    ASSERT_EQ(b->recvFrom(buffer, sizeof buffer, std::make_shared<IPv4Address>(), MSG_DONTWAIT), -1);
    EXPECT_EQ(errno, EAGAIN);
  });
}

TEST_P(SocketTest, VectorsGoOutAndComeIn) {
  run([] {
    const auto [client, server] = connectedEnds();
    const iovec out[] = {{const_cast<char*>("hel"), 3}, {nullptr, 0}, {const_cast<char*>("lo!!"), 4}};
    ASSERT_EQ(client->send(out, 3), 7);
    char first[2], second[8] = {};
    iovec in[] = {{first, sizeof first}, {second, 5}};
    ASSERT_EQ(server->recv(in, 2, MSG_WAITALL), 7);
    EXPECT_EQ(std::string(first, 2) + second, "hello!!");
    const iovec huge[] = {{first, size_t{1} << 30}, {first, size_t{1} << 30}};
    EXPECT_EQ(client->send(huge, 2), -1) << "more than an int can tell";
    EXPECT_EQ(errno, EINVAL);
  });
}

TEST_P(SocketTest, LongWritesAreWhole) {
  run([] {
    const auto [client, server] = connectedEnds();
    const std::string sent(4 << 20, 'x');
    std::string got;
    Beside reader([&, server = server] {
      char buffer[65536];
      for (int n; (n = server->recv(buffer, sizeof buffer)) > 0;) got.append(buffer, static_cast<size_t>(n));
    });
    EXPECT_EQ(client->send(sent.data(), sent.size()), static_cast<int>(sent.size()));
    EXPECT_TRUE(client->close());
    reader.join();
    EXPECT_EQ(got, sent);
  });
}

// CD-N7, FM-08: with the default disposition the signal would end the test.
TEST_P(SocketTest, WritingToAClosedPeerIsAnErrorAndNoSignal) {
  std::signal(SIGPIPE, SIG_DFL);
  run([] {
    const auto [client, server] = connectedEnds();
    const linger reset{1, 0};
    ASSERT_TRUE(server->setOption(SOL_SOCKET, SO_LINGER, reset));
    ASSERT_TRUE(server->close());
    const iovec one{const_cast<char*>("x"), 1};
    EXPECT_EQ(client->send("x", 1), -1);
    EXPECT_EQ(errno, ECONNRESET);
    for (const int sent : {client->send("x", 1), client->send(&one, 1), client->sendTo("x", 1, nullptr)}) EXPECT_EQ(sent, -1);
    EXPECT_EQ(errno, EPIPE);
    EXPECT_EQ(client->getFailure(), Socket::Failure::kOther);
  });
}

TEST_P(SocketTest, WhatIsNotConnectedDoesNotTransfer) {
  run([] {
    const Socket::ptr socket = Socket::CreateTCPSocket();
    char byte;
    EXPECT_EQ(socket->recv(&byte, 1), -1);
    EXPECT_EQ(errno, ENOTCONN);
    EXPECT_EQ(socket->send("x", 1), -1);
    EXPECT_EQ(errno, ENOTCONN);
    EXPECT_FALSE(socket->isConnected());
    EXPECT_EQ(socket->getRemoteAddress()->toString(), UnknownAddress(AF_INET).toString());
  });
}

// ---- Timeouts. --------------------------------------------------------------------------------------------------------------

TEST_P(SocketTest, TimeoutsEndRecvSendAndAccept) {
  run([] {
    const auto [client, server] = connectedEnds();
    ASSERT_TRUE(client->setRecvTimeout(5));
    char byte;
    EXPECT_EQ(client->recv(&byte, 1), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_TRUE(client->isTimeout());
    ASSERT_TRUE(client->setSendTimeout(5));
    const std::string much(1 << 20, 'x');
    int sent;
    while ((sent = client->send(much.data(), much.size())) > 0) continue;
    EXPECT_EQ(sent, -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_TRUE(client->isTimeout());
    const Socket::ptr listener = listenerOn();
    ASSERT_TRUE(listener->setRecvTimeout(5));
    EXPECT_EQ(listener->accept(), nullptr);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_TRUE(listener->isTimeout());
  });
}

// A backlog of one, filled: the kernel drops what comes then, and connect waits for an answer.
TEST_P(SocketTest, ConnectEndsAtItsTimeout) {
  run([] {
    const Socket::ptr listener = Socket::CreateTCPSocket();
    ASSERT_TRUE(listener->bind(loopback()));
    ASSERT_TRUE(listener->listen(0));
    std::vector<Socket::ptr> clients;
    bool connected = true;
    for (int i = 0; i < 10 && connected; ++i) {
      clients.push_back(Socket::CreateTCPSocket());
      connected = clients.back()->connect(listener->getLocalAddress(), 20);
    }
    ASSERT_FALSE(connected);
    EXPECT_EQ(errno, ETIMEDOUT);
    EXPECT_TRUE(clients.back()->isTimeout());
    EXPECT_FALSE(clients.back()->isValid());
    EXPECT_EQ(clients.back()->getSendTimeout(), -1) << "as it was before";
  });
}

TEST_P(SocketTest, TimeoutsAreRememberedAndSetOnlyWhenTheyChange) {
  run([] {
    const Socket::ptr socket = Socket::CreateTCPSocket();
    const auto kernels_ms = [&](int option) {
      timeval value{};
      EXPECT_TRUE(socket->getOption(SOL_SOCKET, option, value));
      return value.tv_sec * 1000 + value.tv_usec / 1000;
    };
    EXPECT_EQ(socket->getRecvTimeout(), -1);
    EXPECT_EQ(socket->getSendTimeout(), -1);
    EXPECT_TRUE(socket->setRecvTimeout(1500));
    EXPECT_TRUE(socket->setSendTimeout(2500));
    EXPECT_EQ(socket->getRecvTimeout(), 1500);
    EXPECT_EQ(socket->getSendTimeout(), 2500);
    EXPECT_EQ(kernels_ms(SO_RCVTIMEO), 1500);
    EXPECT_EQ(kernels_ms(SO_SNDTIMEO), 2500);
    // Changed behind its back: the same value again does not reach the kernel, another does.
    const timeval other{7, 0};
    ASSERT_EQ(setsockopt_f(socket->getSocket(), SOL_SOCKET, SO_RCVTIMEO, &other, sizeof other), 0);
    EXPECT_TRUE(socket->setRecvTimeout(1500));
    EXPECT_EQ(kernels_ms(SO_RCVTIMEO), 7000);
    EXPECT_TRUE(socket->setRecvTimeout(1501));
    EXPECT_EQ(kernels_ms(SO_RCVTIMEO) / 10, 150);
    EXPECT_TRUE(socket->setRecvTimeout(0));
    EXPECT_EQ(socket->getRecvTimeout(), -1);
    EXPECT_EQ(kernels_ms(SO_RCVTIMEO), 0);
    // The raw option is noticed.
    EXPECT_TRUE(socket->setOption(SOL_SOCKET, SO_SNDTIMEO, other));
    EXPECT_EQ(socket->getSendTimeout(), 7000);
    // A new descriptor has them, too.
    ASSERT_TRUE(socket->close());
    EXPECT_TRUE(socket->setRecvTimeout(3000));
    ASSERT_TRUE(socket->bind(loopback()));
    EXPECT_EQ(kernels_ms(SO_RCVTIMEO), 3000);
    EXPECT_EQ(kernels_ms(SO_SNDTIMEO), 7000);
  });
}

// Less than a millisecond is no time without end.
TEST_P(SocketTest, ATimeoutInMicrosecondsIsRoundedUp) {
  run([] {
    const Socket::ptr socket = Socket::CreateTCPSocket();
    EXPECT_TRUE(socket->setOption(SOL_SOCKET, SO_RCVTIMEO, timeval{0, 500}));
    EXPECT_EQ(socket->getRecvTimeout(), 1);
    EXPECT_TRUE(socket->setOption(SOL_SOCKET, SO_SNDTIMEO, timeval{2, 1}));
    EXPECT_EQ(socket->getSendTimeout(), 2001);
  });
}

TEST_P(SocketTest, AcceptedSocketsHaveTheListenersOptions) {
  run([] {
    const Socket::ptr listener = listenerOn();
    ASSERT_TRUE(listener->setSendTimeout(2000));
    const Socket::ptr client = connectedTo(listener->getLocalAddress());
    const Socket::ptr server = listener->accept();
    int on = 0;
    EXPECT_TRUE(server->getOption(IPPROTO_TCP, TCP_NODELAY, on));
    EXPECT_NE(on, 0);
    EXPECT_TRUE(client->getOption(IPPROTO_TCP, TCP_NODELAY, on));
    EXPECT_NE(on, 0);
    EXPECT_EQ(server->getSendTimeout(), 2000);
    EXPECT_EQ(server->getRecvTimeout(), -1);
    timeval value{};
    EXPECT_TRUE(server->getOption(SOL_SOCKET, SO_SNDTIMEO, value));
    EXPECT_EQ(value.tv_sec, 2);
    EXPECT_EQ(::fcntl(server->getSocket(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(server->getSocket(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(::fcntl(client->getSocket(), F_GETFD) & FD_CLOEXEC, 0);
  });
}

// ---- Opening and closing. ---------------------------------------------------------------------------------------------------

TEST_P(SocketTest, CloseIsTrueOnceAndEndsEverything) {
  run([] {
    const auto [client, server] = connectedEnds();
    EXPECT_TRUE(client->close());  // CD-N7
    EXPECT_FALSE(client->close());
    EXPECT_EQ(errno, EBADF);
    EXPECT_FALSE(client->isValid());
    EXPECT_FALSE(client->isConnected());
    EXPECT_EQ(client->getSocket(), -1);
    char byte;
    EXPECT_EQ(client->recv(&byte, 1), -1);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(client->getFailure(), Socket::Failure::kClosed);
    EXPECT_EQ(client->accept(), nullptr);
    EXPECT_EQ(client->getError(), -1);
    EXPECT_FALSE(client->cancelAll());
    EXPECT_EQ(*client->getRemoteAddress(), *server->getLocalAddress()) << "for reports";
  });
}

TEST_P(SocketTest, ConnectOpensAgainWhatWasClosed) {
  run([] {
    const Socket::ptr listener = listenerOn();
    const Socket::ptr client = connectedTo(listener->getLocalAddress());
    Socket::ptr server = listener->accept();
    ASSERT_TRUE(client->reconnect());
    char byte;
    EXPECT_EQ(server->recv(&byte, 1), 0);
    server = listener->accept();
    expectEcho(*client, *server);
    ASSERT_TRUE(client->close());
    detail::EndRequest& end = detail::SocketControl::endRequest(*client);
    end.idle = end.ending = true;
    ASSERT_TRUE(client->connect(listener->getLocalAddress(), 60'000));
    EXPECT_FALSE(end.idle || end.ending) << "what was asked of the last connection";
    expectEcho(*client, *listener->accept());
  });
}

TEST_P(SocketTest, ConnectFailsWithTheKernelsReason) {
  run([] {
    const Socket::ptr bound = Socket::CreateTCPSocket();
    ASSERT_TRUE(bound->bind(loopback()));  // and does not listen
    const Socket::ptr client = Socket::CreateTCPSocket();
    EXPECT_FALSE(client->connect(bound->getLocalAddress()));
    EXPECT_EQ(errno, ECONNREFUSED);
    EXPECT_EQ(client->getFailure(), Socket::Failure::kOther);
    EXPECT_FALSE(client->connect(nullptr));
    EXPECT_EQ(errno, EINVAL);
    EXPECT_FALSE(client->connect(std::make_shared<IPv6Address>()));
    EXPECT_EQ(errno, EINVAL);
    EXPECT_FALSE(Socket::CreateTCPSocket()->reconnect());
    EXPECT_FALSE(client->bind(nullptr));
  });
}

TEST_P(SocketTest, APathIsUsedAgainIfNobodyListensThere) {
  run([] {
    const SocketDirectory directory;
    const Address::ptr address = directory.address("s");
    const Socket::ptr first = listenerOn(address);
    const Socket::ptr second = Socket::CreateUnixTCPSocket();
    EXPECT_FALSE(second->bind(address)) << "somebody listens";
    EXPECT_EQ(errno, EADDRINUSE);
    const Socket::ptr messages = Socket::CreateUnixUDPSocket();
    EXPECT_FALSE(messages->bind(address)) << "a living socket of another type";
    ASSERT_TRUE(first->close());
    EXPECT_TRUE(second->bind(address));
    const Address::ptr file = directory.address("file");
    std::fclose(std::fopen(directory.path("file").c_str(), "w"));
    EXPECT_FALSE(Socket::CreateUnixTCPSocket()->bind(file));
    EXPECT_EQ(errno, EADDRINUSE);
    EXPECT_TRUE(std::filesystem::exists(directory.path("file"))) << "what is no socket stays";
  });
}

/// Bound by a process that has died since.
void leaveDeadSocket(const SocketDirectory& directory, const std::string& name) {
  const Address::ptr address = directory.address(name);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(fd, address->getAddr(), address->getAddrLen()), 0);
  ::close(fd);
  ASSERT_TRUE(std::filesystem::exists(directory.path(name)));
}

TEST_P(SocketTest, APathOfADeadSocketIsUsedAgain) {
  run([] {
    const SocketDirectory directory;
    leaveDeadSocket(directory, "s");
    const Socket::ptr listener = listenerOn(directory.address("s"));
    EXPECT_TRUE(connectedTo(directory.address("s"))->isConnected());
    EXPECT_FALSE(std::filesystem::exists(directory.path("s.lock")));
  });
}

// Databases keep their process id in a file of this name.
TEST_P(SocketTest, ALockFileThatHoldsSomethingIsSomebodyElses) {
  run([] {
    const SocketDirectory directory;
    leaveDeadSocket(directory, "s");
    std::ofstream(directory.path("s.lock")) << "4711";
    const Socket::ptr second = Socket::CreateUnixTCPSocket();
    EXPECT_FALSE(second->bind(directory.address("s")));
    EXPECT_EQ(errno, EADDRINUSE);
    EXPECT_TRUE(std::filesystem::exists(directory.path("s.lock")));
    EXPECT_TRUE(std::filesystem::exists(directory.path("s")));
    std::filesystem::remove(directory.path("s.lock"));
    std::filesystem::remove(directory.path("s"));
  });
}

// Connecting to it is refused as to a dead one.
TEST_P(SocketTest, APathIsTakenThoughItsSocketDoesNotListenYet) {
  run([] {
    const SocketDirectory directory;
    for (const Socket::ptr& first : {Socket::CreateUnixTCPSocket(), Socket::CreateUnixUDPSocket()}) {
      ASSERT_TRUE(first->bind(directory.address("s")));
      for (const Socket::ptr& second : {Socket::CreateUnixTCPSocket(), Socket::CreateUnixUDPSocket()}) {
        EXPECT_FALSE(second->bind(directory.address("s")));
        EXPECT_EQ(errno, EADDRINUSE);
      }
      EXPECT_TRUE(std::filesystem::exists(directory.path("s")));
      EXPECT_TRUE(first->close());
    }
  });
}

// Another process has found it dead as well, and is about to replace it.
TEST_P(SocketTest, ADeadSocketIsLeftToWhoReplacesIt) {
  run([] {
    const SocketDirectory directory;
    leaveDeadSocket(directory, "s");
    const int lock = ::open(directory.path("s.lock").c_str(), O_RDWR | O_CREAT, 0600);
    ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
    const Socket::ptr socket = Socket::CreateUnixTCPSocket();
    EXPECT_FALSE(socket->bind(directory.address("s")));
    EXPECT_EQ(errno, EADDRINUSE);
    EXPECT_TRUE(std::filesystem::exists(directory.path("s")));
    ::close(lock);  // it has died: the file is no lock any more
    EXPECT_TRUE(socket->bind(directory.address("s"))) << std::strerror(errno);
  });
}

TEST_P(SocketTest, CloseRemovesTheFileThatBindMade) {
  run([] {
    const SocketDirectory directory;
    const auto exists = [&] { return std::filesystem::exists(directory.path("s")); };
    const Socket::ptr closed = listenerOn(directory.address("s"));
    EXPECT_TRUE(exists());
    EXPECT_TRUE(closed->close());
    EXPECT_FALSE(exists());
    { const Socket::ptr dropped = listenerOn(directory.address("s")); }
    EXPECT_FALSE(exists());

    const Socket::ptr moved = listenerOn(directory.address("s"));
    std::filesystem::rename(directory.path("s"), directory.path("old"));
    const Socket::ptr other = listenerOn(directory.address("s"));
    EXPECT_TRUE(moved->close());
    EXPECT_TRUE(exists()) << "that of another socket stays";

    const pid_t child = ::fork();
    if (child == 0) {
      other->close();
      ::_exit(0);
    }
    int status;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(exists()) << "a child leaves it to its parent";
  });
}

TEST_P(SocketTest, ToStringNamesBothEnds) {
  run([] {
    const auto [client, server] = connectedEnds();
    const std::string text = client->toString();
    EXPECT_NE(text.find("sock=" + std::to_string(client->getSocket()) + " "), std::string::npos) << text;
    EXPECT_NE(text.find("local_address=" + server->getRemoteAddress()->toString()), std::string::npos) << text;
    EXPECT_NE(text.find("remote_address=" + server->getLocalAddress()->toString()), std::string::npos) << text;
    EXPECT_TRUE(client->close());
    EXPECT_NE(client->toString().find("sock=-1"), std::string::npos);
  });
}

// FM-06.
TEST_P(SocketTest, AHalfClosedConnectionStillCarriesTheAnswer) {
  run([] {
    const auto [client, server] = connectedEnds();
    ASSERT_EQ(client->send("question", 8), 8);
    ASSERT_TRUE(client->shutdown(SHUT_WR));
    char buffer[16];
    EXPECT_EQ(server->recv(buffer, sizeof buffer), 8);
    EXPECT_EQ(server->recv(buffer, sizeof buffer), 0);
    EXPECT_EQ(server->send("answer", 6), 6);
    EXPECT_EQ(client->recv(buffer, sizeof buffer), 6);
  });
}

// ---- Streams. ---------------------------------------------------------------------------------------------------------------

TEST_P(SocketTest, StreamsReadAndWriteFixedSizes) {
  run([] {
    auto [client, server] = connectedEnds();
    SocketStream out(client);
    const auto in = std::make_unique<SocketStream>(server);
    Beside writer([&] {
      for (const char* piece : {"he", "ll", "o"}) EXPECT_EQ(out.writeFixSize(piece, std::strlen(piece)), int(std::strlen(piece)));
    });
    char buffer[8] = {};
    EXPECT_EQ(in->readFixSize(buffer, 5), 5);
    EXPECT_STREQ(buffer, "hello");
    writer.join();
    EXPECT_EQ(in->readFixSize(buffer, 0), 0);
    EXPECT_EQ(out.write("x", 1), 1);
    out.close();
    EXPECT_EQ(in->readFixSize(buffer, 2), 0) << "the end came before";
    EXPECT_EQ(out.writeFixSize("x", 1), -1);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(out.readFixSize(buffer, size_t{1} << 31), -1);
    EXPECT_EQ(errno, EINVAL);
  });
}

TEST_P(SocketTest, AStreamClosesTheSocketItOwns) {
  run([] {
    const auto [client, server] = connectedEnds();
    {
      const SocketStream borrowed(client, false);
      EXPECT_TRUE(borrowed.isConnected());
      EXPECT_EQ(borrowed.getRemoteAddressString(), server->getLocalAddress()->toString());
      EXPECT_EQ(borrowed.getLocalAddressString(), server->getRemoteAddress()->toString());
    }
    EXPECT_TRUE(client->isValid());
    { const SocketStream owner(client); }
    EXPECT_FALSE(client->isValid());
  });
}

}  // namespace
}  // namespace sylar::test
