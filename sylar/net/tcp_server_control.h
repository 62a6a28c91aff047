// Internal. The inside of a TcpServer. tcp_server.cc begins and ends it, tcp_accept.cc accepts its connections and watches them.
//
// Thread safety: as TcpServer's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/base/os_mutex.h"
#include "sylar/net/peer_key.h"
#include "sylar/net/socket_control.h"
#include "sylar/sync/condition_variable.h"
#include "sylar/tcp_server.h"

namespace sylar {

struct TcpServer::Impl {
  struct Connection;
  class Accepting;
  class Backoff;

  explicit Impl(TcpServer& its_server) : server(its_server) {}

  Socket::ptr listenOn(const Address::ptr& addr, bool shares);
  bool listenOn(const Address::ptr& addr, std::vector<Socket::ptr>& sockets);
  bool acceptOn(const std::vector<Socket::ptr>& sockets);
  Socket::ptr anyListener() const;
  bool listensOn(const Socket& listener) const SYLAR_REQUIRES(mutex);
  bool isBusy() const SYLAR_REQUIRES(mutex);
  void retire(Socket& listener);

  bool acceptOne(Socket& listener, Backoff& backoff);
  void acceptRest(Socket& listener);
  bool pause(const Socket& listener, Deadline deadline);
  void serve(const Socket::ptr& client);
  bool admit(Connection& connection);
  void ended(Connection& connection);

  std::shared_ptr<IdleList<Socket>> makeIdleList();
  void endIdle(const Socket::ptr& client, std::chrono::milliseconds timeout);

  void count(uint64_t TcpServerCounts::*what, int by = 1);
  bool mayReport();
  void notStarted();

  TcpServer& server;
  std::string name = "sylar";
  uint64_t recv_timeout = 120'000;
  uint64_t send_timeout = 30'000;
  uint64_t idle_timeout = 0;
  TcpServerLimits limits;
  FiberIdentity identity = FiberIdentity::kOwn;  // of connections
  std::function<Socket::ptr(const Address::ptr&)> make_listener;
  bool staysWhereAccepted() const { return limits.listeners > 1 && IOManager::GetThis() == server.m_io_worker; }

  mutable OsMutex mutex;
  ConditionVariable changed;  // of listeners and connections
  bool stopped SYLAR_GUARDED_BY(mutex) = true;
  bool stopping SYLAR_GUARDED_BY(mutex) = false;   // a call of stop() is running
  bool told SYLAR_GUARDED_BY(mutex) = false;       // stop() has listed whom it tells; later ones are told one by one
  uint32_t accepting SYLAR_GUARDED_BY(mutex) = 0;  // running fibers that accept
  std::vector<Socket::ptr> listeners SYLAR_GUARDED_BY(mutex);
  std::shared_ptr<IdleList<Socket>> idle SYLAR_GUARDED_BY(mutex);  // of connections admitted since start(); null if no timeout
  Connection* connections SYLAR_GUARDED_BY(mutex) = nullptr;
  std::map<PeerKey, uint32_t> per_peer SYLAR_GUARDED_BY(mutex);  // without peers that have no limit
  TcpServerCounts counts SYLAR_GUARDED_BY(mutex);
  int64_t next_report_ns SYLAR_GUARDED_BY(mutex) = 0;
};

/// A connection from accept to close. It ends with its scope, even if its fiber never ran.
struct TcpServer::Impl::Connection {
  Connection(TcpServer::ptr its_server, Socket::ptr its_client) : server(std::move(its_server)), client(std::move(its_client)) {}
  ~Connection() { end(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void run();
  void failed(const char* what) const;
  void end();

  const TcpServer::ptr server;
  const Socket::ptr client;
  bool began = false;
  bool late = false;  // admitted after stop() had told the others
  // Under the server's lock:
  bool admitted = false;
  std::optional<PeerKey> peer;             // the peer for which it counts
  std::shared_ptr<IdleList<Socket>> idle;  // the server may have another by now
  Connection* next = nullptr;
  Connection* prev = nullptr;
};

/// Counts a fiber that accepts, for join(): a socket that it has just accepted may still become a connection.
class TcpServer::Impl::Accepting {
 public:
  explicit Accepting(Impl& impl) : m_impl(impl) {
    const Lock lock(m_impl.mutex);
    ++m_impl.accepting;
  }
  ~Accepting() {
    const Lock lock(m_impl.mutex);
    --m_impl.accepting;
    m_impl.changed.notify_all();
  }
  Accepting(const Accepting&) = delete;
  Accepting& operator=(const Accepting&) = delete;

 private:
  Impl& m_impl;
};

}  // namespace sylar
