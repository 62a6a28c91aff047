#include "sylar/hook/fd/pending_signals.h"

#include <sys/signalfd.h>

#include <cstring>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/hook/core/attempt.h"
#include "sylar/hook/core/interruptible.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/sent_signals.h"
#include "sylar/io/fd_table.h"

namespace sylar::detail {

int letSignalsThrough(const sigset_t* mask) {
  constexpr timespec kNoTime{};
  int result;
  do {  // one by one, because what a handler keeps the kernel from delivering would be the next fiber's
    passSentToKernel(*mask);
    result = static_cast<int>(Interruptible::lettingSignalsThrough(
        [=] { return attempt::keepingErrno([=] { return real::ppoll(nullptr, 0, &kNoTime, mask); }); }));
  } while (result == 0 && isSentThrough(*mask));
  return result;
}

bool PendingSignals::watch(const sigset_t* mask) {
  SYLAR_DCHECK(m_fd < 0);
  if (mask == nullptr) return true;
  uint64_t passed;  // the kernel's part of a sigset_t
  uint64_t signals = 0;
  std::memcpy(&passed, mask, sizeof passed);
  sys::call(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &signals, sizeof signals);
  signals &= ~passed;
  if (signals == 0) return true;
  const int fd = sys::keepOwn(sys::call(SYS_signalfd4, -1, &signals, sizeof signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (fd < 0) return false;
  Entry* const entry = FdTable::at(fd);
  if (entry == nullptr) {
    sys::closeFd(fd);
    return false;
  }
  entry->open(fd, FdKind::kUnknown, true, true);
  m_fd = fd;
  return true;
}

PendingSignals::~PendingSignals() {
  if (m_fd >= 0) FdTable::close(m_fd, [this] { return sys::closeFd(m_fd); });
}

}  // namespace sylar::detail
