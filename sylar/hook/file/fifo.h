// Internal. The open of a FIFO by a fiber, which waits for the other side without its thread.
#pragma once

#include <sys/types.h>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Returns true if an open with these flags waits for the other side if it finds a FIFO, and a fiber may wait here.
bool mayWaitForOtherSide(int flags);
/// Returns true if an open with these arguments finds a FIFO, and for that. Asks the kernel in which file the path ends.
bool waitsForOtherSide(int directory, const char* path, int flags);

/// Opens a FIFO as openat does. May suspend: yes.
int openFifo(int directory, const char* path, int flags, mode_t mode);

}  // namespace sylar::detail
