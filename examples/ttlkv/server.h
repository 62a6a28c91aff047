// The Server runs a fiber for each connection, and limits their number and their silence.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "connection.h"
#include "engine.h"
#include "sylar/idle_list.h"
#include "sylar/tcp_server.h"

namespace ttlkv {

class Server : public sylar::TcpServer {
 public:
  /// `engine` must outlive the server.
  Server(Engine& engine, sylar::IOManager* worker, sylar::IOManager* io_worker, sylar::IOManager* accept_worker);

 protected:
  void handleClient(sylar::Socket::ptr client) override;
  /// The service ends: requests that have arrived are answered, and the fiber then sees the end of its input.
  void endClient(sylar::Socket::ptr client) override { client->shutdown(SHUT_RD); }

 private:
  Engine& m_engine;
  std::atomic<uint64_t> m_last_id{0};
  std::unique_ptr<sylar::IdleList<Connection>> m_idle;  // null if connections may be silent forever
};

}  // namespace ttlkv
