// Internal. Interrupts the call of libc in which a fiber holds its worker's thread.
//
// A thread that is a fiber takes signals of pthread_kill while it is suspended. If it is not, because hooks are off or the call is
// not hooked, the kernel has to interrupt it. The library's own signal does that. So the program's handler runs as no other thread,
// even if the fiber has been suspended by then.
#pragma once

#include <sys/types.h>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Has the fiber that `worker` runs take what was sent to it, `signal` among it. The call fails by EINTR if the program's handler
/// is to have that effect. Any thread, and signal handlers. May suspend: no.
void interruptRunning(pid_t worker, int signal);

}  // namespace sylar::detail
