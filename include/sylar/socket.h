// A Socket is a TCP, UDP or Unix socket. Its calls suspend in a fiber and block on a plain thread.
//
//   Socket::ptr client = Socket::CreateTCP(address);
//   if (!client->connect(address, 1000)) ... errno and client->isTimeout() tell why
//   client->send("hello", 5);
//
// A call that fails returns -1, false or null and sets errno: EBADF (the socket is closed, perhaps by another fiber or thread
// during the call), EAGAIN (the timeout has passed, or MSG_DONTWAIT; ETIMEDOUT for connect), ECANCELED (the fiber was
// cancelled, or cancelRead() or its like was called), ENOTCONN, or an error of the kernel. No call raises SIGPIPE.
//
// Thread safety: all calls may come from any fiber or thread, but connect(), reconnect(), bind(), listen() and the setters only
// one at a time. close() ends calls that are running, and no call reaches a descriptor number that belongs to another file by
// then.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>

#include "sylar/address.h"
#include "sylar/api.h"
#include "sylar/thread_mutex.h"

namespace sylar {

namespace detail {
class SocketControl;
class SocketFile;

/// The flags by which any thread asks a connection's protocol to end the connection.
struct EndRequest {
  std::atomic<bool> idle{false};  // the connection waits for a request of which nothing has come
  std::atomic<bool> ending{false};
};
}  // namespace detail

/// A TCP, UDP or Unix socket, whose calls suspend in a fiber and block on a plain thread.
class SYLAR_API Socket : public std::enable_shared_from_this<Socket> {
 public:
  using ptr = std::shared_ptr<Socket>;
  using weak_ptr = std::weak_ptr<Socket>;

  enum Type { TCP = SOCK_STREAM, UDP = SOCK_DGRAM };
  enum Family { IPv4 = AF_INET, IPv6 = AF_INET6, UNIX = AF_UNIX };
  /// The reason why the last failed call failed.
  enum class Failure : uint8_t { kNone, kTimeout, kCanceled, kClosed, kOther };

  /// Makes a socket of the family of `address`, which must not be null. The socket is not valid if there is no descriptor for
  /// it; bind() and connect() then try again.
  static ptr CreateTCP(const Address::ptr& address);
  static ptr CreateUDP(const Address::ptr& address);
  static ptr CreateTCPSocket();
  static ptr CreateUDPSocket();
  static ptr CreateTCPSocket6();
  static ptr CreateUDPSocket6();
  static ptr CreateUnixTCPSocket();
  static ptr CreateUnixUDPSocket();

  Socket(int family, int type, int protocol = 0);
  virtual ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  /// Returns the milliseconds that one call may wait; -1, the default, is no limit. The timeouts survive a reconnect.
  int64_t getSendTimeout() const { return m_timeouts[kSend].load(std::memory_order_relaxed); }
  int64_t getRecvTimeout() const { return m_timeouts[kRecv].load(std::memory_order_relaxed); }
  /// Sets the timeout of calls that begin afterwards; a value below 1 is no limit. A system call is made only if the value
  /// changes.
  bool setSendTimeout(int64_t ms) { return setTimeout(kSend, ms); }
  bool setRecvTimeout(int64_t ms) { return setTimeout(kRecv, ms); }

  /// Reads or sets an option of the socket, as getsockopt(2) and setsockopt(2) do.
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

  /// Returns a connection of this listening socket, which has TCP_NODELAY and, on TCP, the timeouts of the listener. Waits at
  /// most getRecvTimeout(). On failure returns null with an errno from the head of socket.h or from accept(2). May suspend:
  /// yes.
  virtual Socket::ptr accept();
  /// Binds the socket to `addr`. A file that a dead socket has left at a Unix path is replaced; if several processes try, one
  /// succeeds. close() removes the file that bind() has made, except in a child of a fork. Returns false with EADDRINUSE,
  /// EACCES, ... Throws std::bad_alloc. Source: unix(7).
  virtual bool bind(const Address::ptr addr);
  /// Connects within `timeout_ms`; -1 is 5 s in a fiber (setConnectTimeout()), and on a plain thread as long as the kernel
  /// tries. A failure closes the socket; the next connect() opens a new one. May suspend: yes.
  virtual bool connect(const Address::ptr addr, uint64_t timeout_ms = ~uint64_t{0});
  /// Closes the socket, and connects a new one to the same address. May suspend: yes.
  virtual bool reconnect(uint64_t timeout_ms = ~uint64_t{0});
  /// Listens, and makes the descriptor non-blocking: accept() waits by poll, so that processes may share a listener.
  virtual bool listen(int backlog = SOMAXCONN);
  /// Closes the socket and ends the calls that are running, with EBADF. Returns false if it was closed before. May suspend: no.
  /// Blocks the thread if SO_LINGER says so.
  virtual bool close();

  /// Ends one or both directions of the connection (SHUT_RD, SHUT_WR or SHUT_RDWR), but not the socket: a recv() that waits here
  /// returns 0, and so does one of the peer as soon as it has read all that was sent. May suspend: no. Source: shutdown(2).
  virtual bool shutdown(int how);

