// A server of connections: one fiber accepts for each listening socket, one runs handleClient() for each connection.
//
//   class Echo : public sylar::TcpServer {
//     void handleClient(sylar::Socket::ptr client) override { ... }
//   };
//   auto server = std::make_shared<Echo>();              // in a fiber of an IOManager, or with IOManagers
//   server->bind(sylar::Address::LookupAny("0.0.0.0:8007"));
//   server->start();
//   ...
//   server->stop();                                      // nobody new comes in
//   server->join(Deadline::after(10s));                  // who is there may finish
//
// It holds limits (TcpServerLimits), survives the lack of descriptors and memory, and counts what it refuses. Must be held by a
// shared_ptr; a started server keeps itself alive, and its IOManagers' stop() waits for it.
//
// Thread safety: all calls from any fiber or thread; the setters before start().
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sylar/base/clock.h"
#include "sylar/base/os_mutex.h"
#include "sylar/io/iomanager.h"
#include "sylar/net/changes.h"
#include "sylar/net/socket.h"

namespace sylar {

struct TcpServerLimits {
  size_t max_connections = 10'000;  ///< served at once; then accepting pauses until one ends
  size_t max_per_peer = 512;        ///< of them from one IPv4 address or one IPv6 /64; more are closed at once
  bool limit_loopback = false;      ///< the latter also for peers on this host: loopback addresses
  int backlog = SOMAXCONN;          ///< connections that the kernel keeps for us
};

/// Since the server was made; `open` is now.
struct TcpServerCounts {
  uint64_t accepted = 0;          ///< connections taken from the kernel
  uint64_t open = 0;              ///< being served
  uint64_t refused_per_peer = 0;  ///< closed for max_per_peer
  uint64_t paused = 0;            ///< times that accepting paused for max_connections
  uint64_t accept_errors = 0;     ///< failed accepts, each of which was tried again
  uint64_t listeners_failed = 0;  ///< listeners given up for an error that would not pass
  uint64_t not_started = 0;       ///< connections closed because there was no memory for their fiber
  uint64_t exceptions = 0;        ///< that left handleClient()
  uint64_t idle_closed = 0;       ///< connections closed for the idle timeout
};

class TcpServer : public std::enable_shared_from_this<TcpServer> {
 public:
  using ptr = std::shared_ptr<TcpServer>;

  /// `io_worker` runs the connections, `accept_worker` the accepting fibers; `worker` is for the derived class. They outlive the
  /// server. Throws std::invalid_argument if one is null: there is no GetThis() outside an IOManager.
  explicit TcpServer(IOManager* worker = IOManager::GetThis(), IOManager* io_worker = IOManager::GetThis(),
                     IOManager* accept_worker = IOManager::GetThis());
  virtual ~TcpServer();
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;

  /// Listens on `addr`, and accepts there from start() on; false, with errno and a log line: it does not. May suspend: no.
  virtual bool bind(Address::ptr addr);
  /// Listens on all of them, or on none: then false, and `fails` has those that failed.
  virtual bool bind(const std::vector<Address::ptr>& addrs, std::vector<Address::ptr>& fails);
  /// Begins to accept. True: it does, or did. False, and it is stopped: there is no memory, or the IOManager has stopped.
  virtual bool start();
  /// Ends accepting: when it returns, connecting is refused. Connections go on, each after endClient() was called for it. No
  /// effect on one that is stopped, or that another call is stopping. It may be bound and started anew. Throws std::bad_alloc: it
  /// has stopped, and endClient() was not called.
  virtual void stop();
  /// Waits until no connection is open; false: some are at `deadline`, or the calling fiber was cancelled. Not from
  /// handleClient(). May suspend: yes.
  bool join(Deadline deadline = Deadline::never());

