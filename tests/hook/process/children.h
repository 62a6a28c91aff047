// For tests that wait for child processes.
#pragma once

#include <sys/wait.h>

#include "tests/hook/support.h"

namespace sylar::test {

/// Starts a child that exits with what `body` returns. One that hangs is killed by a signal. The exit is a bare system call,
/// because that of a sanitizer may give another value, on account of the parent's threads.
template <class Body>
pid_t startChild(Body body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::alarm(60);
  sys::call(SYS_exit_group, body());
  __builtin_unreachable();
}

/// Starts a child that exits with the first byte that comes to `fd`.
inline pid_t childThatReads(int fd) {
  return startChild([fd] {
    char code = 99;
    return ::read(fd, &code, 1) == 1 ? code : 98;
  });
}

inline void tellToExit(int fd, char code) { EXPECT_EQ(libcCalls().write(fd, &code, 1), 1); }

inline int pidfdOf(pid_t child, unsigned flags = 0) { return static_cast<int>(::syscall(SYS_pidfd_open, child, flags)); }

}  // namespace sylar::test
