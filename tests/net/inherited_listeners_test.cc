// Listening sockets of another process: who binds their address has them, with all that waits in their queues.
#include "sylar/net/inherited_listeners.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

#include "tests/net/server_support.h"

namespace sylar::test {
namespace {

/// A socket as another process would leave it: it listens, and nothing here knows of it.
int listenOn(const Address& address) {
  const int fd = ::socket(address.getFamily(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::bind(fd, address.getAddr(), address.getAddrLen()), 0) << ::strerrorname_np(errno);
  EXPECT_EQ(::listen(fd, 10), 0);
  return fd;
}

Address::ptr addressOf(int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size), 0);
  return Address::Create(reinterpret_cast<sockaddr*>(&name), size);
}

/// Returns true if a server that binds `address` answers a client that has connected before.
bool answersWhoCameBefore(const Address::ptr& address) {
  const Socket::ptr early = Socket::CreateTCP(address);
  EXPECT_TRUE(early->connect(address));
  IOManager iom(1, false, "heir");
  const auto server = std::make_shared<TestServer>(iom, echo);
  EXPECT_TRUE(server->bind(address));
  EXPECT_TRUE(server->start());
  const bool answered = echoes(*early);
  if (address->getFamily() == AF_INET) {
    int no_delay = 0;
    EXPECT_TRUE(server->getSocks().front()->getOption(IPPROTO_TCP, TCP_NODELAY, no_delay));
    EXPECT_EQ(no_delay, 1);
  }
  early->close();
  server->stop();
  EXPECT_TRUE(server->join());
  return answered;
}

// A restart may come with another number of listeners.
TEST(InheritedListeners, MayGetAnyNumberOfOthersBesideThem) {
  const int fd = listenOn(*loopback());
  const Address::ptr address = addressOf(fd);
  IOManager iom(2, false, "heir");
  for (const int number : {3, 2}) {
    const auto server = std::make_shared<TestServer>(iom, echo);
    server->setLimits({.listeners = number});
    if (number == 3) {
      ASSERT_TRUE(inherited_listeners::add(fd));
    }
    ASSERT_TRUE(server->bind(address)) << ::strerrorname_np(errno);
    const auto sockets = server->getSocks();
    EXPECT_EQ(sockets.size(), static_cast<size_t>(number));
    ASSERT_TRUE(server->start());
    EXPECT_EQ(inherited_listeners::closeRest(), number == 3 ? 0u : 1u);
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(echoes(*connectedTo(address)));
    for (const auto& socket : sockets) EXPECT_TRUE(inherited_listeners::add(::dup(socket->getSocket())));  // for the next
    server->stop();
    EXPECT_TRUE(server->join());
  }
  EXPECT_EQ(inherited_listeners::closeRest(), 2u);
}

// CD-G8, CD-G9
TEST(InheritedListeners, ServeWhoCameBefore) {
  const LeakCheck leaks;
  const int fd = listenOn(*loopback());
  const Address::ptr address = addressOf(fd);
  ASSERT_TRUE(inherited_listeners::add(fd));
  EXPECT_TRUE(answersWhoCameBefore(address));
  EXPECT_EQ(inherited_listeners::closeRest(), 0u);
}

// CD-G8, CD-G9
TEST(InheritedListeners, TheFileOfAUnixSocketStaysThatOfOthers) {
  const LeakCheck leaks;
  const auto path = std::filesystem::temp_directory_path() / ("inherited" + std::to_string(::getpid()));
  const auto address = std::make_shared<UnixAddress>(path.string());
  ASSERT_TRUE(inherited_listeners::add(listenOn(*address)));
  EXPECT_TRUE(answersWhoCameBefore(address));
  EXPECT_TRUE(std::filesystem::remove(path));
}

// CD-G9
TEST(InheritedListeners, AreThoseOfTheirAddressOnly) {
  const LeakCheck leaks;
  const int fd = listenOn(*loopback());
  ASSERT_TRUE(inherited_listeners::add(fd));
  EXPECT_EQ(inherited_listeners::take(*loopback()), -1);  // any port
  IOManager iom(1, false, "other");
  const auto server = TestServer::started(iom, echo);
  EXPECT_NE(*server->address(), *addressOf(fd));
  server->stop();
  EXPECT_EQ(inherited_listeners::closeRest(), 1u);
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
  EXPECT_EQ(inherited_listeners::closeRest(), 0u);
}

// CD-G9
TEST(InheritedListeners, MustListen) {
  const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int datagrams = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  for (const int fd : {silent, datagrams, file, 99'999}) EXPECT_FALSE(inherited_listeners::add(fd)) << fd;
  for (const int fd : {silent, datagrams, file}) EXPECT_EQ(::close(fd), 0);
}

}  // namespace
}  // namespace sylar::test
