// What fibers did in hooked calls: how often they called, how often they waited, and for how long.
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
  const char* name;                   ///< as libc calls it; a function that others are forms of, such as wait4 for waitpid
  uint64_t calls = 0;                 ///< calls in fibers with hooks on
  uint64_t parks = 0;                 ///< how often such a call has suspended its fiber; a call may do so more than once
  std::chrono::nanoseconds parked{};  ///< the sum of those waits, each counted by the worker's iterations, so to about 1 ms
};

/// Returns the functions that fibers have called, in the order of the alphabet. A wait that is under way is not in it. Calls of plain
/// threads and signal handlers are not counted, nor are those that never suspend, such as socket and dup. Thread safety: any thread.
/// May throw std::bad_alloc. May suspend: no.
std::vector<HookStats> hookStats();

}  // namespace sylar
