// A fiber that waits for the lock of a file leaves its worker to the others, and needs no helper thread for it.
#include <sys/wait.h>

#include <functional>

#include "sylar/cancel.h"
#include "sylar/sync/blocking_pool.h"
#include "sylar/testing/virtual_time.h"
#include "tests/hook/fd/kinds.h"
#include "tests/sync/waiter.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

/// Takes the lock of a file, and waits for it if it must.
struct LockCase {
  const char* name;
  int (*lock)(int fd);
};
std::ostream& operator<<(std::ostream& out, const LockCase& one) { return out << one.name; }

template <int command, auto control>
int lockByControl(int fd) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  return control(fd, command, &whole);
}

const LockCase kLockCases[] = {
    {"flock", [](int fd) { return ::flock(fd, LOCK_EX); }},       {"lockf", [](int fd) { return ::lockf(fd, F_LOCK, 0); }},
    {"lockf64", [](int fd) { return ::lockf64(fd, F_LOCK, 0); }}, {"F_SETLKW", lockByControl<F_SETLKW, ::fcntl>},
    {"F_SETLKW_fcntl64", lockByControl<F_SETLKW, ::fcntl64>},     {"F_OFD_SETLKW", lockByControl<F_OFD_SETLKW, ::fcntl>},
};

/// Another process that has the lock until release().
class Holder {
 public:
  Holder(const std::string& file, int (*lock)(int fd)) : m_ends(makePipe(libcCalls())) {
    const Pair ready(makePipe(libcCalls()));
    m_child = ::fork();
    if (m_child == 0) {
      char byte = 'r';
      libcCalls().close(m_ends[1]);
      const bool locked = lock(::open(file.c_str(), O_RDWR)) == 0;
      if (locked && libcCalls().write(ready.b, &byte, 1) == 1) (void)libcCalls().read(m_ends[0], &byte, 1);
      ::_exit(0);
    }
    libcCalls().close(m_ends[0]);
    char byte = 0;
    EXPECT_EQ(libcCalls().read(ready.a, &byte, 1), 1);
  }
  ~Holder() { release(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  /// Returns when the process has ended.
  void release() {
    if (m_child == 0) return;
    libcCalls().close(m_ends[1]);
    const pid_t child = std::exchange(m_child, 0);
    EXPECT_EQ(libcCalls().waitpid(child, nullptr, 0), child);
  }

 private:
  const Ends m_ends;
  pid_t m_child = 0;
};

class FileLock : public testing::TestWithParam<LockCase> {
 protected:
  int open() { return m_files.keep(::open(m_name.c_str(), O_RDWR | O_CLOEXEC)); }
  static int lock(int fd) { return GetParam().lock(fd); }

  Owned m_files;
  const std::string m_name = m_files.file();
};
INSTANTIATE_TEST_SUITE_P(By, FileLock, testing::ValuesIn(kLockCases), [](const auto& one) { return one.param.name; });

TEST_P(FileLock, LetsAnotherFiberOfTheOnlyWorkerRun) {
  Holder holder(m_name, GetParam().lock);
  const int fd = open();
  bool released = false;
  inFiber([&] {
    IOManager::GetThis()->schedule([&] {
      released = true;
      holder.release();
    });
    errno = ENOTTY;
    EXPECT_EQ(lock(fd), 0);
    EXPECT_EQ(errno, ENOTTY);
    EXPECT_TRUE(released);
  });
}

TEST_P(FileLock, WithHooksOffBlocksTheOnlyWorker) {
  Holder holder(m_name, GetParam().lock);
  const int fd = open();
  std::atomic<bool> waits{false};
  bool other = false;
  std::thread outside([&] {
    spinUntil(waits, true);
    holder.release();
  });
  inFiber([&] {
    set_hook_enable(false);
    IOManager::GetThis()->schedule([&] { other = true; });
    waits.store(true, std::memory_order_release);
    EXPECT_EQ(lock(fd), 0);
    EXPECT_FALSE(other);
  });
  outside.join();
}

TEST_P(FileLock, IsNoLongerWaitedForAfterACancel) {
  Holder holder(m_name, GetParam().lock);
  const int fd = open();
  std::stop_source stop;
  IOManager iom(1, false, "cancel");
  const Fiber::ptr fiber = waiterOn(iom, [&] {
    withCancel(stop.get_token(), [&] {
      EXPECT_EQ(lock(fd), -1);
      EXPECT_EQ(errno, ECANCELED);
      holder.release();
      EXPECT_EQ(lock(fd), 0) << "it is free, and needs no waiting";
    });
  });
  stop.request_stop();
  fiber->join();
}

TEST_P(FileLock, IsNoLongerWaitedForAfterTheDeadline) {
  Holder holder(m_name, GetParam().lock);
  const int fd = open();
  VirtualTime time;
  time.run([&] {
    withDeadline(Deadline::after(1h, time), [&] {
      EXPECT_EQ(lock(fd), -1);
      EXPECT_EQ(errno, ETIMEDOUT);
      EXPECT_EQ(lock(fd), -1);
      EXPECT_EQ(errno, ETIMEDOUT);
      holder.release();
      EXPECT_EQ(lock(fd), 0) << "it is free, and needs no waiting";
    });
  });
  EXPECT_EQ(time.elapsed(), 1h);
}

// The number may belong to another file by then, which must not be locked.
TEST_P(FileLock, IsNoLongerWaitedForAfterAClose) {
  Holder holder(m_name, GetParam().lock);
  const int fd = ::open(m_name.c_str(), O_RDWR | O_CLOEXEC);
  Owned other;
  inFiber([&] {
    IOManager::GetThis()->schedule([&] {
      const int file = other.keep(::open(other.file().c_str(), O_RDWR | O_CLOEXEC));
      EXPECT_EQ(::dup2(file, fd), fd);
      holder.release();
    });
    EXPECT_EQ(lock(fd), -1);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(::flock(fd, LOCK_UN), 0);
  });
  EXPECT_EQ(::close(fd), 0);
}

// With a helper thread for each they would fill the pool, and the one who has the lock might need the pool to go on.
TEST_P(FileLock, IsWaitedForByAnyNumberOfFibers) {
  constexpr int kFibers = 100;
  Holder holder(m_name, GetParam().lock);
  int locked = 0;
  inFiber([&] {
    for (int i = 0; i < kFibers; ++i) {
      IOManager::GetThis()->schedule([&] {
        const int fd = ::open(m_name.c_str(), O_RDWR | O_CLOEXEC);
        EXPECT_EQ(lock(fd), 0);
        ++locked;
        EXPECT_EQ(::close(fd), 0);  // which gives it up
      });
    }
    IOManager::GetThis()->schedule([&] {
      EXPECT_EQ(locked, 0);
      EXPECT_EQ(BlockingPool::process().threads(), 0u);
      holder.release();
    });
  });
  EXPECT_EQ(locked, kFibers);
}

}  // namespace
}  // namespace sylar::test
