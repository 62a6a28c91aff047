// A stream of bytes, whatever carries it: a socket, TLS over one, a file.
//
// Thread safety: one reader and one writer at a time; close() from anywhere, if the derived class says so.
#pragma once

#include <cstddef>
#include <memory>

namespace sylar {

class Stream {
 public:
  using ptr = std::shared_ptr<Stream>;

  Stream() = default;
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Reads at least one byte and at most `length` into buffer[length]. > 0: that many; 0: the peer has closed, or `length` is 0;
  /// < 0: error, in errno. May suspend: yes. Source: sylar.
  virtual int read(void* buffer, size_t length) = 0;
  /// Writes buffer[length]. > 0: that many, which may be fewer; <= 0 as read(). May suspend: yes. Source: sylar.
  virtual int write(const void* buffer, size_t length) = 0;

  /// Reads until buffer[length] is full. `length`, or what the read() said that brought the end or failed: <= 0; how much came
  /// before is not told then. `length` <= INT_MAX, or -1 with EINVAL. May suspend: yes. Source: sylar.
  virtual int readFixSize(void* buffer, size_t length);
  /// Writes all of buffer[length]; results as readFixSize(). May suspend: yes. Source: sylar.
  virtual int writeFixSize(const void* buffer, size_t length);

  /// Nothing is read or written from now on. Source: sylar.
  virtual void close() = 0;
};

}  // namespace sylar
