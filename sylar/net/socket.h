// A socket: TCP, UDP or Unix. In a fiber its calls suspend, on a plain thread they block.
//
//   Socket::ptr client = Socket::CreateTCP(address);
//   if (!client->connect(address, 1000)) ... errno tells, and client->isTimeout()
//   client->send("hello", 5);
//
// Calls that fail return -1, false or null, with errno: EBADF (closed, also by another fiber or thread meanwhile), EAGAIN (the
// timeout has passed, or MSG_DONTWAIT; ETIMEDOUT for connect), ECANCELED (the fiber was cancelled, or cancelRead() and its like),
// ENOTCONN, or the kernel's. None raises SIGPIPE.
//
// Thread safety: all calls from any fiber or thread, but open(), connect(), reconnect(), bind(), listen() and the setters one at
// a time. close() ends calls that are running: no call reaches a descriptor number that somebody else may have by then.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>

#include "sylar/base/os_mutex.h"
#include "sylar/net/address.h"
#include "sylar/timer/idle_list.h"

namespace sylar {

class TcpServer;

class Socket : public std::enable_shared_from_this<Socket> {
  struct Accepted;

 public:
  using ptr = std::shared_ptr<Socket>;
  using weak_ptr = std::weak_ptr<Socket>;

  enum Type { TCP = SOCK_STREAM, UDP = SOCK_DGRAM };
  enum Family { IPv4 = AF_INET, IPv6 = AF_INET6, UNIX = AF_UNIX };
  /// Why the last call that failed did.
  enum class Failure : uint8_t { kNone, kTimeout, kCanceled, kClosed, kOther };

  /// Of the family of `address`, which is not null. If no descriptor can be had, the socket is not valid; bind() and connect()
  /// try again.
  static ptr CreateTCP(const Address::ptr& address);
  static ptr CreateUDP(const Address::ptr& address);
  static ptr CreateTCPSocket();
  static ptr CreateUDPSocket();
  static ptr CreateTCPSocket6();
  static ptr CreateUDPSocket6();
  static ptr CreateUnixTCPSocket();
  static ptr CreateUnixUDPSocket();

  Socket(int family, int type, int protocol = 0);
  /// What accept() makes of a descriptor.
  Socket(const Accepted& accepted);  // NOLINT(google-explicit-constructor): nobody else can name it
  virtual ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  /// Milliseconds that one call may wait; -1: without limit, as at first. Survives a reconnect.
  int64_t getSendTimeout() const { return m_timeouts[kSend].load(std::memory_order_relaxed); }
  int64_t getRecvTimeout() const { return m_timeouts[kRecv].load(std::memory_order_relaxed); }
  /// Less than 1: without limit. Makes a system call only if the value is another than before. Holds for calls that begin
  /// afterwards.
  bool setSendTimeout(int64_t ms) { return setTimeout(kSend, ms); }
  bool setRecvTimeout(int64_t ms) { return setTimeout(kRecv, ms); }

  /// getsockopt(2), setsockopt(2).
  bool getOption(int level, int option, void* result, socklen_t* length) const;
  bool setOption(int level, int option, const void* value, socklen_t length);
  template <class T>
  bool getOption(int level, int option, T& result) const {
    socklen_t length = sizeof result;
    return getOption(level, option, &result, &length);
  }
  template <class T>
  bool setOption(int level, int option, const T& value) {
    return setOption(level, option, &value, sizeof value);
  }

  /// A connection of this listening socket; null: see above, and the errors of accept(2). It has TCP_NODELAY, and on TCP the
  /// timeouts, from the listener. Waits at most getRecvTimeout(). May suspend: yes.
  virtual Socket::ptr accept();
  /// A Unix path at which a dead socket lies, one that nobody listens to, is used again. False: EADDRINUSE, EACCES, ...
  virtual bool bind(const Address::ptr addr);
  /// Up to `timeout_ms`; -1: 5 s in a fiber (setConnectTimeout()), on a plain thread as long as the kernel tries. If it fails,
  /// the socket is closed; the next connect() opens a new one. May suspend: yes.
  virtual bool connect(const Address::ptr addr, uint64_t timeout_ms = ~uint64_t{0});
  /// Closes it, and connects a new one to the same address. May suspend: yes.
  virtual bool reconnect(uint64_t timeout_ms = ~uint64_t{0});
  /// Also makes the descriptor non-blocking: accept() waits by poll, so that a listener may be shared with other processes.
  virtual bool listen(int backlog = SOMAXCONN);
  /// Ends the calls that are running, with EBADF. False: it was closed before. May suspend: no; blocks the thread if SO_LINGER
  /// says so.
  virtual bool close();

  /// Ends one or both directions of the connection, SHUT_RD, SHUT_WR or SHUT_RDWR, not the socket: a recv() that waits here
  /// returns 0, one of the peer when it has read what was sent. False with errno. May suspend: no. Source: shutdown(2).
  virtual bool shutdown(int how);

