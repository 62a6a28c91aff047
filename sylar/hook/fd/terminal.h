// Internal. Reads of terminals, which are limited by the terminal's mode.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sylar/hook/core/wait_loop.h"

namespace sylar::terminal {

/// One read of a terminal in the mode that it has at the start: by lines, or in raw mode by VMIN bytes or VTIME tenths of a
/// second. Source: termios(3).
class Reading {
 public:
  explicit Reading(IoCall& call);

  /// Returns how many of `size` bytes a read takes now without waiting, SIZE_MAX for any number. Returns 0 if it would wait;
  /// the call has then been told how long, until -ETIME.
  size_t bytesNow(size_t size);
  /// Returns how many bytes the read takes when that time is over.
  size_t bytesAtLast() const;
  /// Returns true if the other side went away while this read waited. The read then fails, and only later ones report the end.
  bool wasHungUp() const;

 private:
  size_t rawBytesNow(size_t size);

  IoCall& m_call;
  bool m_raw = false;
  bool m_timed = false;
  bool m_waited = false;
  uint8_t m_min = 0;
  uint8_t m_tenths = 0;
  size_t m_waiting = 0;  // bytes seen last
};

}  // namespace sylar::terminal
