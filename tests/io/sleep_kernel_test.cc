// What sleeping needs of the real kernel, which kernel_double.h cannot show: what threads and processes inherit, and what a
// filter of system calls answers.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "sylar/base/fd.h"
#include "sylar/base/sys.h"
#include "sylar/clock.h"
#include "sylar/sync/blocking_pool.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

/// What `child` returns in a forked process; -1: it did not end by itself.
template <class Child>
int inFork(Child child) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(child());
  int status = 0;
  return ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// ---- Timer slack. ------------------------------------------------------------------------------------------------------------

// The slack of 1 ns is the workers', not the process's. A new thread begins with that of the thread that made it.
TEST(InheritedSlack, AHelperThreadHasTheProcesssOwn) {
  const int64_t usual_ns = sys::timerSlack();
  ASSERT_GT(usual_ns, 1);
  BlockingPool pool;
  test::inFiber([&] {
    EXPECT_EQ(sys::timerSlack(), 1);
    int64_t helper_ns = 0;
    EXPECT_EQ(pool.run([&] { helper_ns = sys::timerSlack(); }), 0);
    EXPECT_EQ(helper_ns, usual_ns);
    EXPECT_EQ(sys::timerSlack(), 1);
  });
}

// Likewise a process, and an exec keeps it.
TEST(InheritedSlack, AForkedChildHasTheProcesssOwn) {
  const int64_t usual_ns = sys::timerSlack();
  ASSERT_GT(usual_ns, 1);
  test::inFiber([&] {
    EXPECT_EQ(inFork([&] { return sys::timerSlack() == usual_ns ? 0 : 1; }), 0);
    EXPECT_EQ(sys::timerSlack(), 1);
  });
}

// What a plain thread has chosen for itself is its own business.
TEST(InheritedSlack, AForkOutsideWorkersChangesNothing) {
  const int64_t usual_ns = sys::timerSlack();
  test::inFiber([] {});  // from here on the usual is known
  sys::setTimerSlack(usual_ns + 1);
  EXPECT_EQ(inFork([&] { return sys::timerSlack() == usual_ns + 1 ? 0 : 1; }), 0);
  sys::setTimerSlack(usual_ns);
}

// ---- A kernel without epoll_pwait2. ------------------------------------------------------------------------------------------

/// From now on the process gets `error` for epoll_pwait2; of several filters the last one answers. False: not allowed here.
bool refusePwait2(uint32_t error) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// The answers to two waits: the second one, if the kernel is asked again, is EXDEV.
int answersOnce(uint32_t error) {
  epoll_event event;
  const UniqueFd epoll(sys::epollCreate());
  const timespec moment{0, 1};
  if (!refusePwait2(error)) return 77;
  if (sys::epollPwait2(epoll.get(), &event, 1, moment) != -static_cast<int>(error)) return 1;
  if (!refusePwait2(EXDEV)) return 77;
  if (sys::epollPwait2(epoll.get(), &event, 1, moment) != -static_cast<int>(error)) return 2;
  return sys::epollWait(epoll.get(), &event, 1, 0, 1) == 0 ? 0 : 3;
}

// It is asked once, not at each sleep: some, like valgrind, also complain each time.
TEST(Pwait2, ARefusalIsRemembered) {
  for (const uint32_t error : {ENOSYS, EPERM}) {
    const int answer = inFork([&] { return answersOnce(error); });
    if (answer == 77) GTEST_SKIP() << "no filters may be set here";
    EXPECT_EQ(answer, 0) << "errno " << error;
  }
}

// An interrupted wait says nothing of the next.
TEST(Pwait2, AnotherErrorIsNot) {
  const int answer = inFork([] {
    epoll_event event;
    const UniqueFd epoll(sys::epollCreate());
    const timespec moment{0, 1};
    if (!refusePwait2(EINTR)) return 77;
    if (sys::epollPwait2(epoll.get(), &event, 1, moment) != -EINTR) return 1;
    if (!refusePwait2(EXDEV)) return 77;
    return sys::epollPwait2(epoll.get(), &event, 1, moment) == -EXDEV ? 0 : 2;
  });
  if (answer == 77) GTEST_SKIP() << "no filters may be set here";
  EXPECT_EQ(answer, 0);
}

}  // namespace
}  // namespace sylar
