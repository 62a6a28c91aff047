// Internal. Locks of files.
#pragma once

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Does what fcntl does with F_SETLKW or F_OFD_SETLKW.
int lockRecord(int fd, int command, void* lock);

}  // namespace sylar::detail
