// A Connection is one client, and the fiber that serves it.
//
// Thread safety: serve() runs in one fiber. The idle list may close the connection from another one meanwhile.
#pragma once

#include <memory>
#include <string>

#include "engine.h"
#include "outbox.h"
#include "request_reader.h"
#include "sylar/idle_list.h"
#include "sylar/socket.h"
#include "sylar/sync/future.h"

namespace ttlkv {

class Connection {
 public:
  Connection(Engine& engine, sylar::Socket::ptr socket, uint64_t id);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Answers the requests of the client until one of the two ends. May suspend: yes.
  void serve();
  /// Ends the calls of the fiber. Any thread. May suspend: no.
  void close() { m_socket->close(); }

  sylar::IdleEntry idle;  ///< touched by each byte that arrives

 private:
  bool executeAll();
  bool flush();
  Outbox& outbox();
  void finish();

  Engine& m_engine;
  const sylar::Socket::ptr m_socket;
  RequestReader m_reader;
  Session m_session;
  std::string m_out;                 // replies that were not sent yet
  std::shared_ptr<Outbox> m_outbox;  // made by the first subscription
  sylar::Future<void> m_sender;      // the fiber that empties it
};

}  // namespace ttlkv