  /// Bytes sent, all of them on a blocking socket unless a timeout or an error comes in between; at most 2^31 - 4096. -1: see
  /// above, EPIPE (the peer has closed), ECONNRESET. May suspend: yes.
  virtual int send(const void* buffer, size_t length, int flags = 0);
  /// The same from buffers[length].
  virtual int send(const iovec* buffers, size_t length, int flags = 0);
  virtual int sendTo(const void* buffer, size_t length, const Address::ptr to, int flags = 0);
  virtual int sendTo(const iovec* buffers, size_t length, const Address::ptr to, int flags = 0);

  /// At least one byte, at most `length`. 0: the peer has closed (on UDP: an empty message); -1: see above. May suspend: yes.
  virtual int recv(void* buffer, size_t length, int flags = 0);
  /// The same into buffers[length].
  virtual int recv(iovec* buffers, size_t length, int flags = 0);
  /// `from`, if not null, becomes the sender's address, if it is of the same family.
  virtual int recvFrom(void* buffer, size_t length, Address::ptr from, int flags = 0);
  virtual int recvFrom(iovec* buffers, size_t length, Address::ptr from, int flags = 0);

  /// Of the other end, and of this one; of unknown family if there is none. Asked from the kernel once.
  Address::ptr getRemoteAddress() const;
  Address::ptr getLocalAddress() const;

  int getFamily() const { return m_family; }
  int getType() const { return m_type; }
  int getProtocol() const { return m_protocol; }
  /// connect() or accept() has made a connection of it and close() has not come; whether the peer is still there, recv() tells.
  /// UDP sockets count as connected.
  bool isConnected() const { return m_connected.load(std::memory_order_acquire) && isValid(); }
  bool isValid() const { return (m_life.load(std::memory_order_acquire) & kClosed) == 0; }
  /// SO_ERROR, which it clears; -1 if it cannot be asked.
  int getError() const;
  /// The number; -1: none. It is this socket's, until close().
  int getSocket() const { return m_fd.load(std::memory_order_relaxed); }

  Failure getFailure() const { return m_failure.load(std::memory_order_relaxed); }
  /// Whether the last call that failed did because its timeout had passed.
  bool isTimeout() const { return getFailure() == Failure::kTimeout; }

  /// End the calls that wait in fibers now, with ECANCELED; the connection stays. True: there was one. Source: sylar, where they
  /// only wake it.
  bool cancelRead();
  bool cancelWrite();
  bool cancelAccept() { return cancelRead(); }
  bool cancelAll();

  virtual std::ostream& dump(std::ostream& os) const;
  virtual std::string toString() const;

 private:
  friend class TcpServer;  // m_watched
  enum Side { kRecv, kSend };
  enum End { kLocal, kRemote };
  class Use;

  /// By a server with an idle timeout: every call that moves bytes touches `entry`, close() removes it.
  struct Watched {
    IdleList<Socket>::Entry entry;
    uint64_t moved_bytes = 0;  // that the kernel knew of when it was asked last; of the list's callback
  };

  // m_life: closed, beside the calls that are running: those that wait in the library (fibers), and those that block in the
  // kernel. closed -> open by open(), with no call running; open -> closed by close(). The last of the calls that ran then, or
  // close() itself, closes the number; so no call sees one that is somebody else's.
  static constexpr uint64_t kClosed = 1;
  static constexpr uint64_t kCall = 2;
  static constexpr uint64_t kBlockingCall = uint64_t{1} << 32;

  bool open();
  bool enter(uint64_t call) const;
  bool leave(uint64_t call) const;
  void breakOff(int fd, bool blocking_calls);
  bool awaitConnection(int fd) const;
  bool setTimeout(Side side, int64_t ms);
  bool applyTimeout(int fd, Side side, int64_t ms);
  template <class Call>
  int transfer(int flags, Call call);
  int result(ssize_t done) const;
  bool fail(int error) const;
  bool cancel(bool reads, bool writes);
  void setAddresses(Address::ptr local, Address::ptr remote);
  Address::ptr address(End end) const;

  mutable std::atomic<uint64_t> m_life{kClosed};
  mutable std::atomic<int> m_fd{-1};
  const int m_family;
  const int m_type;
  const int m_protocol;
  std::atomic<bool> m_connected{false};
  mutable std::atomic<Failure> m_failure{Failure::kNone};
  std::unique_ptr<Watched> m_watched;  // made before others have the socket, or null
  mutable Spinlock m_lock;
  std::atomic<int64_t> m_timeouts[2] = {-1, -1};
  mutable Address::ptr m_ends[2] SYLAR_GUARDED_BY(m_lock);
};

std::ostream& operator<<(std::ostream& os, const Socket& socket);

}  // namespace sylar
