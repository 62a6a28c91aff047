// Internal. The bytes of an HTTP connection over a socket, with timeouts of that socket. Another thread can ask for the end.
#pragma once

#include <chrono>
#include <span>

#include "sylar/base/internal.h"
#include "sylar/http/byte_stream.h"
#include "sylar/http/limits.h"
#include "sylar/net/socket_control.h"
#include "sylar/socket.h"

namespace sylar::http::detail {

/// Thread safety: one reader and one writer at a time; end() from any thread.
class SocketBytes final : public ByteSource, public ByteSink {
 public:
  /// Both arguments must outlive it. A peer that takes too little of what is written to it loses the connection
  /// (HttpLimits::write_timeout).
  SocketBytes(Socket& socket, const HttpLimits& limits) : m_socket(socket), m_limits(limits) {}
  ~SocketBytes() { endIdle(); }  // an exception may have ended the wait
  SocketBytes(const SocketBytes&) = delete;
  SocketBytes& operator=(const SocketBytes&) = delete;

  ssize_t read(char* buffer, size_t size, std::chrono::nanoseconds timeout) override;
  ssize_t readInto(InputBuffer& buffer, std::chrono::nanoseconds timeout) override;
  bool writeAll(std::span<iovec> parts) override;

  /// The next read() is for a request of which nothing has come. It waits for `grace` whether end() was called or not. When that
  /// has passed it is idle: if end() was called, or is called then, it ends as if its timeout had passed.
  void awaitsRequest(std::chrono::nanoseconds grace) { m_grace = grace; }
  /// Lets no further request begin on `socket`, whether or not a session reads from it yet. Bytes that the kernel has received are
  /// still read.
  static void end(Socket& socket);
  bool isEnding() const { return endRequest().ending.load(std::memory_order_relaxed); }
  /// Returns true if the kernel has received bytes that were not read.
  bool hasUnread() const { return SocketControl::unread(m_socket) > 0; }

  /// Ends the writing, and tells the peer.
  void shutdownWrite();
  /// Makes the close a reset, so that the peer does not take what it has for the whole. The kernel drops what the peer did not
  /// take.
  void abort();
  bool isCut() const { return m_cut; }

 private:
  static constexpr std::chrono::nanoseconds kNoRequest = std::chrono::nanoseconds::max();

  template <class Receive>
  ssize_t receiveWithin(std::chrono::nanoseconds timeout, Receive receive);
  template <class Receive>
  ssize_t receiveFor(std::chrono::nanoseconds timeout, Receive receive);
  template <class Receive>
  ssize_t receiveIdle(std::chrono::nanoseconds timeout, Receive receive);
  void endIdle();
  bool awaitTaken();

  // receiveIdle() sets `idle` and then looks at `ending`; end() sets `ending` and then looks at `idle`. All four are in one total
  // order, so at least one of the two sees the other. The socket's lock keeps `idle` while end() acts on it.
  EndRequest& endRequest() const { return SocketControl::endRequest(m_socket); }

  Socket& m_socket;
  const HttpLimits& m_limits;
  bool m_cut = false;
  std::chrono::nanoseconds m_grace = kNoRequest;  // of the next read
};

}  // namespace sylar::http::detail
