// For the tests of servers: a server whose handler is a function, and what its clients see.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sylar/tcp_server.h"
#include "tests/net/support.h"

namespace sylar::test {

class TestServer : public TcpServer {
 public:
  using Handler = std::function<void(Socket::ptr)>;
  TestServer(IOManager& iom, Handler handler) : TcpServer(&iom, &iom, &iom), m_handler(std::move(handler)) {}

  /// Bound to a port of the kernel's choice, and started.
  static std::shared_ptr<TestServer> started(IOManager& iom, Handler handler, const TcpServerLimits& limits = {}) {
    auto server = std::make_shared<TestServer>(iom, std::move(handler));
    server->setLimits(limits);
    EXPECT_TRUE(server->bind(loopback()));
    EXPECT_TRUE(server->start());
    return server;
  }

  Address::ptr address() const { return m_address != nullptr ? m_address : getSocks().front()->getLocalAddress(); }
  /// A port of the kernel's choice stays this server's when it has stopped: who connects then is refused, and meets nobody else.
  bool bind(Address::ptr addr) override {
    const auto ip = std::dynamic_pointer_cast<IPAddress>(addr);
    if (ip != nullptr && ip->getPort() == 0) {
      m_ports.push_back(heldPort(ip));
      addr = m_ports.back()->getLocalAddress();
    }
    if (!TcpServer::bind(std::move(addr))) return false;
    m_address = getSocks().back()->getLocalAddress();
    return true;
  }
  using TcpServer::bind;

  std::function<void(Socket::ptr)> on_end;  ///< of a client that is being served at stop()

 protected:
  void handleClient(Socket::ptr client) override { m_handler(std::move(client)); }
  void endClient(Socket::ptr client) override {
    if (on_end) on_end(std::move(client));
  }

 private:
  const Handler m_handler;
  std::vector<Socket::ptr> m_ports;
  Address::ptr m_address;
};

inline void echo(const Socket::ptr& client) {
  char buffer[256];
  for (int n; (n = client->recv(buffer, sizeof buffer)) > 0;) EXPECT_EQ(client->send(buffer, static_cast<size_t>(n)), n);
}

/// Whether the server answers on it.
inline bool echoes(Socket& client) {
  char byte = 'e';
  return client.send(&byte, 1) == 1 && client.recv(&byte, 1) == 1;
}

/// Whether the server has closed it, in order or by a reset.
inline bool isEnded(Socket& client) {
  char byte;
  return client.recv(&byte, 1) <= 0 && !client.isTimeout();
}

/// Waits for what another fiber or thread brings about; the test's own time limit ends it else.
inline void until(const std::function<bool()>& condition) {
  while (!condition()) {
    if (IOManager::GetThis() != nullptr) {
      Fiber::YieldToReady();
    } else {
      sched_yield();
    }
  }
}

}  // namespace sylar::test
