// The calls about a thread's sleep. They have their own file for tests; see sys.h.
#include <sys/prctl.h>

#include <atomic>
#include <cerrno>

#include "sylar/base/sys.h"

namespace sylar::sys {

int epollPwait(int epoll, epoll_event* events, int capacity, int timeout_ms) {
  return static_cast<int>(call(SYS_epoll_pwait, epoll, events, capacity, timeout_ms, nullptr, 0L));
}

int epollPwait2(int epoll, epoll_event* events, int capacity, const timespec& timeout) {
#ifdef SYS_epoll_pwait2
  static constinit std::atomic<int> s_refusal{0};  // remembered: a kernel or filter without it stays so
  if (const int refusal = s_refusal.load(std::memory_order_relaxed); refusal != 0) return refusal;
  const auto result = static_cast<int>(call(SYS_epoll_pwait2, epoll, events, capacity, &timeout, nullptr, 0L));
  if (result == -ENOSYS || result == -EPERM) s_refusal.store(result, std::memory_order_relaxed);
  return result;
#else
  return -ENOSYS;
#endif
}

int64_t timerSlack() { return call(SYS_prctl, PR_GET_TIMERSLACK, 0L, 0L, 0L, 0L); }
void setTimerSlack(int64_t slack_ns) { call(SYS_prctl, PR_SET_TIMERSLACK, slack_ns, 0L, 0L, 0L); }

}  // namespace sylar::sys
