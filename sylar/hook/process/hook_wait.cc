// wait and similar calls. The attempt is the same call with WNOHANG. Between attempts the fiber polls a descriptor that tells of
// the child's end, and asks again from time to time for what no descriptor tells: stops, a tracer's events, any of several
// children. Source: wait(2), wait4(2), pidfd_open(2).
#include <fcntl.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/hook/core/offload.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/wait_loop.h"
#include "sylar/hook/fd/poll.h"
#include "sylar/io/fd_table.h"

namespace sylar::detail {
namespace {

/// A descriptor of the library's own that is readable once a process has ended. There is none, -1, if it cannot be had.
class ProcessEnd {
 public:
  static ProcessEnd of(pid_t process) { return ProcessEnd(sys::call(SYS_pidfd_open, process, 0)); }
  /// Another number for the user's `pidfd`, so that a close of that one does not end the wait, as in the kernel.
  static ProcessEnd copyOf(int pidfd) { return ProcessEnd(sys::call(SYS_fcntl, pidfd, F_DUPFD_CLOEXEC, 64)); }
  static ProcessEnd none() { return ProcessEnd(-1); }
  ~ProcessEnd() {
    if (m_fd >= 0) FdTable::close(m_fd, [fd = m_fd] { return sys::closeFd(fd); });
  }
  ProcessEnd(const ProcessEnd&) = delete;
  ProcessEnd& operator=(const ProcessEnd&) = delete;

  int fd() const { return m_fd; }

 private:
  explicit ProcessEnd(long made) : m_fd(std::max(sys::keepOwn(made), -1)) {
    Entry* const entry = m_fd >= 0 ? FdTable::at(m_fd) : nullptr;
    if (entry != nullptr) entry->open(m_fd, FdKind::kPolled, true, false);
  }

  const int m_fd;
};

/// Returns true if a call with `options` may wait, after letting others run if the budget is spent.
bool mayWait(int options) {
  EpollEngine* const engine = hookEngine();
  if (engine == nullptr) return false;
  if ((options & WNOHANG) != 0) {
    chargePoll(*engine);
    return false;
  }
  engine->chargeCall();
  yieldIfBudgetIsSpent(*engine);
  return true;
}

/// Makes `attempt`, which does not wait, until it gives something else than 0, and returns that. Returns -1 with errno if the
/// fiber is cancelled, its scope ends, or a signal handler interrupts the call. May suspend: yes.
template <class Attempt>
int untilTold(const ProcessEnd& end, int options, Attempt attempt) {
  SYLAR_DCHECK(mayPark() && (options & WNOHANG) == 0);
  const bool wants_stops = (options & (WUNTRACED | WCONTINUED)) != 0;
  pollfd watched{end.fd(), POLLIN, 0};
  CallWait call(EndedBy::kNoRestart);
  for (Pauses pauses;;) {
    if (const int told = attempt()) return told;
    if (call.interrupted()) return static_cast<int>(IoCall::result(-EINTR));
    if (watched.revents != 0) watched.fd = -1;  // it has ended, but it is its tracer's before it is ours
    // Even a child that tells its end may be the caller's tracee, whose stops it does not tell.
    pauses.limit(std::chrono::milliseconds(watched.fd >= 0 && !wants_stops ? 1000 : 50));
    const bool polled = pollAs(call, &watched, watched.fd >= 0 ? 1 : 0, std::chrono::nanoseconds(pauses.next()).count()) >= 0;
    if (!polled && !call.interrupted()) return -1;
  }
}

/// waitid with WNOHANG. Returns 1 if it has told of a child, 0 if it would wait, or -1. The kernel writes to `info` even if there
/// is nothing to tell, so this looks first, into memory of its own.
int waitidNow(idtype_t type, id_t id, siginfo_t* info, int options) {
  siginfo_t own{};
  if (real::waitid(type, id, &own, options | WNOHANG | WNOWAIT) == 0 && own.si_pid == 0) return 0;
  siginfo_t* const told = info != nullptr ? info : &own;
  if (real::waitid(type, id, told, options | WNOHANG) != 0) return -1;
  return told->si_pid != 0 ? 1 : 0;  // 0: another was faster
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

// The headers say that wait3 and wait4 throw nothing, but a plain thread may be cancelled in them, and unwinds.
pid_t sylar_wait4(pid_t child, int* status, int options, rusage* usage) {
  countCall(Hook::wait4);
  if (!mayWait(options)) return real::wait4(child, status, options, usage);
  const auto attempt = [=] { return real::wait4(child, status, options | WNOHANG, usage); };
  if (const pid_t told = attempt()) return told;
  return untilTold(child > 0 ? ProcessEnd::of(child) : ProcessEnd::none(), options, attempt);
}
pid_t sylar_wait3(int* status, int options, rusage* usage) { return sylar_wait4(-1, status, options, usage); }
pid_t wait4(pid_t child, int* status, int options, rusage* usage) noexcept __attribute__((alias("sylar_wait4")));
pid_t wait3(int* status, int options, rusage* usage) noexcept __attribute__((alias("sylar_wait3")));

pid_t waitpid(pid_t child, int* status, int options) { return sylar_wait4(child, status, options, nullptr); }
pid_t __waitpid(pid_t child, int* status, int options) { return sylar_wait4(child, status, options, nullptr); }
pid_t wait(int* status) { return sylar_wait4(-1, status, 0, nullptr); }
pid_t __wait(int* status) { return sylar_wait4(-1, status, 0, nullptr); }

int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  countCall(Hook::waitid);
  if (!mayWait(options)) return real::waitid(type, id, info, options);
  const int pidfd = type == P_PIDFD ? static_cast<int>(id) : -1;
  if (const int told = waitidNow(type, id, info, options)) return std::min(told, 0);
  if (pidfd >= 0 && probe::isNonblocking(pidfd)) return real::waitid(type, id, info, options);
  const ProcessEnd end = pidfd >= 0      ? ProcessEnd::copyOf(pidfd)
                         : type == P_PID ? ProcessEnd::of(static_cast<pid_t>(id))
                                         : ProcessEnd::none();
  // The user's number must not be asked again once others have run.
  if (pidfd >= 0 && end.fd() < 0)
    return offload([=] { return real::waitid(type, id, info, options); }, BlockingPool::Length::kOthers);
  const id_t asked = pidfd >= 0 ? static_cast<id_t>(end.fd()) : id;
  return std::min(untilTold(end, options, [=] { return waitidNow(type, asked, info, options); }), 0);
}

}  // extern "C"
