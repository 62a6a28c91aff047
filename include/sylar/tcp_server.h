// A TcpServer runs one fiber for each listening socket, which accepts, and one for each connection, which runs handleClient().
//
//   class Echo : public sylar::TcpServer {
//     void handleClient(sylar::Socket::ptr client) override { ... }
//   };
//   auto server = std::make_shared<Echo>();              // in a fiber of an IOManager, or with IOManagers
//   server->bind(sylar::Address::LookupAny("0.0.0.0:8007"));
//   server->start();
//   ...
//   server->stop();                                      // ends accepting
//   server->join(Deadline::after(10s));                  // waits for the connections that are open
//
// It enforces limits (TcpServerLimits), survives a lack of descriptors or memory, and counts the connections that it refuses.
// It must be held by a shared_ptr. A started server keeps itself alive, and stop() of its IOManagers waits for it.
//
// In a forked child start() fails with ECANCELED, stop() does nothing, and join() returns false.
//
// Thread safety: all calls may come from any fiber or thread; the setters must come before start().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sylar/api.h"
#include "sylar/clock.h"
#include "sylar/iomanager.h"
#include "sylar/socket.h"

namespace sylar {

/// The limits of a TcpServer.
struct TcpServerLimits {
  size_t max_connections = 10'000;  ///< served at once; at the limit accepting pauses until one ends
  size_t max_per_peer = 512;        ///< served at once from one IPv4 address or one IPv6 /64; further ones are closed at once
  bool limit_loopback = false;      ///< max_per_peer also holds for loopback addresses
  int backlog = SOMAXCONN;          ///< connections that the kernel keeps until they are accepted, for each listening socket
  /// Listening sockets for each internet address, 1 to 1024. Among several the kernel spreads the connections (SO_REUSEPORT). They
  /// are accepted on different workers, and a connection stays where it was accepted, instead of going to the worker with the
  /// fewest. For very many new connections a second. The address is then not refused if another server of the same user has it with
  /// SO_REUSEPORT. Source: socket(7).
  int listeners = 1;
};

/// Counts since the server was made; `open` is the present number.
struct TcpServerCounts {
  uint64_t accepted = 0;          ///< connections taken from the kernel
  uint64_t open = 0;              ///< connections that are being served
  uint64_t refused_per_peer = 0;  ///< connections closed because of max_per_peer
  uint64_t paused = 0;            ///< times that accepting paused because of max_connections
  uint64_t accept_errors = 0;     ///< failed accepts, each of which was tried again
  uint64_t listeners_failed = 0;  ///< listeners given up because of a permanent error
  uint64_t not_started = 0;       ///< connections closed because there was no memory for their fiber
  uint64_t exceptions = 0;        ///< exceptions that left handleClient()
  uint64_t idle_closed = 0;       ///< connections closed because of the idle timeout
};

/// Accepts connections, and serves each of them in a fiber of its own.
class SYLAR_API TcpServer : public std::enable_shared_from_this<TcpServer> {
 public:
  using ptr = std::shared_ptr<TcpServer>;

  /// `io_worker` runs the connections, `accept_worker` the accepting fibers; `worker` is for the derived class. They must
  /// outlive the server. Throws std::invalid_argument if one is null, as GetThis() is outside an IOManager.
  explicit TcpServer(IOManager* worker = IOManager::GetThis(), IOManager* io_worker = IOManager::GetThis(),
                     IOManager* accept_worker = IOManager::GetThis());
  virtual ~TcpServer();
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;

