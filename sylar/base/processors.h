// Internal. How many processors this process may keep busy.
#pragma once

#include <string>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// The files that tell of control groups.
struct CgroupFiles {
  std::string memberships = "/proc/self/cgroup";  ///< the groups of the process
  std::string root = "/sys/fs/cgroup";            ///< where they are mounted
};

/// Returns the number of processors that the calling thread may run on, but no more than the quota of its control groups, rounded
/// up; at least 1. The quota is the least of the group's own and those of its ancestors, version 1 or 2. What cannot be read, or
/// makes no sense, is no quota. May suspend: no. Throws std::bad_alloc. Source: sched_setaffinity(2), cgroups(7), the kernel's
/// cgroup-v2.rst and sched-bwc.rst.
unsigned availableProcessors(const CgroupFiles& files = {});

}  // namespace sylar::detail
