#include "sylar/hook/file/fifo.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <utility>

#include "sylar/check.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/wait_loop.h"

namespace sylar::detail {
namespace {

/// Returns true if a FIFO that was opened for reading with O_NONBLOCK has a writer, or has had one since.
bool hasHadWriter(int fd) {
  if (probe::isReady(fd, POLLIN)) return true;  // bytes, or a writer that has gone
  // To the reader of an empty FIFO the kernel says EAGAIN if it has a writer, and 0 if not. A byte that comes now stays there,
  // because nothing can be written to this address.
  return sys::call(SYS_read, fd, nullptr, 1) != 0;
}

/// The file to which a path leads now. It can be opened after the path has come to lead elsewhere. open(2), O_PATH.
class FoundFile {
 public:
  FoundFile(int directory, const char* path, int flags)
      : m_fd(sys::keepOwn(sys::call(SYS_openat, directory, path, O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW), 0))) {}
  ~FoundFile() {
    if (m_fd >= 0) sys::closeFd(m_fd);
  }
  FoundFile(const FoundFile&) = delete;
  FoundFile& operator=(const FoundFile&) = delete;

  /// Returns a descriptor or -errno.
  long open(int flags) const {
    if (m_fd < 0) return m_fd;
    return sys::call(SYS_openat, AT_FDCWD, probe::pathOf(m_fd).data(), flags & ~(O_CREAT | O_NOFOLLOW), 0);
  }

 private:
  const int m_fd;
};

/// Opens a FIFO with O_NONBLOCK. A writer opens it until there is a reader. Only the first time the path is looked up, as in the
/// kernel's own wait. Returns a descriptor or -errno.
long openNow(CallWait& call, int directory, const char* path, int flags, mode_t mode) {
  const auto open = [=] { return sys::call(SYS_openat, directory, path, flags | O_NONBLOCK, mode); };
  if ((flags & O_ACCMODE) == O_RDONLY) return open();
  const FoundFile file(directory, path, flags);
  bool first = true;
  return call.askAgain([&] {
    const long fd = std::exchange(first, false) ? open() : file.open(flags | O_NONBLOCK);
    return fd == -ENXIO ? -EAGAIN : fd;
  });
}

}  // namespace

bool mayWaitForOtherSide(int flags) {
  const int mode = flags & O_ACCMODE;
  const bool never = (flags & (O_NONBLOCK | O_DIRECTORY | O_PATH | O_EXCL)) != 0 || (mode != O_RDONLY && mode != O_WRONLY);
  return !never && hookEngine() != nullptr;
}

bool waitsForOtherSide(int directory, const char* path, int flags) {
  if (!mayWaitForOtherSide(flags)) return false;
  struct stat file;
  const int how = (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0;
  return sys::call(SYS_newfstatat, directory, path, &file, how) == 0 && S_ISFIFO(file.st_mode);
}

// A reader is open at once, and so seen by writers, as in the kernel. A writer is open as soon as there is a reader.
int openFifo(int directory, const char* path, int flags, mode_t mode) {
  SYLAR_DCHECK(maySuspendHere() && (flags & O_NONBLOCK) == 0);
  countCall(Hook::open);
  CallWait call(EndedBy::kNoRestart);
  const long opened = openNow(call, directory, path, flags, mode);
  if (opened < 0) return static_cast<int>(IoCall::result(opened));
  const int fd = static_cast<int>(opened);
  FdTable::opened(fd, FdKind::kUnknown, false, false);
  HookedFd hooked(fd);
  long result = hooked.parks() ? 0 : -ENOMEM;
  if (result == 0 && (flags & O_ACCMODE) == O_RDONLY) {
    result = hooked.askAgain(call, [=] { return hasHadWriter(fd) ? 0L : -EAGAIN; });
  }
  if (result == 0) {
    int off = 0;
    sys::call(SYS_ioctl, fd, FIONBIO, &off);
    return fd;
  }
  if (result != -EBADF) ::close(fd);
  return static_cast<int>(IoCall::result(result));
}

}  // namespace sylar::detail
