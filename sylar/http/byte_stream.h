// Internal. The interface between the protocol and the connection that carries it: a source and a sink of bytes. The protocol
// knows no sockets; a session implements both over one, tests implement them over memory.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <span>

#include "sylar/base/internal.h"
#include "sylar/http/input_buffer.h"

namespace sylar::http::detail {

/// Supplies bytes from the peer. Thread safety: one caller at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Reads the bytes that are there into `buffer[size]`, size > 0. Waits for the first byte, at most for `timeout` >= 0. The
  /// limit is a time and not a deadline, so that a caller with the same limit as before reads no clock. Returns the number of
  /// bytes (> 0), 0 at the end of the stream, or -1 with errno: EAGAIN if the time has passed, else the error that broke the
  /// connection. May suspend: yes, but not after it has begun to fill `buffer`, which may be shared with other fibers of the
  /// thread. Source: recv(2).
  virtual ssize_t read(char* buffer, size_t size, std::chrono::nanoseconds timeout) = 0;
  /// Does the same into the room of `buffer`. A source may take that room only when bytes have come. May throw
  /// std::bad_alloc.
  virtual ssize_t readInto(InputBuffer& buffer, std::chrono::nanoseconds timeout) {
    const std::span<char> room = buffer.room();
    const ssize_t count = read(room.data(), room.size(), timeout);
    if (count > 0) buffer.filled(static_cast<size_t>(count));
    return count;
  }
};

/// Takes bytes for the peer. Thread safety: one caller at a time.
class ByteSink {
 public:
  virtual ~ByteSink() = default;

  /// Writes all `parts` in order; the implementation may change the iovecs as it does so. Returns true when everything is
  /// written. Returns false with errno if the connection is lost or the peer reads too slowly (the sink enforces that limit), and
  /// then nothing more may be written. May suspend: yes. Source: writev(2).
  virtual bool writeAll(std::span<iovec> parts) = 0;
};

}  // namespace sylar::http::detail
