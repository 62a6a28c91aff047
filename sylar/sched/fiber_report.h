// Internal. What dump() says of the fibers of a scheduler: what each waits for, who holds that, and which wait for one another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/fiber/held_locks.h"
#include "sylar/scheduler.h"

namespace sylar::detail {

/// One fiber at one moment. Made from any thread while the fiber goes on, so its parts may be of different moments.
struct FiberReport : FiberInfo {
  FiberReport(const Fiber& fiber, uint64_t its_resumer, const HeldLocks& held, pid_t its_thread);

  bool parked;
  bool resuming;     // has resumed another by hand
  uint64_t resumer;  // the id of the scheduler's fiber that has resumed it by hand, be it through others; or 0
  FiberControl::Wants wants;
  pid_t thread;                  // the id by which libc knows the thread as which it runs, or 0 if that is the worker's
  std::vector<uintptr_t> holds;  // the locks that it holds, for writing or reading, as far as they are known
};

/// The fibers that one report is about, which must outlive it.
class FiberReports {
 public:
  explicit FiberReports(const std::vector<FiberReport>& all);

  /// Writes one line for each of `fibers`, some of all.
  void write(std::ostream& os, std::span<const FiberReport> fibers) const;
  /// Writes one line for each circle of fibers that wait for one another, and so will wait forever.
  void writeDeadlocks(std::ostream& os) const;

 private:
  /// The fibers that hold a lock: one, or the readers.
  struct Holders {
    const FiberReport* first = nullptr;
    size_t count = 0;
  };
  Holders holdersFor(const FiberReport& fiber) const;
  const FiberReport* awaited(const FiberReport& fiber) const;

  const std::vector<FiberReport>& m_all;
  std::unordered_map<uint64_t, const FiberReport*> m_by_id;
  std::unordered_map<uint64_t, const FiberReport*> m_by_resumer;
  std::unordered_map<uintptr_t, Holders> m_by_lock;
};

}  // namespace sylar::detail
