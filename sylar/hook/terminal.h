// Internal. What is special about terminals: reads that a mode limits, and writes that must not wait.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "sylar/hook/wait_loop.h"

namespace sylar::terminal {

/// One read of a terminal, as its mode has it at the start: by lines, or in raw mode VMIN bytes or VTIME tenths of a second.
/// Source: termios(3).
class Reading {
 public:
  explicit Reading(int fd);

  /// How many of `size` bytes a read takes now without waiting; SIZE_MAX: any number. 0: it would wait, and `call` has been told
  /// how long: until -ETIME.
  size_t bytesNow(IoCall& call, size_t size);
  /// How many it takes when that time is over.
  size_t bytesAtLast() const;
  /// Whether the other side went away while this read waited: then it fails, and only later ones tell the end.
  bool wasHungUp() const;

 private:
  size_t rawBytesNow(IoCall& call, size_t size);

  const int m_fd;
  bool m_raw = false;
  bool m_timed = false;
  bool m_waited = false;
  uint8_t m_min = 0;
  uint8_t m_tenths = 0;
  size_t m_waiting = 0;  // bytes seen last
};

/// Writes what fits, whatever the user's flags. >= 0; -errno, -EAGAIN: nothing fits; -EOPNOTSUPP: not possible in this way.
long writevNow(int fd, const iovec* parts, int count);

}  // namespace sylar::terminal