  /// Sends, and returns how many bytes were sent, at most 2^31 - 4096. On a blocking socket that is all of them, unless a
  /// timeout or an error comes in between. On failure returns -1 with an errno from the head of socket.h, EPIPE (the peer has
  /// closed) or ECONNRESET. May suspend: yes.
  virtual int send(const void* buffer, size_t length, int flags = 0);
  /// Sends from buffers[length], with the same result.
  virtual int send(const iovec* buffers, size_t length, int flags = 0);
  virtual int sendTo(const void* buffer, size_t length, const Address::ptr to, int flags = 0);
  virtual int sendTo(const iovec* buffers, size_t length, const Address::ptr to, int flags = 0);

  /// Receives at least one byte and at most `length`, and returns how many. Returns 0 if the peer has closed (on UDP: for an
  /// empty message), or -1 with an errno from the head of socket.h. May suspend: yes.
  virtual int recv(void* buffer, size_t length, int flags = 0);
  /// Receives into buffers[length], with the same result.
  virtual int recv(iovec* buffers, size_t length, int flags = 0);
  /// Receives, and stores the sender's address in `from` if that is not null and of the same family.
  virtual int recvFrom(void* buffer, size_t length, Address::ptr from, int flags = 0);
  virtual int recvFrom(iovec* buffers, size_t length, Address::ptr from, int flags = 0);

  /// Waits until send() can take something, or fails, for at most `timeout_ms`; -1 is no limit. Returns 1, 0 if the time has
  /// passed, or -1 with an errno from the head of socket.h. May suspend: yes. Source: poll(2).
  int awaitWritable(int timeout_ms) const;
  /// Returns how many bytes were sent that the other end has not confirmed, or -1 with errno. Source: tcp(7), SIOCOUTQ.
  int getUnsent() const;

  /// Returns the address of the other end, or of this one; an UnknownAddress if there is none. The kernel is asked once.
  Address::ptr getRemoteAddress() const;
  Address::ptr getLocalAddress() const;

  int getFamily() const { return m_family; }
  int getType() const { return m_type; }
  int getProtocol() const { return m_protocol; }
  /// Returns true from connect() or accept() until close(), and always on UDP. It does not tell if the peer is still there;
  /// recv() does.
  bool isConnected() const { return m_connected.load(std::memory_order_acquire) && isValid(); }
  bool isValid() const { return (m_life.load(std::memory_order_acquire) & kClosed) == 0; }
  /// Returns and clears SO_ERROR; returns -1 if it cannot be read.
  int getError() const;
  /// Returns the descriptor's number, which is this socket's until close(), or -1 if there is none.
  int getSocket() const { return m_fd.load(std::memory_order_relaxed); }

  Failure getFailure() const { return m_failure.load(std::memory_order_relaxed); }
  /// Returns true if the last failed call failed because its timeout had passed.
  bool isTimeout() const { return getFailure() == Failure::kTimeout; }

  /// Ends the calls that wait in fibers now, with ECANCELED; the connection stays. Returns true if there was one. Source:
  /// sylar, where it only wakes the call.
  bool cancelRead();
  bool cancelWrite();
  bool cancelAccept() { return cancelRead(); }
  bool cancelAll();

  virtual std::ostream& dump(std::ostream& os) const;
  virtual std::string toString() const;

 protected:
  class Use;

  /// Makes the end of a connection of `listener`, which owns `fd` from then on.
  Socket(const Socket& listener, int fd, Address::ptr peer);
  /// Makes the socket that accept() returns. A derived class may make one of its own kind. May throw only if `fd` is not owned yet.
  virtual Socket::ptr makeAccepted(int fd, Address::ptr peer);
  int result(ssize_t done) const;
  bool fail(int error) const;
  /// Says whether a derived class has taken bytes from the kernel that recv() has not returned yet.
  void holdBytes(bool holds) { m_holds_bytes.store(holds, std::memory_order_relaxed); }

 private:
  friend class detail::SocketControl;
  enum Side { kRecv, kSend };
  enum End { kLocal, kRemote };
  class Connection;
  struct Watched;

  // m_life holds the bit `closed` and the numbers of calls that are running: those that wait in the library (fibers), and those
  // that block in the kernel. closed -> open by open(), with no call running; open -> closed by close(). The last of the calls
  // that run at a close(), or close() itself, closes the number; so no call sees a number that belongs to another file.
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
  bool cancel(bool reads, bool writes);
  void setFile(std::unique_ptr<detail::SocketFile> file);
  void setAddresses(Address::ptr local, Address::ptr remote);
  Address::ptr address(End end) const;

  mutable std::atomic<uint64_t> m_life{kClosed};
  mutable std::atomic<int> m_fd{-1};
  const int m_family;
  const int m_type;
  const int m_protocol;
  std::atomic<bool> m_connected{false};
  mutable std::atomic<Failure> m_failure{Failure::kNone};
  std::atomic<bool> m_holds_bytes{false};
  std::atomic<bool> m_accept_waits{true};  // if false, accept() fails with EAGAIN when the queue is empty
  detail::EndRequest m_end;
  mutable Spinlock m_lock;
  std::unique_ptr<Watched> m_watched;  // set by a server for its idle timeout, otherwise null
  std::atomic<int64_t> m_timeouts[2] = {-1, -1};
  mutable Address::ptr m_ends[2] SYLAR_GUARDED_BY(m_lock);
  std::unique_ptr<detail::SocketFile> m_file SYLAR_GUARDED_BY(m_lock);  // made by bind(), kept until close()
};

SYLAR_API std::ostream& operator<<(std::ostream& os, const Socket& socket);

}  // namespace sylar
