// Internal. The blocked signals that a waiting call lets through by its mask, as a descriptor that can be waited for.
//
// The thread keeps its own mask while the fiber is parked. So others run under it, and fibers with different masks do not meet.
// The fiber also waits for a signalfd, which nobody reads. When it is readable, a look under the call's mask lets the kernel run
// the handler, and says EINTR. Source: signalfd(2), pselect(2).
#pragma once

#include <signal.h>

#include <cstdint>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Lets the handlers run of the pending signals that the thread blocks and `mask` does not, each of which ends the caller's wait
/// and nothing else. Returns -EINTR if one ran, else 0, or another -errno. A handler may not come back (siglongjmp), so nothing may
/// be held here that it would leave behind.
int letSignalsThrough(const sigset_t* mask);

class PendingSignals {
 public:
  PendingSignals() = default;
  ~PendingSignals();
  PendingSignals(const PendingSignals&) = delete;
  PendingSignals& operator=(const PendingSignals&) = delete;

  /// Begins to watch the signals that the thread blocks and `mask`, which may be null, does not. Returns false if there is no
  /// descriptor or memory for that.
  bool watch(const sigset_t* mask);
  /// Returns the descriptor, or -1 if there is no such signal.
  int fd() const { return m_fd; }

 private:
  int m_fd = -1;
};

}  // namespace sylar::detail
