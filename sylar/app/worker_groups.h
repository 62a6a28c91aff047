// Internal. The workers of a service: groups of IOManagers by name, as the setting `workers` has them.
//
// Thread safety: get() from any thread between make() and clear(); the others from one.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/clock.h"
#include "sylar/iomanager.h"
#include "sylar/watchdog.h"

namespace sylar::detail {

class WorkerGroups {
 public:
  /// Makes what the settings say. If they name none, makes one IOManager `io` with a thread for each processor.
  void make();
  /// Returns a worker by its name, or of the first group for "", each of a group in turn. Returns null if there is none.
  IOManager* get(const std::string& name) const;
  /// Stops all of them by `deadline`, and logs the fibers that do not end. Returns true if all have ended.
  bool stop(Deadline deadline);
  void clear() { m_groups.clear(); }

 private:
  /// The IOManagers of one name, and which one is used next.
  struct Group {
    std::string name;
    std::vector<std::unique_ptr<IOManager>> managers;
    std::vector<std::unique_ptr<Watchdog>> watchdogs;  // of the managers, which outlive them
    std::atomic<size_t> next{0};
  };

  std::vector<std::unique_ptr<Group>> m_groups;  // in the order of their names
};

}  // namespace sylar::detail
