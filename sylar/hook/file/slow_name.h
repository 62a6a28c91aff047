// Internal. Paths that may lead to a file system of a network or a process, where the kernel may wait for the name itself. The ring
// looks such a path up, and then it is known whether the call may wait. If not it is made here.
#pragma once

#include <sys/stat.h>

#include "sylar/base/internal.h"

namespace sylar::detail {

class SlowName {
 public:
  /// Returns true if such a file system is mounted, and calls on files suspend the caller. Only then a path needs to be looked up.
  static bool any();

  /// Looks the path up as statx does with these arguments. Without a ring there is no answer. May suspend: yes.
  SlowName(int directory, const char* path, int flags, unsigned mask, struct statx* status);

  /// Returns true if the path is on such a file system, or leads nowhere and may do so by way of one.
  bool isSlow() const { return m_slow; }
  bool isFifo() const { return m_fifo; }
  /// Returns true if the look has given what the call itself would: the path is on such a file system, or on a disk, which may have
  /// been reached by way of one. The rest, such as /proc, looks different to each thread.
  bool answers() const { return m_slow || m_on_disk; }
  /// Returns the result of the look, 0 or -errno; only if answers().
  long result() const { return m_result; }

 private:
  long m_result = 0;
  bool m_slow = false;
  bool m_on_disk = false;
  bool m_fifo = false;
};

}  // namespace sylar::detail
