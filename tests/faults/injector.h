// For tests: the n-th call of a kind fails. A program that is linked with injector.cc has these in place of the library's own
// calls (sylar/base/sys.h tells how) and of operator new.
//
// Calls are counted on all threads while a fault is armed. The test's own allocations then stand in a scope of Exempt, or
// takes its bad_alloc as the library's user would.
#pragma once

#include <cstddef>
#include <string>

namespace sylar::faults {

enum class Kind { kMap, kAdvise, kProtect, kEpollCreate, kEpollControl, kEventFd, kTimerFd, kThread, kAccept, kNew };

inline constexpr int kAllFromThere = 1'000'000'000;

struct Fault {
  Kind kind = Kind::kNew;
  int error = 0;  ///< errno of the failing call; operator new throws std::bad_alloc
  int width = 1;  ///< how many calls in a row fail
};
std::string describe(const Fault& fault);

/// From here on the `nth` call of its kind fails, counted from 1, and the width - 1 calls after it. For one test thread.
void arm(const Fault& fault, long nth);
/// Nothing fails any more. True: something did.
bool disarm();

/// While it exists nothing fails on its thread, and nothing is counted. Must not outlive a suspension.
class Exempt {
 public:
  Exempt();
  ~Exempt();
  Exempt(const Exempt&) = delete;
  Exempt& operator=(const Exempt&) = delete;
};

/// Kernels before 6.13 have no light guards: stacks are guarded by mprotect then. The library remembers it.
void pretendOldKernel();

/// Blocks that operator new has given and nobody has given back.
long liveBlocks();
/// Bytes mapped through the seam and not unmapped.
long mappedBytes();

}  // namespace sylar::faults
