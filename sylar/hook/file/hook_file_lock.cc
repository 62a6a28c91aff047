// flock, lockf, and the waiting commands of fcntl: a fiber asks again and again for the lock of a file that somebody else holds.
// Source: flock(2), lockf(3), fcntl(2).
#include <fcntl.h>
#include <sys/file.h>

#include "sylar/hook/core/real.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/core/wait_loop.h"
#include "sylar/hook/file/file_lock.h"

namespace sylar::detail {
namespace {

/// Takes a lock by `ask`, which does not wait, or by `wait`, which is libc's call.
template <class Ask, class Wait>
int lockFile(int fd, Ask ask, Wait wait) {
  if (hookEngine() == nullptr) return wait();
  HookedFd hooked(fd);
  if (!hooked.parks()) return wait();
  if (yieldIfBudgetIsSpent(hooked.engine())) hooked.othersRan();
  CallWait call(EndedBy::kNoRestart);
  const long result = hooked.askAgain(call, ask);
  return static_cast<int>(IoCall::result(result == -ENOMEM ? -ENOLCK : result));
}

}  // namespace

int lockRecord(int fd, int command, void* lock) {
  countCall(Hook::fcntl);
  const int asking = command == F_SETLKW ? F_SETLK : F_OFD_SETLK;
  return lockFile(
      fd, [=] { return sys::call(SYS_fcntl, fd, asking, lock); }, [=] { return real::fcntl(fd, command, lock); });
}

}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int flock(int fd, int operation) noexcept {
  const NoCancellationPoint whole;
  countCall(Hook::flock);
  if ((operation & LOCK_NB) != 0) return real::flock(fd, operation);
  return lockFile(
      fd, [=] { return sys::call(SYS_flock, fd, operation | LOCK_NB); }, [=] { return real::flock(fd, operation); });
}

int lockf(int fd, int command, off_t size) {
  if (command != F_LOCK) return real::lockf(fd, command, size);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_CUR;
  lock.l_len = size;
  return fcntl(fd, F_SETLKW, &lock);
}
int lockf64(int fd, int command, off64_t size) __attribute__((alias("lockf")));

}  // extern "C"
