// Whoever makes or closes a descriptor keeps the table true: nobody waits for a number that is gone, and what an earlier
// descriptor left behind says nothing of the next one.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include <cstdio>

#include "sylar/base/sanitizers.h"
#include "sylar/io/fd_table.h"
#include "sylar/sync/blocking_pool.h"
#include "tests/hook/fd/close_support.h"

extern "C" {
int __close(int fd);
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int directory, const char* path, int flags);
int __openat64_2(int directory, const char* path, int flags);
}

namespace sylar::test {
namespace {

sigset_t oneSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  return set;
}

struct Creator {
  const char* name;
  int (*make)();
  bool is_private = false;
  bool nonblocking = false;
};
const sigset_t kOneSignal = oneSignal();
const Creator kCreators[] = {
    {"open", [] { return ::open("/dev/null", O_RDWR); }},
    {"open64", [] { return ::open64("/dev/null", O_RDWR); }},
    {"openat", [] { return ::openat(AT_FDCWD, "/dev/null", O_RDWR); }},
    {"openat64", [] { return ::openat64(AT_FDCWD, "/dev/null", O_RDWR); }},
    {"creat", [] { return ::creat("/dev/null", 0600); }},
    {"creat64", [] { return ::creat64("/dev/null", 0600); }},
    {"__open_2", [] { return __open_2("/dev/null", O_RDWR); }},
    {"__open64_2", [] { return __open64_2("/dev/null", O_RDWR); }},
    {"__openat_2", [] { return __openat_2(AT_FDCWD, "/dev/null", O_RDWR); }},
    {"__openat64_2", [] { return __openat64_2(AT_FDCWD, "/dev/null", O_RDWR); }},
    {"eventfd", [] { return ::eventfd(0, 0); }, true, false},
    {"eventfd nonblocking", [] { return ::eventfd(0, EFD_NONBLOCK); }, true, true},
    {"timerfd_create", [] { return ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK); }, true, true},
    {"signalfd", [] { return ::signalfd(-1, &kOneSignal, 0); }, true, false},
    {"inotify_init", [] { return ::inotify_init(); }, true, false},
    {"inotify_init1", [] { return ::inotify_init1(IN_NONBLOCK); }, true, true},
    {"epoll_create", [] { return ::epoll_create(1); }, true, false},
    {"epoll_create1", [] { return ::epoll_create1(EPOLL_CLOEXEC); }, true, false},
    {"socket", [] { return ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0); }, true, true},
    {"dup", [] { return ::dup(2); }},
    {"fcntl F_DUPFD", [] { return ::fcntl(2, F_DUPFD, 0); }},
};

// CD-H5: the number of a descriptor that was closed behind our back.
TEST(Creators, StartANumberAnew) {
  for (const Creator& creator : kCreators) {
    SCOPED_TRACE(creator.name);
    const int stale = ::socket(AF_INET, SOCK_STREAM | (creator.nonblocking ? 0 : SOCK_NONBLOCK), 0);
    const Entry& entry = *FdTable::find(stale);
    const uint32_t generation = Entry::generationOf(entry.life());
    ASSERT_EQ(sys::call(SYS_close, stale), 0);
    const int fd = creator.make();
    ASSERT_EQ(fd, stale);
    EXPECT_EQ(Entry::generationOf(entry.life()), generation + 1);
    EXPECT_NE(entry.kind(), FdKind::kTcp);
    EXPECT_EQ(entry.isPrivate(), creator.is_private);
    if (creator.is_private) {
      EXPECT_EQ(entry.nonblocking(), creator.nonblocking);
    }
    EXPECT_EQ(::close(fd), 0);
    EXPECT_FALSE(entry.known());
  }
}

