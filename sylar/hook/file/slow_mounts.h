// Internal. Which devices are file systems of a network or a process, where even a name may have to be waited for. The kernel's
// list of mounts tells, and says when it changes. Source: proc_pid_mountinfo(5).
//
// Thread safety: all calls from any thread. May suspend: no.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Returns true if such a file system is mounted anywhere but below /proc and /sys. Without the list it returns false.
bool anySlowMount();
enum class SlowKind : uint8_t { kNone, kNetwork, kFuse };
/// Returns what `device` is, as anySlowMount() has seen it last.
SlowKind slowKindOf(dev_t device);

struct SlowMount {
  dev_t device;
  SlowKind kind;
};
/// Returns what a line of the list says.
SlowMount slowMountOf(std::string_view line);

}  // namespace sylar::detail
