// HA-11: a process that changes its user or groups, which libc does by a signal to each thread, where fibers run and where threads
// are fibers. The ids stay what they are, so anybody may run this; tests/integration/set_ids_test.py gives up root's.
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/sync/blocking_pool.h"
#include "sylar/threads_are_fibers.h"
#include "tests/hook/support.h"
#include "tests/support/scale.h"

namespace sylar::test {
namespace {

constexpr uid_t kNobody = 65534;

std::atomic<uint64_t> g_made{0};

void setIds() {
  gid_t groups[256];
  EXPECT_EQ(::setresuid(~uid_t{0}, ~uid_t{0}, ~uid_t{0}), 0);
  EXPECT_EQ(::setresgid(~gid_t{0}, ~gid_t{0}, ~gid_t{0}), 0);
  const int count = ::getgroups(256, groups);
  ASSERT_GE(count, 0);
  if (::geteuid() == 0) {
    EXPECT_EQ(::setgroups(static_cast<size_t>(count), groups), 0);
  }
  g_made.fetch_add(1);
}

class SetIds : public OverWorkers {
 protected:
  void SetUp() override { g_made = 0; }
};
INSTANTIATE_TEST_SUITE_P(Workers, SetIds, testing::Values(1, 2, 4));

// A worker that runs a thread which is a fiber took libc's mark off that thread's record and not off its own, and libc went on
// asking.
TEST_P(SetIds, AreHeardByWorkersThatRunThreads) {
  const uint64_t rounds = scaled(100);
  const ThreadsAreFibers threads_are_fibers;
  std::atomic<bool> over{false};
  IOManager iom(workers(), false, "ids");
  std::signal(SIGUSR2, [](int) { setIds(); });
  for (size_t i = 0; i < workers() * 10; ++i) {
    iom.schedule([&] {
      std::vector<std::thread> threads;
      for (int k = 0; k < 5; ++k) {
        threads.emplace_back([&] {
          while (!over.load()) ::sched_yield();
        });
      }
      for (std::thread& thread : threads) thread.join();
    });
  }
  iom.schedule([&] {
    std::thread([&] {  // a fiber, if this build can make one
      for (uint64_t i = 0; i < rounds; ++i) {
        setIds();
        ::raise(SIGUSR2);
        ::usleep(10);
      }
    })
        .join();
  });
  for (uint64_t i = 0; i < rounds; ++i) setIds();  // on this thread, which has no fibers
  while (g_made.load() < 3 * rounds) ::usleep(100);
  over = true;
  iom.stop();
  std::signal(SIGUSR2, SIG_DFL);
}

// The kernel thread of a thread that becomes a fiber could take libc's signal with it.
TEST_P(SetIds, AreSetWhileThreadsAreMade) {
  const ThreadsAreFibers threads_are_fibers;
  std::atomic<bool> over{false};
  IOManager iom(workers(), false, "ids");
  iom.schedule([&] {
    for (uint64_t i = 0; i < scaled(200); ++i) std::thread([] { ::sched_yield(); }).join();
    over = true;
  });
  while (!over.load()) setIds();
  iom.stop();
}

// Helper threads blocked libc's signal, and libc waited for them.
TEST_P(SetIds, AreHeardByHelperThreads) {
  IOManager iom(workers(), false, "ids");
  std::atomic<bool> over{false};
  iom.schedule([&] {
    EXPECT_NE(::getpwuid(0), nullptr);
    setIds();
    over = true;
  });
  while (!over.load()) ::usleep(100);
  setIds();
  iom.stop();
  BlockingPool::process().endAll();
}

struct AsksAtItsEnd {
  std::atomic<bool>* begun = nullptr;
  std::atomic<bool>* may_ask = nullptr;
  uid_t* user = nullptr;
  ~AsksAtItsEnd() {
    if (begun == nullptr) return;
    begun->store(true);
    while (!may_ask->load()) ::sched_yield();
    *user = static_cast<uid_t>(::syscall(SYS_geteuid));
  }
};
thread_local AsksAtItsEnd t_asks;

// libc's signals do not reach the kernel thread that ends a thread, so its destructors went on with root's rights.
TEST_P(SetIds, AreThoseOfAThreadThatIsEnding) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give up its rights";
  const ThreadsAreFibers threads_are_fibers;
  IOManager iom(workers(), false, "ids");
  iom.schedule([] {
    std::atomic<bool> begun{false}, may_ask{false};
    uid_t user = 0;
    std::thread thread([&] { t_asks.begun = &begun, t_asks.may_ask = &may_ask, t_asks.user = &user; });
    while (!begun.load()) ::usleep(100);
    EXPECT_EQ(::seteuid(kNobody), 0);
    may_ask = true;
    thread.join();
    EXPECT_EQ(user, kNobody);
    EXPECT_EQ(::seteuid(0), 0);
  });
  iom.stop();
}

// The kernel could give the id of a thread that is a fiber to another thread, which then answered for it, and libc went on asking.
TEST_P(SetIds, FindNoOtherThreadByTheIdOfAFiber) {
  if (!ThreadsAreFibers::supported()) GTEST_SKIP() << "threads stay threads in this build";
  const ThreadsAreFibers threads_are_fibers;
  IOManager iom(workers(), false, "ids");
  iom.schedule([] {
    pid_t first = 0, second = 0;
    std::thread([&] { first = ::gettid(); }).join();
    std::thread([&] { second = ::gettid(); }).join();
    EXPECT_GE(first, 1 << 22);  // PID_MAX_LIMIT
    EXPECT_GE(second, 1 << 22);
    EXPECT_NE(first, second);
  });
  iom.stop();
}

}  // namespace
}  // namespace sylar::test
