// For the tests of net: sockets in pairs, and code that runs in a fiber and on a plain thread alike.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "sylar/socket.h"
#include "tests/support/fibers.h"

namespace sylar::test {

inline IPAddress::ptr loopback(uint16_t port = 0) { return IPAddress::Create("127.0.0.1", port); }

/// A port of the kernel's choice on which nobody listens. While this socket lives, no other process gets the port; a listener of
/// this process may.
inline Socket::ptr heldPort(const Address::ptr& address = loopback()) {
  Socket::ptr socket = Socket::CreateTCP(address);
  EXPECT_TRUE(socket->bind(address)) << std::strerror(errno);
  return socket;
}

/// A listener on a port of the kernel's choice.
inline Socket::ptr listenerOn(const Address::ptr& address = loopback()) {
  Socket::ptr listener = Socket::CreateTCP(address);
  EXPECT_TRUE(listener->bind(address)) << std::strerror(errno);
  EXPECT_TRUE(listener->listen());
  return listener;
}

inline Socket::ptr connectedTo(const Address::ptr& address) {
  Socket::ptr client = Socket::CreateTCP(address);
  EXPECT_TRUE(client->connect(address)) << std::strerror(errno);
  return client;
}

/// The two ends of a connection.
struct Ends {
  Socket::ptr client;
  Socket::ptr server;
};

inline Ends connectedEnds(const Address::ptr& address = loopback()) {
  const Socket::ptr listener = listenerOn(address);
  Socket::ptr client = connectedTo(listener->getLocalAddress());
  return {client, listener->accept()};
}

/// A directory of its own for Unix sockets, gone with its scope.
class SocketDirectory {
 public:
  SocketDirectory() {
    char name[] = "/tmp/sylar_net_XXXXXX";
    EXPECT_NE(::mkdtemp(name), nullptr);
    m_path = name;
  }
  ~SocketDirectory() { std::filesystem::remove_all(m_path); }
  SocketDirectory(const SocketDirectory&) = delete;
  SocketDirectory& operator=(const SocketDirectory&) = delete;
  std::string path(const std::string& name) const { return m_path + "/" + name; }
  Address::ptr address(const std::string& name) const { return std::make_shared<UnixAddress>(path(name)); }

 private:
  std::string m_path;
};

/// A test whose body runs where its calls suspend, and where they block.
enum class Place { kFiber, kThread };
class InBothPlaces : public testing::TestWithParam<Place> {
 protected:
  void run(std::function<void()> body) {
    if (GetParam() == Place::kFiber) {
      inFiber(std::move(body));
    } else {
      std::thread(std::move(body)).join();
    }
  }

 private:
  LeakCheck m_leaks;
};
inline const auto kPlaces = testing::Values(Place::kFiber, Place::kThread);
inline std::string placeName(const testing::TestParamInfo<Place>& info) {
  return info.param == Place::kFiber ? "InFiber" : "OnThread";
}

/// Runs its function beside the test, where the test runs itself; joined with its scope.
class Beside {
 public:
  explicit Beside(std::function<void()> body) {
    if (IOManager* const iom = IOManager::GetThis()) {
      m_fiber = std::make_shared<Fiber>(std::move(body));
      iom->schedule(m_fiber);
    } else {
      m_thread = std::thread(std::move(body));
    }
  }
  ~Beside() { join(); }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  void join() {
    if (m_fiber != nullptr) std::exchange(m_fiber, nullptr)->join();
    if (m_thread.joinable()) m_thread.join();
  }

 private:
  Fiber::ptr m_fiber;
  std::thread m_thread;
};

}  // namespace sylar::test
