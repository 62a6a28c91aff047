// Internal. Opens the file behind a descriptor once more, because an open file of our own may have O_NONBLOCK and the user's may
// not.
#pragma once

#include <fcntl.h>

#include "sylar/base/internal.h"
#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/hook/core/probe.h"

namespace sylar::detail {

/// Opens the FIFO or terminal behind `fd` once more and returns the result of `call(own)` on it, which cannot wait. `mode` is
/// O_RDONLY or O_WRONLY. Returns -EOPNOTSUPP if it cannot be opened. Source: proc(5), /proc/pid/fd.
template <class Call>
long onReopened(int fd, int mode, Call call) {
  SYLAR_DCHECK(mode == O_RDONLY || mode == O_WRONLY);
  const long own = sys::call(SYS_openat, AT_FDCWD, probe::pathOf(fd).data(), mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (own < 0) return -EOPNOTSUPP;
  const long result = call(static_cast<int>(own));
  sys::closeFd(static_cast<int>(own));
  return result;
}

}  // namespace sylar::detail
