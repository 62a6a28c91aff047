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

  /// From now on, until bytes have arrived, a read() that finds nothing returns the end of the stream if end() was called or is
  /// called during the read.
  void beginIdle();
  /// Acts as beginIdle() after HttpLimits::new_grace. Until then the next read() waits for bytes whether end() was called or not.
  void beginNew() {
    endIdle();
    m_grace = m_limits.new_grace;
    if (m_grace.count() <= 0) beginIdle();
  }
  void endIdle() { endRequest().idle.store(false, std::memory_order_relaxed); }
  /// Lets no further request begin on `socket`, whether or not a session reads from it yet. Bytes that the kernel has received are
  /// still read.
  static void end(Socket& socket);
  bool isEnding() const { return endRequest().ending.load(std::memory_order_relaxed); }

  /// Ends the writing, and tells the peer.
  void shutdownWrite();
  /// Makes the close a reset, so that the peer does not take what it has for the whole. The kernel drops what the peer did not
  /// take.
  void abort();
  bool isCut() const { return m_cut; }

 private:
  template <class Receive>
  ssize_t receiveWithin(std::chrono::nanoseconds timeout, Receive receive);
  bool awaitTaken();

  // beginIdle() sets `idle` and then looks at `ending`; end() sets `ending` and then looks at `idle`. All four are in one total
  // order, so at least one of the two sees the other.
  EndRequest& endRequest() const { return SocketControl::endRequest(m_socket); }

  Socket& m_socket;
  const HttpLimits& m_limits;
  bool m_cut = false;
  std::chrono::nanoseconds m_grace{0};  // of the next read
};

}  // namespace sylar::http::detail
