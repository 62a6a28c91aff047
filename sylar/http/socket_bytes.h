// Internal. The bytes of an HTTP connection: their timeouts are those of its socket, and somebody else can ask for the end.
#pragma once

#include <atomic>
#include <chrono>
#include <span>

#include "sylar/http/byte_stream.h"
#include "sylar/http/limits.h"

namespace sylar {
class Socket;
}

namespace sylar::http {

/// Thread safety: one reader and one writer at a time; end() from any thread, while the socket is open.
class SocketBytes final : public ByteSource, public ByteSink {
 public:
  /// Both outlive it. A peer that takes too little of what is written to it is lost: HttpLimits::write_timeout.
  SocketBytes(Socket& socket, const HttpLimits& limits) : m_socket(socket), m_limits(limits) {}

  ssize_t read(char* buffer, size_t size, std::chrono::nanoseconds timeout) override;
  bool writeAll(std::span<iovec> parts) override;

  /// From now on read() that finds nothing is told the end of the stream if end() was called, or is called meanwhile; until bytes
  /// have come.
  void beginIdle();
  void endIdle() { m_idle.store(false, std::memory_order_relaxed); }
  /// No request begins any more. Bytes that the kernel has received are still read.
  void end();
  bool isEnding() const { return m_ending.load(std::memory_order_relaxed); }

  /// Nothing more is written; the peer is told.
  void shutdownWrite();
  /// The close will be a reset: the peer must not take what it has for the whole, and the kernel forgets what it did not take.
  void cut();
  bool isCut() const { return m_cut; }

 private:
  bool awaitTaken();
  /// Bytes that the kernel holds for the peer. Source: tcp(7), SIOCOUTQ.
  int untaken() const;
  void shutdownRead();

  Socket& m_socket;
  const HttpLimits& m_limits;
  // beginIdle() sets m_idle, then looks at m_ending; end() does it the other way round, all in one order: one of the two sees the
  // other.
  std::atomic<bool> m_idle{false};
  std::atomic<bool> m_ending{false};
  bool m_cut = false;
};

}  // namespace sylar::http
