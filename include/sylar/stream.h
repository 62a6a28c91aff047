// A stream of bytes over any carrier: a socket, TLS over one, a file.
//
// Thread safety: one reader and one writer at a time; close() from any thread, if the derived class allows it.
#pragma once

#include <cstddef>
#include <memory>

#include "sylar/api.h"

namespace sylar {

/// A stream of bytes over any carrier.
class SYLAR_API Stream {
 public:
  using ptr = std::shared_ptr<Stream>;

  Stream() = default;
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Reads at least one byte and at most `length` into buffer[length], and returns how many. Returns 0 if the peer has closed
  /// or `length` is 0, and < 0 on an error, with errno. May suspend: yes. Source: sylar.
  virtual int read(void* buffer, size_t length) = 0;
  /// Writes buffer[length], or a part of it, and returns how many bytes were written. A result <= 0 has the same meaning as
  /// that of read(). May suspend: yes. Source: sylar.
  virtual int write(const void* buffer, size_t length) = 0;

  /// Reads until buffer[length] is full, and returns `length`. Otherwise returns the result, <= 0, of the read() that found the
  /// end or failed; it does not tell how much was read before. Returns -1 with EINVAL if `length` > INT_MAX. May suspend: yes.
  /// Source: sylar.
  virtual int readFixSize(void* buffer, size_t length);
  /// Writes all of buffer[length], with a result as that of readFixSize(). May suspend: yes. Source: sylar.
  virtual int writeFixSize(const void* buffer, size_t length);

  /// Ends the stream: nothing is read or written from now on. Source: sylar.
  virtual void close() = 0;
};

}  // namespace sylar