  /// Milliseconds that a connection's read may wait; 0: without limit. 120 000 at first (sylar's tcp_server.read_timeout).
  uint64_t getRecvTimeout() const { return m_recv_timeout; }
  void setRecvTimeout(uint64_t ms) { m_recv_timeout = ms; }
  /// Milliseconds that a connection's write may wait without progress; 0: without limit. 30 000 at first.
  uint64_t getSendTimeout() const { return m_send_timeout; }
  void setSendTimeout(uint64_t ms) { m_send_timeout = ms; }
  /// Milliseconds after which a connection on which no byte has moved, neither way, is closed, whatever its handler does: its
  /// calls end with EBADF. 0, as at first: never. A connection ends up to 10 ms, at most a 128th of the timeout, later, since
  /// what moves bytes again within that time is not noted anew. Calls on the descriptor that pass the Socket by, and a send that
  /// is long under way, are noticed on TCP only, when the timeout has passed: then it begins anew.
  uint64_t getIdleTimeout() const { return m_idle_timeout; }
  void setIdleTimeout(uint64_t ms) { m_idle_timeout = ms; }
  const TcpServerLimits& getLimits() const { return m_limits; }
  /// Throws std::invalid_argument if nobody could connect under them.
  void setLimits(const TcpServerLimits& limits);
  /// For log lines; "sylar/1.0.0" at first.
  std::string getName() const { return m_name; }
  virtual void setName(const std::string& name) { m_name = name; }

  bool isStop() const;
  TcpServerCounts getCounts() const;
  std::vector<Socket::ptr> getSocks() const;
  virtual std::string toString(const std::string& prefix = "") const;

 protected:
  /// Serves one connection, in a fiber of its own on an io_worker; the connection is closed when it returns. What it throws is
  /// logged.
  virtual void handleClient(Socket::ptr client);
  /// An open socket for a listener on `addr`; what its accept() returns is handed to handleClient(). A derived class may make one
  /// of another kind.
  virtual Socket::ptr makeListener(const Address::ptr& addr) { return Socket::CreateTCP(addr); }
  /// Accepts on `sock` until that is closed; runs in a fiber on accept_worker.
  virtual void startAccept(Socket::ptr sock);
  /// The server stops, and `client` is being served: a derived class may end it if it is idle. Called in stop(), without locks,
  /// beside handleClient(). Must not throw.
  virtual void endClient(Socket::ptr /*client*/) {}

  IOManager* const m_worker;
  IOManager* const m_io_worker;
  IOManager* const m_accept_worker;

 private:
  struct Connection;
  class Backoff;
  using Peer = std::array<uint8_t, 16>;

  Socket::ptr listenOn(const Address::ptr& addr);
  bool acceptOne(Socket& listener, Backoff& backoff);
  bool pause(const Socket& listener, Deadline deadline);
  void serve(const Socket& listener, const Socket::ptr& client);
  bool admit(const Socket& listener, Connection& connection);
  void ended(Connection& connection);
  void retire(Socket& listener);
  bool listensOn(const Socket& listener) const SYLAR_REQUIRES(m_mutex);
  bool acceptOn(const std::vector<Socket::ptr>& listeners);
  void count(uint64_t TcpServerCounts::*what, int by = 1);
  bool mayReport();
  void notStarted();
  std::shared_ptr<IdleList<Socket>> makeIdleList();
  void endIdle(const Socket::ptr& client, std::chrono::milliseconds timeout);

  std::string m_name = "sylar/1.0.0";
  uint64_t m_recv_timeout = 120'000;
  uint64_t m_send_timeout = 30'000;
  uint64_t m_idle_timeout = 0;
  TcpServerLimits m_limits;

  mutable OsMutex m_mutex;
  Changes m_changes;  // of listeners and connections
  bool m_stopped SYLAR_GUARDED_BY(m_mutex) = true;
  std::vector<Socket::ptr> m_listeners SYLAR_GUARDED_BY(m_mutex);
  std::shared_ptr<IdleList<Socket>> m_idle SYLAR_GUARDED_BY(m_mutex);  // of connections let in since start(); null: no timeout
  Connection* m_connections SYLAR_GUARDED_BY(m_mutex) = nullptr;
  std::map<Peer, uint32_t> m_per_peer SYLAR_GUARDED_BY(m_mutex);  // without those that have no limit
  TcpServerCounts m_counts SYLAR_GUARDED_BY(m_mutex);
  int64_t m_next_report_ns SYLAR_GUARDED_BY(m_mutex) = 0;
};

}  // namespace sylar
