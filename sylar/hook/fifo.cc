#include "sylar/hook/fifo.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "sylar/hook/ask_again.h"
#include "sylar/hook/probe.h"

namespace sylar {
namespace {

/// Returns true if a FIFO that was opened for reading with O_NONBLOCK has a writer, or has had one since.
bool hasHadWriter(int fd) {
  if (probe::isReady(fd, POLLIN)) return true;  // bytes, or a writer that has gone
  // To the reader of an empty FIFO the kernel says EAGAIN if it has a writer, and 0 if not. A byte that comes now stays there,
  // because nothing can be written to this address.
  return sys::call(SYS_read, fd, nullptr, 1) != 0;
}

}  // namespace

bool waitsForOtherSide(int directory, const char* path, int flags) {
  const int mode = flags & O_ACCMODE;
  const bool never = (flags & (O_NONBLOCK | O_DIRECTORY | O_PATH | O_EXCL)) != 0 || (mode != O_RDONLY && mode != O_WRONLY);
  if (never || hookEngine() == nullptr) return false;
  struct stat file;
  const int how = (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0;
  return sys::call(SYS_newfstatat, directory, path, &file, how) == 0 && S_ISFIFO(file.st_mode);
}

// A reader is open at once, and so seen by writers, as in the kernel. A writer is open as soon as there is a reader.
int openFifo(int directory, const char* path, int flags, mode_t mode) {
  Interruptible call(EndedBy::kNoRestart);
  const long opened = askAgain(call, [=] {
    const long fd = sys::call(SYS_openat, directory, path, flags | O_NONBLOCK, mode);
    return fd == -ENXIO ? -EAGAIN : fd;
  });
  if (opened < 0) return static_cast<int>(IoCall::result(opened));
  const int fd = static_cast<int>(opened);
  FdTable::opened(fd, FdKind::kUnknown, false, false);
  HookedFd hooked(fd);
  long result = hooked.parks() ? 0 : -ENOMEM;
  if (result == 0 && (flags & O_ACCMODE) == O_RDONLY) {
    result = askAgain(call, hooked, [=] { return hasHadWriter(fd) ? 0L : -EAGAIN; });
  }
  if (result == 0) {
    int off = 0;
    sys::call(SYS_ioctl, fd, FIONBIO, &off);
    return fd;
  }
  if (result != -EBADF) ::close(fd);
  return static_cast<int>(IoCall::result(result));
}

}  // namespace sylar