TEST(Creators, TakeAModeWhereOneIsGiven) {
  const std::string path = testing::TempDir() + "/sylar_mode_" + std::to_string(::getpid());
  const mode_t old = ::umask(0);
  const auto modeOf = [&](int fd) {
    struct stat status {};
    EXPECT_EQ(::fstat(fd, &status), 0);
    EXPECT_EQ(::close(fd), 0);
    ::unlink(path.c_str());
    return status.st_mode & 0777;
  };
  EXPECT_EQ(modeOf(::open(path.c_str(), O_CREAT | O_WRONLY, 0640)), 0640u);
  EXPECT_EQ(modeOf(::open64(path.c_str(), O_CREAT | O_WRONLY, 0604)), 0604u);
  EXPECT_EQ(modeOf(::openat(AT_FDCWD, path.c_str(), O_CREAT | O_WRONLY, 0611)), 0611u);
  EXPECT_EQ(modeOf(::openat64(AT_FDCWD, path.c_str(), O_CREAT | O_WRONLY, 0666)), 0666u);
  EXPECT_EQ(modeOf(::creat(path.c_str(), 0700)), 0700u);
  ::umask(old);
}

TEST(Creators, GiveLibcsErrors) {
  errno = 0;
  EXPECT_EQ(::open("/nowhere/at/all", O_RDONLY), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(::eventfd(0, ~0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::epoll_create(0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::signalfd(99999, &kOneSignal, 0), -1);
  EXPECT_EQ(errno, EBADF);
}

/// Closes the number, or puts something else behind it.
struct Closer {
  const char* name;
  void (*close)(int fd);
};
void coverBy(int (*dup_onto)(int from, int to), int fd) {
  const int other = ::open("/dev/null", O_RDONLY);
  EXPECT_EQ(dup_onto(other, fd), fd);
  EXPECT_EQ(::close(other), 0);
  EXPECT_EQ(::close(fd), 0);
}
const Closer kClosers[] = {
    {"close", [](int fd) { EXPECT_EQ(::close(fd), 0); }},
    {"__close", [](int fd) { EXPECT_EQ(__close(fd), 0); }},
    {"fclose", [](int fd) { EXPECT_EQ(std::fclose(::fdopen(fd, "r")), 0); }},
    {"freopen",
     [](int fd) {
       FILE* const file = std::freopen("/dev/null", "r", ::fdopen(fd, "r"));
       ASSERT_NE(file, nullptr);
       EXPECT_EQ(std::fclose(file), 0);
     }},
    {"freopen64",
     [](int fd) {
       FILE* const file = ::freopen64("/dev/null", "r", ::fdopen(fd, "r"));
       ASSERT_NE(file, nullptr);
       EXPECT_EQ(std::fclose(file), 0);
     }},
    {"dup2", [](int fd) { coverBy([](int from, int to) { return ::dup2(from, to); }, fd); }},
    {"dup3", [](int fd) { coverBy([](int from, int to) { return ::dup3(from, to, O_CLOEXEC); }, fd); }},
    {"close_range", [](int fd) { EXPECT_EQ(::close_range(unsigned(fd), unsigned(fd), 0), 0); }},
};

// FM-13, CD-I1: each closer ends each wait with EBADF; what gets the number next is waited for as what it is.
TEST(Closers, EndTheWaitsForTheirNumber) {
  const LeakCheck leaks;
  inFiber([] {
    for (const Closer& closer : kClosers) {
      SCOPED_TRACE(closer.name);
      const Ends old = makeUnix(hookedCalls(), SOCK_STREAM);
      Ended ended;
      std::vector<Fiber::ptr> waiters;
      for (int i = 0; i < 3; ++i) {
        waiters.push_back(std::make_shared<Fiber>([&] { ended.check(readOn(old[0])); }));
        IOManager::GetThis()->schedule(waiters.back());
        untilParked(*waiters.back());
      }
      closer.close(old[0]);
      for (const Fiber::ptr& waiter : waiters) waiter->join();
      EXPECT_EQ(ended.count.load(), 3);
#if !defined(SYLAR_ASAN) && !defined(SYLAR_TSAN)  // whose runtimes make pipes at any time
      EXPECT_FALSE(FdTable::find(old[0])->known());
#endif
      EXPECT_EQ(::close(old[1]), 0);
      // By bare system calls: only what the closer left behind speaks for this one.
      const Pair next(makeUnix(libcCalls(), SOCK_STREAM));
      EXPECT_EQ(next.a, old[0]);
      IOManager::GetThis()->schedule([&] { EXPECT_EQ(::write(next.b, "x", 1), 1); });
      char byte = 0;
      EXPECT_EQ(::read(next.a, &byte, 1), 1);
    }
  });
}

// FM-22
TEST(Closers, PcloseEndsTheWaits) {
  const LeakCheck leaks;
  inFiber([] {
    const Pair gate = pipePair();
    // A child that writes nothing, and ends when the gate is opened.
    const std::string command = "read line </proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(gate.a);
    FILE* const file = ::popen(command.c_str(), "r");
    ASSERT_NE(file, nullptr);
    Ended ended;
    const auto waiter = std::make_shared<Fiber>([&, fd = ::fileno(file)] { ended.check(readOn(fd)); });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    IOManager::GetThis()->schedule([&, me = Fiber::GetThis()] {
      untilParked(*me);
      EXPECT_EQ(::write(gate.b, "\n", 1), 1);
    });
    EXPECT_EQ(::pclose(file), 0);
    waiter->join();
    EXPECT_EQ(ended.count.load(), 1);
  });
  BlockingPool::process().endAll();  // the helper thread that has waited for the child
}

// A shutdown closes nothing: readers get the end of the stream, and the number stays what it was.
TEST(Closers, ShutdownIsNone) {
  const LeakCheck leaks;
  inFiber([] {
    const Pair pair = unixPair();
    const auto waiter = std::make_shared<Fiber>([&] { EXPECT_EQ(readOn(pair.a), 0); });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    const uint64_t life = FdTable::find(pair.a)->life();
    EXPECT_EQ(::shutdown(pair.a, SHUT_RDWR), 0);
    waiter->join();
    EXPECT_EQ(FdTable::find(pair.a)->life(), life);
  });
}

// ---- close_range and closefrom. ----------------------------------------------------------------------------------------------

TEST(CloseRange, MarksForExecCloseNothing) {
  const Pair pair = unixPair();
  inFiber([&] {
    bool got = false;
    const auto waiter = std::make_shared<Fiber>([&] { got = readOn(pair.a) == 1; });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    EXPECT_EQ(::close_range(unsigned(pair.a), ~0U, CLOSE_RANGE_CLOEXEC), 0);
    EXPECT_EQ(::fcntl(pair.a, F_GETFD), FD_CLOEXEC);
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
    waiter->join();
    EXPECT_TRUE(got);
  });
}

TEST(CloseRange, GivesTheKernelsErrors) {
  EXPECT_EQ(::close_range(7, 6, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::close_range(1000, 1001, 1 << 30), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::close_range(100'000'000, ~0U, 0), 0);
}

// The numbers of a thread that has left the others': those of the others are waited for as before.
TEST(CloseRange, OfAThreadThatUnsharesLeavesTheOthersTheirs) {
  const Pair pair = unixPair();
  inFiber([&] {
    bool got = false;
    const auto waiter = std::make_shared<Fiber>([&] { got = readOn(pair.a) == 1; });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    std::thread([&] {
      EXPECT_EQ(::close_range(3, ~0U, CLOSE_RANGE_UNSHARE), 0);
      EXPECT_EQ(::syscall(SYS_fcntl, pair.a, F_GETFD), -1);
    }).join();
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
    waiter->join();
    EXPECT_TRUE(got);
  });
}

/// Closes everything from `first` on.
using CloseAll = void (*)(int first);
class CloseAllOf : public testing::TestWithParam<CloseAll> {};

// Everything of the user's is closed, its waiters are told; the workers go on.
TEST_P(CloseAllOf, PassesOverWhatIsTheLibrarys) {
  int beyond = -1;
  inFiber([&] {
    beyond = ::dup2(2, 1000);
    std::vector<Ends> pairs;
    Ended ended;
    std::vector<Fiber::ptr> waiters;
    for (int i = 0; i < 5; ++i) {
      pairs.push_back(makeUnix(hookedCalls(), SOCK_STREAM));
      waiters.push_back(std::make_shared<Fiber>([&ended, fd = pairs.back()[0]] { ended.check(readOn(fd)); }));
      IOManager::GetThis()->schedule(waiters.back());
      untilParked(*waiters.back());
    }
    GetParam()(3);
    for (const Fiber::ptr& waiter : waiters) waiter->join();
    EXPECT_EQ(ended.count.load(), 5);
    for (const Ends& pair : pairs) {
      for (const int fd : pair) EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
    }
    EXPECT_EQ(::fcntl(beyond, F_GETFD), -1);
    // The engine still tells of events, and of timeouts.
    const Pair next = unixPair();
    IOManager::GetThis()->schedule([&] { EXPECT_EQ(::write(next.b, "x", 1), 1); });
    EXPECT_EQ(readOn(next.a), 1);
    EXPECT_EQ(::usleep(1000), 0);
  });
}
INSTANTIATE_TEST_SUITE_P(By, CloseAllOf,
                         testing::Values([](int first) { EXPECT_EQ(::close_range(unsigned(first), ~0U, 0), 0); },
                                         [](int first) { ::closefrom(first); },
                                         [](int first) {
                                           for (int fd = first; fd < 2000; ++fd) ::close(fd);
                                         }));

int firstOwn() {
  int own = 0;
  while (!sys::isOwn(own)) ++own;
  return own;
}

TEST(LibrarysDescriptors, AreNoDescriptorsOfTheUsers) {
  IOManager iom(1, false, "own");
  const int own = firstOwn();
  EXPECT_EQ(::close(own), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(::dup2(2, own), -1);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_EQ(::dup3(2, own, 0), -1);
  EXPECT_EQ(errno, EBUSY);
}

// Cause: a stream whose number was closed behind its back closed the library's descriptor, or flushed its bytes into it.
TEST(LibrarysDescriptors, SurviveStreamsThatHadTheirNumber) {
  IOManager iom(1, false, "own");
  const int own = firstOwn();
  FILE* const closed = ::fdopen(own, "r+");
  ASSERT_NE(closed, nullptr);
  ASSERT_EQ(::fputs("12345678", closed), 1);
  EXPECT_EQ(::fclose(closed), EOF);
  EXPECT_EQ(errno, EBADF);
  EXPECT_TRUE(sys::isOwn(own));
  EXPECT_GE(::fcntl(own, F_GETFD), 0);

  FILE* const reopened = ::fdopen(own, "r+");
  ASSERT_NE(reopened, nullptr);
  ASSERT_EQ(::freopen("/dev/null", "r", reopened), reopened);
  EXPECT_NE(::fileno(reopened), own);
  EXPECT_EQ(::fgetc(reopened), EOF);
  EXPECT_EQ(::fclose(reopened), 0);
  EXPECT_TRUE(sys::isOwn(own));
  EXPECT_GE(::fcntl(own, F_GETFD), 0);
  uint64_t woken = 0;
  inFiber([&woken] { woken = 1; });  // and it still does what it is for
  EXPECT_EQ(woken, 1u);
}

TEST(LibrarysDescriptors, StandOutOfTheWayOfLowNumbers) {
  IOManager iom(1, false, "own");
  EXPECT_GE(firstOwn(), 64);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int low = 0; low < 64; ++low) {
    const int saved = ::fcntl(low, F_DUPFD_CLOEXEC, 0);
    EXPECT_EQ(::dup2(null, low), low);
    if (low == null) continue;
    if (saved >= 0) {
      EXPECT_EQ(::dup2(saved, low), low);
      ::close(saved);
    } else {
      ::close(low);
    }
  }
  ::close(null);
}

// ---- The kernel's errors of dup2. --------------------------------------------------------------------------------------------

TEST(Dup2, GivesTheKernelsErrorsAndChangesNothing) {
  const Pair pair = unixPair();
  const uint64_t life = FdTable::find(pair.a)->life();
  EXPECT_EQ(::dup2(-1, pair.a), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(::dup2(pair.a, -1), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(::dup2(pair.a, 1 << 30), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(::dup3(pair.a, pair.a, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::dup2(pair.a, pair.a), pair.a);
  EXPECT_EQ(FdTable::find(pair.a)->life(), life);
  EXPECT_TRUE(FdTable::find(pair.a)->isPrivate());
}

}  // namespace
}  // namespace sylar::test
