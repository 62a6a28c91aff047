// Internal. Finds out what another thread of the process is doing: in which system call it waits, and its backtrace.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sylar {

/// The system call in which a thread waits.
struct WaitingCall {
  long number = -1;  ///< -1 if it waits in none

  /// Returns its name, "system call N" for one that is not known here, and "" for none.
  std::string name() const;
  /// Returns true if a signal handler with SA_RESTART would end it with EINTR. Source: signal(7).
  bool endsAtSignal() const;
};

/// Reads the call of the thread from /proc. Source: proc(5), /proc/pid/task/tid/syscall.
WaitingCall waitingCallOf(pid_t thread);

/// What a thread told of itself.
struct ThreadAnswer {
  uint64_t fiber_id = 0;  ///< the fiber that it runs, 0 for none
  char fiber_name[64] = "";
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

}  // namespace sylar
