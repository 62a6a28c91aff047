// Internal. A fiber that overflows its stack says so: id, name, bounds and a backtrace on stderr; then the process aborts.
//
// A handler of SIGSEGV and SIGBUS, installed once, when the first thread begins to run fibers, sees whether a fault hit the guard
// of the running fiber. It runs on an alternate signal stack, because the fiber's own has no room left. Any other fault goes to
// the handler that was there before. A handler that the program installs later replaces this one, and may chain to it.
//
// Under AddressSanitizer it does nothing: that brings both, and reports a hit guard itself.
#pragma once

namespace sylar {

/// The alternate signal stack of the calling thread, as long as this lives. A thread that has one already keeps its own.
/// Without memory the thread goes without: an overflow then ends the process by SIGSEGV.
///
/// Thread safety: belongs to its thread.
class OverflowReport {
 public:
  OverflowReport();
  ~OverflowReport();
  OverflowReport(const OverflowReport&) = delete;
  OverflowReport& operator=(const OverflowReport&) = delete;

 private:
  void* m_signal_stack = nullptr;
};

}  // namespace sylar
