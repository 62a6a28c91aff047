// Internal. Finds out what another thread of the process is doing: in which system call it waits, and its backtrace.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// The system call in which a thread waits.
struct WaitingCall {
  static constexpr long kNone = -1;
  static constexpr long kNotTold = -2;

  long number = kNotTold;
  bool has_timeout = false;  ///< of a futex

  /// Returns its name, "system call N" for one that is not known here, and "" for none.
  std::string name() const;
  /// Returns true if a signal handler with SA_RESTART changes nothing: there is no call, or one that moves nothing and is
  /// restarted. A call that has moved bytes ends with what it has, and one that waits for a socket with a timeout fails. Source:
  /// signal(7).
  bool bearsSignal() const;
};

/// Reads the call of the thread from /proc. Source: proc(5), /proc/pid/task/tid/syscall.
WaitingCall waitingCallOf(pid_t thread);

/// What a thread told of itself.
struct ThreadAnswer {
  std::array<void*, 48> frames{};  ///< return addresses, innermost first
  size_t frame_count = 0;

  /// Returns one line for each frame.
  std::vector<std::string> backtrace() const;
};

/// Makes `thread` tell of itself, by a signal. Returns false if it does not within a second, for instance because it
/// blocks all signals. Thread safety: any thread; one asks at a time.
bool askThread(pid_t thread, ThreadAnswer& answer);
/// Installs what askThread() needs. To be called before it.
void enableAskThread();

}  // namespace sylar::detail
