// Statistics of the hooked calls in fibers: how often each function was called, how often it waited, and for how long.
//
//   for (const sylar::HookStats& one : sylar::hookStats())
//     std::cout << one.name << ": " << one.calls << " calls, " << one.parks << " waits, " << one.parked.count() << " ns\n";
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace sylar {

/// One hooked function, since the process began.
struct HookStats {
  const char* name;    ///< as libc calls it; a function that others are forms of, such as wait4 for waitpid
  uint64_t calls = 0;  ///< calls in fibers of an IOManager with hooks on
  uint64_t parks = 0;  ///< how often such a call has waited, or had a helper thread make it; a call may do so more than once
  /// The sum of those waits. Each begins with the iteration of the worker in which the fiber was suspended, so what that iteration
  /// ran before counts as well: usually less than 1 ms, but all that a fiber computes without a pause. Not under `sylar-run
  /// --report`.
  std::chrono::nanoseconds parked{};
};

/// Returns the functions that fibers have called, in the order of the alphabet. A wait that is under way is not in it. Calls of
/// plain threads and signal handlers are not counted, nor are those that never suspend, such as socket and dup. Of open and fcntl,
/// the opens of FIFOs and the locks that may wait are counted. Letting other fibers run after many calls is no wait. Thread safety:
/// any thread. May throw std::bad_alloc. May suspend: no.
std::vector<HookStats> hookStats();

}  // namespace sylar
