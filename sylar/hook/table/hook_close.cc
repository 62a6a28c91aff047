// Calls that close a number, or put another file behind it. They act on every thread, in and out of fibers.
//
// A descriptor that the library made for itself (a worker's epoll, its wake-up descriptor, a manager's timerfd) is not the
// user's: close and dup2 refuse it, close_range and closefrom pass over it. In a forked child these calls are as in libc. Source:
// close(2), close_range(2), closefrom(3), dup(2), fclose(3), fopen(3), popen(3).
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <stdio_ext.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>

#include "sylar/base/sys.h"
#include "sylar/hook/core/attempt.h"
#include "sylar/hook/core/linger.h"
#include "sylar/hook/core/offload.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/table/duplicate.h"
#include "sylar/io/fd_table.h"

namespace sylar::detail {

constinit std::atomic<bool> g_any_lingers{false};

int duplicated(int fd, int copy) {
  if (copy < 0) return copy;
  Entry* const original = FdTable::at(fd);
  if (original != nullptr) original->share();
  FdTable::opened(copy, original != nullptr ? original->kind() : FdKind::kUnknown, false, false);
  return copy;
}

namespace {

bool isLibrarys(int fd) { return sys::isOwn(fd) && !sys::inForkedChild(); }

int fail(int error) {
  sys::errnoRef() = error;
  return -1;
}

/// Takes the number from a stream if it was closed behind the stream's back and is the library's now, so that stdio neither
/// writes there nor closes it. Returns true if the stream had such a number.
bool leavesLibrarys(FILE* file) {
  if (!isLibrarys(::fileno(file))) return false;
  file->_fileno = -1;
  return true;
}

/// Writes what a stream has pending while its number is still open to all, because the write may wait for somebody who uses the
/// number. Returns 0, or EOF with errno. What could not be written is lost, as it is by a fclose.
int flushBeforeClose(FILE* file) {
  if (::__fpending(file) == 0) return 0;
  const int result = std::fflush(file);
  if (result != 0) ::__fpurge(file);
  return result;
}

/// Calls `real_dup`, which puts the open file of `fd` behind `target`, as a close and an open.
template <class RealDup>
int duplicateOnto(int fd, int target, RealDup real_dup, AtClose waiters = AtClose::kMayGoOn) {
  if (fd == target || sys::call(SYS_fcntl, fd, F_GETFD, 0) < 0) return real_dup();  // nothing happens, or EBADF
  if (isLibrarys(target)) return fail(EBUSY);
  return duplicated(fd, FdTable::close(target, real_dup, waiters));
}

/// Closes all that is open in [first, last] except the library's own. Returns 0 or -errno.
long closeUnknown(unsigned first, unsigned last) {
  while (first <= last) {
    const auto own = static_cast<unsigned>(sys::nextOwn(static_cast<int>(std::min<unsigned>(first, INT_MAX))));
    const bool passes = own <= last && own != INT_MAX;
    if (!passes || own > first) {
      const long result = sys::call(SYS_close_range, first, passes ? own - 1 : last, 0);
      if (result < 0) return result;
    }
    if (!passes) return 0;
    first = own + 1;
  }
  return 0;
}

/// Returns true if a close in this fiber may wait for the peer.
bool waitsForPeer(int fd) {
  if (!g_any_lingers.load(std::memory_order_relaxed) || !maySuspendHere()) return false;
  linger option{};
  socklen_t size = sizeof option;
  return sys::call(SYS_getsockopt, fd, SOL_SOCKET, SO_LINGER, &option, &size) == 0 && lingers(option);
}

/// Closes without a cancellation point, for functions that are declared to throw nothing. Under a sanitizer the attempt is libc's
/// close, which is a cancellation point.
int closeNow(int fd) {
  int before = PTHREAD_CANCEL_ENABLE;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  const long result = SYLAR_ATTEMPT_(close, SYS_close, fd);
  ::pthread_setcancelstate(before, nullptr);
  return static_cast<int>(result);
}

/// Closes [first, last], each number once, because another thread may have it the moment after. Numbers that somebody may wait
/// for are closed one by one.
int closeRange(unsigned first, unsigned last) {
  long result = 0;
  const auto close_known = [&](int fd, const Entry& entry) {
    if (result < 0 || !entry.known() || sys::isOwn(fd)) return;
    if (static_cast<unsigned>(fd) > first) result = closeUnknown(first, static_cast<unsigned>(fd) - 1);
    FdTable::closeOrLater(fd, [fd] { return closeNow(fd); });
    first = static_cast<unsigned>(fd) + 1;
  };
  const unsigned begin = first;
  FdTable::forEach(close_known, begin, last);
  if (result == 0 && first <= last) result = closeUnknown(first, last);
  return result < 0 ? fail(static_cast<int>(-result)) : 0;
}

/// Closes all numbers from `first` on where there is no close_range(2).
void closeEach(int first) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  for (int fd = first; static_cast<rlim_t>(fd) < std::min<rlim_t>(limit.rlim_cur, INT_MAX); ++fd) {
    if (!isLibrarys(fd)) FdTable::closeOrLater(fd, [fd] { return closeNow(fd); });
  }
}

}  // namespace

