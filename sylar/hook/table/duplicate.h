// Internal. A second number for an open file.
#pragma once

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Notes that `copy` is a second number for the open file of `fd`. From here on neither entry can remember what is set through
/// the other. Returns `copy`; a negative one is passed on.
int duplicated(int fd, int copy);

/// Does what dup3 does with O_CLOEXEC, and ends the calls that wait for `target` in fibers, whatever setHookClose() says.
int replaceAndEndCalls(int fd, int target);

}  // namespace sylar::detail