  /// Listens on `addr`, and accepts there from start() on. Returns false, with errno and a log line, if it cannot. May suspend:
  /// no.
  virtual bool bind(Address::ptr addr);
  /// Listens on all of `addrs`, or on none; in that case it returns false, and adds those that failed to `fails`.
  virtual bool bind(const std::vector<Address::ptr>& addrs, std::vector<Address::ptr>& fails);
  /// Begins to accept. Returns true if the server accepts now, or did before. Returns false, with errno and a log line, if it
  /// is stopped because it is bound to no address (EDESTADDRREQ), there is no memory (ENOMEM), or the IOManager has stopped.
  virtual bool start();
  /// Stops accepting; new connections are refused when this returns. A started server first accepts the connections that wait
  /// in the kernel's queues, as far as there is room. Open connections continue, each after endClient() was called for it. Has
  /// no effect if the server is stopped, or another call is stopping it. Afterwards the server may be bound and started again.
  /// May throw std::bad_alloc; the server has then stopped, but endClient() was not called. May suspend: no.
  virtual void stop();
  /// Waits until no connection is open and, after stop(), none can come any more; one that is just being accepted is still
  /// served. Returns false if some are open at `deadline`, or if the calling fiber was cancelled. handleClient() must not call
  /// this. Throws std::bad_alloc if there is no memory for a deadline. May suspend: yes.
  bool join(Deadline deadline = Deadline::never());

  /// Returns the milliseconds that a connection's read may wait; 0 is no limit. The default is 120 000 (sylar's
  /// tcp_server.read_timeout).
  uint64_t getRecvTimeout() const;
  void setRecvTimeout(uint64_t ms);
  /// Returns the milliseconds that a connection's write may wait without progress; 0 is no limit. The default is 30 000.
  uint64_t getSendTimeout() const;
  void setSendTimeout(uint64_t ms);
  /// Returns the milliseconds after which a connection is closed if no byte has moved in either direction, whatever its handler
  /// does; the handler's calls then end with EBADF. 0, the default, is never. The close comes up to 10 ms late, but at most a
  /// 128th of the timeout, because activity that follows other activity within that time is not noted. Activity of calls that
  /// use the descriptor without the Socket, or of a send that takes long, counts on TCP only: it is noticed when the timeout
  /// has passed, and the timeout then begins again.
  uint64_t getIdleTimeout() const;
  void setIdleTimeout(uint64_t ms);
  const TcpServerLimits& getLimits() const;
  /// Sets the limits. Throws std::invalid_argument if no client could connect under them.
  void setLimits(const TcpServerLimits& limits);
  /// Says what makes the sockets of listeners from the next bind() on; see makeListener(). Null stands for plain TCP.
  void setListenerMaker(std::function<Socket::ptr(const Address::ptr&)> make);
  /// Says as which thread handleClient() runs, from the next connection on. kOwn, which it is at first, stands for what the options
  /// of io_worker say. See Fiber::setIdentity().
  void setIdentity(FiberIdentity identity);
  /// Returns the name in log lines; the default is "sylar".
  std::string getName() const;
  virtual void setName(const std::string& name);

  bool isStop() const;
  TcpServerCounts getCounts() const;
  std::vector<Socket::ptr> getSocks() const;
  virtual std::string toString(const std::string& prefix = "") const;

 protected:
  /// Serves one connection, in a fiber of its own on io_worker; the connection is closed when it returns. An exception that
  /// leaves it is logged.
  virtual void handleClient(Socket::ptr client);
  /// Returns an open socket for a listener on `addr`; the sockets that its accept() returns go to handleClient(). An IPv6 socket
  /// is for IPv6 alone (IPV6_V6ONLY). A derived class may make a socket of another kind. Source: ipv6(7).
  virtual Socket::ptr makeListener(const Address::ptr& addr);
  /// Accepts on `sock` until that is closed; runs in a fiber on accept_worker.
  virtual void startAccept(Socket::ptr sock);
  /// Called when the server stops while `client` is being served; a derived class may end the connection if it is idle. stop()
  /// makes the call, or the accepting fiber soon after for a connection that was just being accepted. The call is made without
  /// locks, at the same time as handleClient() runs, and must not throw.
  virtual void endClient(Socket::ptr /*client*/) {}

  IOManager* const m_worker;
  IOManager* const m_io_worker;
  IOManager* const m_accept_worker;

 private:
  struct Impl;
  const std::unique_ptr<Impl> m_impl;
};

}  // namespace sylar
