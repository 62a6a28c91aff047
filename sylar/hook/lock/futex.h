// Internal. futex(2), which programs call by its number.
#pragma once

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Does what syscall(SYS_futex, arguments...) does, and returns what that returns, with errno. A fiber that waits is suspended, and
/// whoever wakes those who wait at a word wakes fibers and threads.
long futexByNumber(const long (&arguments)[6]);

}  // namespace sylar::detail
