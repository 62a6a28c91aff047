#include "sylar/hook/file/slow_name.h"

#include <sys/sysmacros.h>

#include <cerrno>
#include <cstring>

#include "sylar/hook/core/ring_call.h"
#include "sylar/hook/file/slow_mounts.h"

namespace sylar::detail {

bool SlowName::any() { return filesSuspend() && anySlowMount(); }

SlowName::SlowName(int directory, const char* path, int flags, unsigned mask, struct statx* status) {
  constexpr int kNoAnswer = 1;
  const int saved_errno = sys::errnoRef();
  const auto prepare = [&](io_uring_sqe* to) {
    io_uring_prep_statx(to, directory, path, flags, mask, status);
    beginElsewhere(to);
  };
  const int answer = byRing(prepare, [] { return kNoAnswer; });
  m_result = answer < 0 ? -sys::errnoRef() : 0;
  sys::errnoRef() = saved_errno;
  if (answer == 0) {
    m_slow = slowKindOf(::gnu_dev_makedev(status->stx_dev_major, status->stx_dev_minor)) != SlowKind::kNone;
    m_on_disk = status->stx_dev_major != 0;
    m_fifo = S_ISFIFO(status->stx_mode);
  } else if (answer < 0 && m_result != -EFAULT) {  // so the path may be read
    // An empty path leads nowhere. Of /proc the threads of the kernel see another thread-self.
    m_slow = *path != '\0' && std::strncmp(path, "/proc/", 6) != 0;
  }
}

}  // namespace sylar::detail