int replaceAndEndCalls(int fd, int target) {
  return duplicateOnto(
      fd, target, [=] { return real::dup3(fd, target, O_CLOEXEC); }, AtClose::kEnd);
}

}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int close(int fd) {
  countCall(Hook::close);
  if (isLibrarys(fd)) return fail(EBADF);
  const auto close_it = [fd] { return FdTable::closeOrLater(fd, [fd] { return real::close(fd); }); };
  return waitsForPeer(fd) ? offload(close_it, BlockingPool::Length::kOthers) : close_it();
}
int __close(int fd) { return close(fd); }

int close_range(unsigned first, unsigned last, int flags) noexcept {
  // The kernel handles close-on-exec marks, errors, and a thread that leaves the other threads their numbers.
  const bool leaves = (flags & CLOSE_RANGE_UNSHARE) != 0 && sys::hasWorkers();
  if (first > last || (flags & ~CLOSE_RANGE_UNSHARE) != 0 || leaves || sys::inForkedChild()) {
    const long result = sys::call(SYS_close_range, first, last, flags);
    return result < 0 ? fail(static_cast<int>(-result)) : 0;
  }
  if ((flags & CLOSE_RANGE_UNSHARE) != 0) {
    const long result = sys::call(SYS_close_range, ~0U, ~0U, flags);
    if (result < 0) return fail(static_cast<int>(-result));
  }
  return closeRange(first, last);
}

void closefrom(int first) noexcept {
  const int saved_errno = errno;
  first = std::max(first, 0);
  if (close_range(static_cast<unsigned>(first), ~0U, 0) != 0) closeEach(first);
  errno = saved_errno;
}

int fclose(FILE* file) {
  if (leavesLibrarys(file)) {
    real::fclose(file);
    errno = EBADF;
    return EOF;
  }
  const int flushed = flushBeforeClose(file);
  const int error = errno;
  const int fd = ::fileno(file);  // -1 for a stream without a descriptor
  const int closed = FdTable::close(fd, [file] { return real::fclose(file); });
  if (flushed == 0 || closed != 0) return closed;
  errno = error;
  return flushed;
}

// libc keeps the number if it can. The file behind it afterwards is not known.
FILE* freopen(const char* path, const char* mode, FILE* file) {
  leavesLibrarys(file);
  flushBeforeClose(file);
  FILE* result = nullptr;
  FdTable::close(::fileno(file), [&] {
    result = real::freopen(path, mode, file);
    return 0;
  });
  return result;
}
FILE* freopen64(const char* path, const char* mode, FILE* file) {
  leavesLibrarys(file);
  flushBeforeClose(file);
  FILE* result = nullptr;
  FdTable::close(::fileno(file), [&] {
    result = real::freopen64(path, mode, file);
    return 0;
  });
  return result;
}

// libc closes the number, and waits for the child. The child may need the close in order to end, so a helper makes the whole call.
// The stream gets a number of the call's own for that, so that the program's number is closed here and now.
int pclose(FILE* file) {
  countCall(Hook::pclose);
  const int fd = ::fileno(file);
  const auto own = static_cast<int>(sys::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 64));  // low numbers are the program's
  FdTable::close(fd, [=] {
    if (own < 0) return 0;  // then libc's call closes it
    file->_fileno = own;
    return sys::closeFd(fd);
  });
  return offload([file] { return real::pclose(file); }, BlockingPool::Length::kOthers);
}

int dup(int fd) noexcept { return duplicated(fd, real::dup(fd)); }

int dup2(int fd, int target) noexcept {
  return duplicateOnto(fd, target, [=] { return real::dup2(fd, target); });
}
int __dup2(int fd, int target) noexcept { return dup2(fd, target); }

int dup3(int fd, int target, int flags) noexcept {
  if ((flags & ~O_CLOEXEC) != 0) return real::dup3(fd, target, flags);  // EINVAL, and no number changes
  return duplicateOnto(fd, target, [=] { return real::dup3(fd, target, flags); });
}

}  // extern "C"
