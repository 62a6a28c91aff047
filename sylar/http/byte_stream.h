// The seam between the protocol and the connection that carries it: where bytes come from and where they go. The protocol
// knows no sockets; a session implements both over one, tests implement them over memory.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <span>

namespace sylar::http {

/// Bytes from the peer. Thread safety: one caller at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Reads what is there into `buffer[size]`, size > 0; waits for the first byte, at most for `timeout` >= 0. A time and not a
  /// deadline: who waits as long as before reads no clock. Returns bytes (> 0), 0 at the end of the stream, -1 + errno: EAGAIN
  /// when the time has passed, else whatever broke the connection. May suspend: yes, but not after it has begun to fill `buffer`,
  /// which may be shared with other fibers of the thread. Source: recv(2).
  virtual ssize_t read(char* buffer, size_t size, std::chrono::nanoseconds timeout) = 0;
};

/// Bytes to the peer. Thread safety: one caller at a time.
class ByteSink {
 public:
  virtual ~ByteSink() = default;

  /// Writes all `parts` in their order; the implementation may change the iovecs while it does. True when all is written; false +
  /// errno when the connection is lost or the peer reads too slowly (the sink holds that limit), and then nothing more may be
  /// written. May suspend: yes. Source: writev(2).
  virtual bool writeAll(std::span<iovec> parts) = 0;
};

}  // namespace sylar::http
