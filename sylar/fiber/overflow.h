// Internal. Reports a fiber that overflows its stack on stderr, with id, name, bounds and a backtrace, and aborts the process.
//
// A handler of SIGSEGV and SIGBUS, installed once when the first thread begins to run fibers, checks whether a fault hit the
// guard of the running fiber. It runs on an alternate signal stack, because the fiber's own has no room left. Any other fault
// goes to the handler that was there before. A handler that the program installs later replaces this one, and may chain to it.
//
// Under AddressSanitizer this does nothing, because ASan brings its own handler and signal stack, and reports a hit guard
// itself.
#pragma once

#include "sylar/base/internal.h"

namespace sylar::detail {

struct FiberCore;

/// Gives the calling thread an alternate signal stack for as long as this object lives. A thread that already has one keeps its
/// own. If there is no memory, the thread goes without, and an overflow then ends the process by SIGSEGV.
///
/// Thread safety: belongs to its thread.
class OverflowReport {
 public:
  /// `owner` returns the fiber of the calling thread whose guard contains an address, or null. Every call passes the same
  /// function.
  explicit OverflowReport(const FiberCore* (*owner)(const void* address));
  ~OverflowReport();
  OverflowReport(const OverflowReport&) = delete;
  OverflowReport& operator=(const OverflowReport&) = delete;

 private:
  void* m_signal_stack = nullptr;
};

}  // namespace sylar::detail
