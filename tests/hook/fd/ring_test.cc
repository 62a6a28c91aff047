// Files by io_uring: calls that wait for a file system suspend their fiber, any number of them at once, and give what the kernel
// gives.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <iterator>

#include "sylar/cancel.h"
#include "sylar/hook/file/slow_mounts.h"
#include "sylar/io/epoll_engine.h"
#include "sylar/sync/wait_group.h"
#include "tests/hook/core/refuse_call.h"
#include "tests/hook/fd/kinds.h"
#include "tests/hook/support.h"
#include "tests/support/held_disk.h"
#include "tests/support/log_lines.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

/// Returns true if workers have rings here.
bool hasRing() {
  bool has = false;
  inFiber([&] { has = EpollEngine::current()->ring() != nullptr; });
  return has;
}

std::string bytesOf(size_t offset, size_t size) {
  std::string bytes(size, ' ');
  for (size_t i = 0; i < size; ++i) bytes[i] = HeldDisk::byteAt(offset + i);
  return bytes;
}

void expectFile(const struct stat& status) {
  EXPECT_EQ(status.st_size, off_t{HeldDisk::kSize});
  EXPECT_EQ(status.st_mode, S_IFREG | 0644U);
  EXPECT_EQ(status.st_ino, 2U);
  EXPECT_EQ(status.st_uid, 7U);
  EXPECT_EQ(status.st_mtim.tv_sec, 1'000'000'000);
  EXPECT_EQ(status.st_mtim.tv_nsec, 5);
  EXPECT_EQ(status.st_blksize, 4096);
}

/// A call during which the disk holds requests of a kind.
struct Held {
  const char* name;
  fuse_opcode kind;
  bool by_helper;  // also without a ring
  void (*call)(const HeldDisk& disk, int fd);
};
std::ostream& operator<<(std::ostream& out, const Held& one) { return out << one.name; }

void opens(const HeldDisk& disk, int (*open)(const char* folder, const char* path)) {
  const int fd = open(disk.folder().c_str(), disk.path().c_str());
  ASSERT_GE(fd, 0) << ::strerror(errno);
  EXPECT_EQ(::close(fd), 0);
}

const Held kHeld[] = {
    {"open", FUSE_OPEN, false,
     [](const HeldDisk& disk, int) { opens(disk, [](auto, auto path) { return ::open(path, O_RDONLY | O_CLOEXEC); }); }},
    {"open_for_its_name", FUSE_LOOKUP, false,
     [](const HeldDisk& disk, int) { opens(disk, [](auto, auto path) { return ::open(path, O_RDWR | O_CLOEXEC); }); }},
    {"openat_of_a_folder", FUSE_OPEN, false,
     [](const HeldDisk& disk, int) {
       opens(disk, [](auto folder, auto) {
         const int at = ::open(folder, O_PATH | O_DIRECTORY);
         const int fd = ::openat(at, "file", O_RDONLY | O_CLOEXEC);
         ::close(at);
         return fd;
       });
     }},
    {"open_to_truncate", FUSE_SETATTR, false,
     [](const HeldDisk& disk, int) { opens(disk, [](auto, auto path) { return ::open(path, O_RDWR | O_TRUNC); }); }},
    {"creat", FUSE_OPEN, false,
     [](const HeldDisk& disk, int) { opens(disk, [](auto, auto path) { return ::creat(path, 0644); }); }},
#ifdef __x86_64__
    {"open_by_number", FUSE_OPEN, false,
     [](const HeldDisk& disk, int) {
       opens(disk, [](auto, auto path) { return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_RDONLY, 0)); });
     }},
#endif
    {"open_of_nothing", FUSE_LOOKUP, false,
     [](const HeldDisk& disk, int) {
       EXPECT_EQ(::open(disk.path("none").c_str(), O_RDONLY), -1);
       EXPECT_EQ(errno, ENOENT);
     }},
    {"stat", FUSE_LOOKUP, false,
     [](const HeldDisk& disk, int) {
       struct stat status {};
       EXPECT_EQ(::stat(disk.path().c_str(), &status), 0);
       expectFile(status);
     }},
    {"lstat", FUSE_LOOKUP, false,
     [](const HeldDisk& disk, int) {
       struct stat status {};
       EXPECT_EQ(::lstat(disk.path().c_str(), &status), 0);
       expectFile(status);
     }},
    {"fstatat", FUSE_GETATTR, false,
     [](const HeldDisk&, int fd) {
       struct stat status {};
       EXPECT_EQ(::fstatat(fd, "", &status, AT_EMPTY_PATH), 0);
       expectFile(status);
     }},
    {"statx", FUSE_LOOKUP, false,
     [](const HeldDisk& disk, int) {
       struct statx status {};
       EXPECT_EQ(::statx(AT_FDCWD, disk.path().c_str(), 0, STATX_BASIC_STATS, &status), 0);
       EXPECT_EQ(status.stx_size, HeldDisk::kSize);
     }},
    {"is_regular_file", FUSE_LOOKUP, false,
     [](const HeldDisk& disk, int) { EXPECT_TRUE(std::filesystem::is_regular_file(disk.path())); }},
    {"read", FUSE_READ, true,
     [](const HeldDisk&, int fd) {
       std::string bytes(100, '.');
       EXPECT_EQ(::read(fd, bytes.data(), 100), 100);
       EXPECT_EQ(bytes, bytesOf(0, 100));
       EXPECT_EQ(::lseek(fd, 0, SEEK_CUR), 100);
     }},
    {"pread", FUSE_READ, true,
     [](const HeldDisk&, int fd) {
       std::string bytes(2'000, '.');
       EXPECT_EQ(::pread(fd, bytes.data(), 2'000, HeldDisk::kSize - 1'000), 1'000);
       EXPECT_EQ(bytes.substr(0, 1'001), bytesOf(HeldDisk::kSize - 1'000, 1'000) + '.');
       EXPECT_EQ(::lseek(fd, 0, SEEK_CUR), 0);
     }},
    {"preadv", FUSE_READ, true,
     [](const HeldDisk&, int fd) {
       std::string bytes(100, '.');
       const iovec parts[] = {{bytes.data(), 30}, {bytes.data() + 30, 70}};
       EXPECT_EQ(::preadv(fd, parts, 2, 50), 100);
       EXPECT_EQ(bytes, bytesOf(50, 100));
     }},
    {"write", FUSE_WRITE, true, [](const HeldDisk&, int fd) { EXPECT_EQ(::write(fd, "12345", 5), 5); }},
    {"pwrite", FUSE_WRITE, true, [](const HeldDisk&, int fd) { EXPECT_EQ(::pwrite(fd, "12345", 5, 10), 5); }},
    {"pwritev", FUSE_WRITE, true,
     [](const HeldDisk&, int fd) {
       char bytes[] = "12345";
       const iovec parts[] = {{bytes, 2}, {bytes + 2, 3}};
       EXPECT_EQ(::pwritev(fd, parts, 2, 10), 5);
     }},
    {"fsync", FUSE_FSYNC, true, [](const HeldDisk&, int fd) { EXPECT_EQ(::fsync(fd), 0); }},
    {"fdatasync", FUSE_FSYNC, true, [](const HeldDisk&, int fd) { EXPECT_EQ(::fdatasync(fd), 0); }},
};

class RingDisk : public testing::Test {
 protected:
  void SetUp() override {
    if (!m_disk.mounted()) GTEST_SKIP() << "no file system can be mounted here";
    if (!hasRing()) GTEST_SKIP() << "there is no io_uring here";
    m_fd = ::open(m_disk.path().c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(m_fd, 0) << ::strerror(errno);
  }
  void TearDown() override {
    if (m_fd >= 0) {
      EXPECT_EQ(::close(m_fd), 0);
    }
    EXPECT_FALSE(m_disk.gaveUp());
  }
  /// Lets others run until the disk holds `count` requests. For fibers.
  void untilHeld(unsigned count = 1) {
    while (m_disk.held() < count && !m_disk.gaveUp()) ::usleep(100);
  }

  HeldDisk m_disk;
  int m_fd = -1;
};

class HeldCall : public RingDisk, public testing::WithParamInterface<Held> {
 protected:
  void expectOthersRun() {
    m_disk.hold(GetParam().kind);
    bool others = false;
    inFiber([&] {
      IOManager::GetThis()->schedule([&] {
        untilHeld();
        others = !m_disk.gaveUp();
        m_disk.letGo();
      });
      errno = 77;
      GetParam().call(m_disk, m_fd);
      EXPECT_TRUE(others);
    });
  }
};
std::string nameOf(const testing::TestParamInfo<Held>& one) { return one.param.name; }
INSTANTIATE_TEST_SUITE_P(On, HeldCall, testing::ValuesIn(kHeld), nameOf);

TEST_P(HeldCall, SuspendsItsFiber) { expectOthersRun(); }

/// Those that suspend without a ring as well.
std::vector<Held> byHelper() {
  std::vector<Held> some;
  std::copy_if(std::begin(kHeld), std::end(kHeld), std::back_inserter(some), [](const Held& one) { return one.by_helper; });
  return some;
}
class HeldCallOfAHelper : public HeldCall {};
INSTANTIATE_TEST_SUITE_P(On, HeldCallOfAHelper, testing::ValuesIn(byHelper()), nameOf);

TEST_P(HeldCallOfAHelper, SuspendsItsFiber) {
  const EngineMode epoll(IOEngine::kEpoll);
  expectOthersRun();
}

// The same answers on a thread, where nothing is held.
TEST_P(HeldCall, IsLibcsOnAThread) { GetParam().call(m_disk, m_fd); }

TEST_F(RingDisk, CarriesOutMoreCallsAtOnceThanThereMayBeHelperThreads) {
  constexpr unsigned kMany = 150;
  m_disk.hold(FUSE_OPEN);
  inFiber([&] {
    WaitGroup all;
    for (unsigned i = 0; i < kMany; ++i) {
      all.add();
      IOManager::GetThis()->schedule([&] {
        opens(m_disk, [](auto, auto path) { return ::open(path, O_RDONLY | O_CLOEXEC); });
        all.done();
      });
    }
    untilHeld(kMany);
    m_disk.letGo();
    all.wait();
  });
}

/// Closes `fd` while the disk holds `call`, and gives the number to an empty file.
void whileTheNumberGoesOn(HeldDisk& disk, fuse_opcode kind, int fd, const std::function<void()>& call) {
  disk.hold(kind);
  Owned owned;
  const int other = owned.keep(::open(owned.file().c_str(), O_RDWR | O_CLOEXEC));
  inFiber([&] {
    IOManager::GetThis()->schedule([&] {
      while (disk.held() == 0 && !disk.gaveUp()) ::usleep(100);
      EXPECT_EQ(::dup2(other, fd), fd);
      disk.letGo();
    });
    call();
  });
}

TEST_F(RingDisk, SyncsTheFileThatWasOpenWhenTheCallBegan) {
  whileTheNumberGoesOn(m_disk, FUSE_FSYNC, m_fd, [&] { EXPECT_EQ(::fsync(m_fd), 0); });
}

TEST_F(RingDisk, ACancelDoesNotEndACall) {
  m_disk.hold(FUSE_FSYNC);
  inFiber([&] {
    bool synced = false;
    const auto caller = std::make_shared<Fiber>([&] {
      EXPECT_EQ(::fsync(m_fd), 0);
      synced = true;
    });
    IOManager::GetThis()->schedule(caller);
    untilHeld();
    caller->cancel();
    Fiber::YieldToReady();
    EXPECT_FALSE(synced);
    m_disk.letGo();
    caller->join();
    EXPECT_TRUE(synced);
  });
}

// The kernel goes on with the stack of a fiber that was given up, and keeps the worker's thread.
TEST_F(RingDisk, AStopWithADeadlineGivesUpACallThatHangs) {
  m_disk.hold(FUSE_FSYNC);
  IOManager iom(1, false, "hangs");
  iom.schedule([&] {
    ::fsync(m_fd);
    ADD_FAILURE() << "it was given up";
  });
  while (m_disk.held() == 0 && !m_disk.gaveUp()) std::this_thread::sleep_for(100us);
  const StopResult result = iom.stop(Deadline::after(1ms));
  EXPECT_EQ(result.abandoned.size(), 1U);
  EXPECT_FALSE(m_disk.gaveUp());
  m_disk.letGo();
}

TEST_F(RingDisk, AStopWithADeadlineGivesUpAnOpenThatHangs) {
  m_disk.hold(FUSE_OPEN);
  IOManager iom(1, false, "hangs");
  iom.schedule([&] { ::open(m_disk.path().c_str(), O_RDONLY); });
  while (m_disk.held() == 0 && !m_disk.gaveUp()) std::this_thread::sleep_for(100us);
  EXPECT_FALSE(iom.stop(Deadline::after(1ms)).clean);
  EXPECT_FALSE(m_disk.gaveUp());
  m_disk.letGo();
}

// The ring is the parent's. The child's calls are libc's.
TEST_F(RingDisk, AForkMeanwhileIsNoneOfItsBusiness) {
  m_disk.hold(FUSE_FSYNC);
  inFiber([&] {
    IOManager::GetThis()->schedule([&] {
      untilHeld();
      const pid_t child = ::fork();
      if (child == 0) {
        struct stat status {};
        const int null = ::open("/dev/null", O_RDWR);
        ::_exit(null >= 0 && ::fsync(null) == -1 && errno == EINVAL && ::stat(m_disk.path().c_str(), &status) == 0 ? 7 : 8);
      }
      EXPECT_EQ(exitOf(child), 7);
      m_disk.letGo();
    });
    EXPECT_EQ(::fsync(m_fd), 0);
    EXPECT_EQ(::fsync(m_fd), 0);
  });
}

// While any such file system is mounted, paths are looked up by the ring wherever they lead.
TEST_F(RingDisk, PathsGiveWhatThePlainCallGives) {
  Owned owned;
  const std::string file = owned.file(), link = file + ".link", made = file + ".made", below = file + "/below";
  ASSERT_EQ(::symlink(file.c_str(), link.c_str()), 0);
  const auto all = [&](const Calls& call) {
    std::vector<std::string> got;
    const auto note = [&](int fd) {
      struct stat status {};
      got.push_back(fd < 0 ? ::strerrorname_np(errno)
                           : std::to_string(fd) + ' ' + std::to_string(::fcntl(fd, F_GETFL)) + ' ' +
                                 std::to_string(::fcntl(fd, F_GETFD)) + ' ' +
                                 (::fstat(fd, &status) == 0 ? std::to_string(status.st_mode) : "O_PATH"));
      if (fd >= 0) call.close(fd);
    };
    const mode_t mask = ::umask(0137);
    const auto bad = reinterpret_cast<const char*>(8);
    for (const char* path : {file.c_str(), link.c_str(), below.c_str(), "", "/", "/tmp", "/no/such", bad,
                             "/proc/thread-self/comm", "/proc/self/none", "/dev/null", m_disk.folder().c_str()}) {
      for (const int flags :
           {O_RDONLY, O_RDWR | O_CLOEXEC, O_WRONLY | O_NOFOLLOW, O_RDONLY | O_DIRECTORY, O_PATH, O_PATH | O_NOFOLLOW,
            O_RDWR | O_TMPFILE, O_RDONLY | O_NONBLOCK, O_CREAT | O_EXCL | O_WRONLY, O_RDONLY | O_ACCMODE, 0x40000000}) {
        note(call.open(path, flags, 0666));
      }
    }
    note(call.open(std::string(5000, 'x').c_str(), O_RDONLY));
    note(call.open(made.c_str(), O_CREAT | O_WRONLY, 0777));  // as the umask says
    EXPECT_EQ(::unlink(made.c_str()), 0);
    note(call.openat(999, "x", O_RDONLY));
    const int folder = call.open("/tmp", O_PATH);
    note(call.openat(folder, std::filesystem::path(file).filename().c_str(), O_RDONLY));
    note(call.openat(folder, "none", O_RDONLY));
    call.close(folder);
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit none{3, limit.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
    const int first = call.open("/no/such", O_RDONLY);
    got.push_back(first < 0 ? ::strerrorname_np(errno) : "?");
    const int second = call.open(m_disk.path().c_str(), O_RDONLY);
    got.push_back(second < 0 ? ::strerrorname_np(errno) : "?");
    ::setrlimit(RLIMIT_NOFILE, &limit);
    ::umask(mask);
    return got;
  };
  const std::vector<std::string> wanted = all(libcCalls());
  std::vector<std::string> got;
  inFiber([&] { got = all(hookedCalls()); });
  EXPECT_EQ(got, wanted);
  ::unlink(link.c_str());
}

TEST_F(RingDisk, StatsGiveWhatThePlainCallGives) {
  Owned owned;
  const std::string file = owned.file(), below = file + "/below", held = m_disk.path(), none = m_disk.path("none");
  const auto all = [&](auto call) {
    std::vector<std::string> got;
    const auto bad = reinterpret_cast<const char*>(8);
    for (const char* path :
         {file.c_str(), held.c_str(), below.c_str(), "", "/no/such", bad, "/proc/self/none", "/dev/null", none.c_str()}) {
      for (const int flags : {0, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, AT_NO_AUTOMOUNT, 0x40000000}) {
        struct stat status {};
        got.push_back(call(AT_FDCWD, path, &status, flags) != 0 ? ::strerrorname_np(errno) : "");
        if (got.back().empty()) {
          for (const uint64_t field :
               {status.st_dev, status.st_ino, uint64_t{status.st_mode}, status.st_nlink, uint64_t{status.st_uid},
                uint64_t{status.st_gid}, status.st_rdev, static_cast<uint64_t>(status.st_size),
                static_cast<uint64_t>(status.st_blksize), static_cast<uint64_t>(status.st_blocks),
                static_cast<uint64_t>(status.st_mtim.tv_nsec), static_cast<uint64_t>(status.st_ctim.tv_sec)}) {
            got.back() += std::to_string(field) + ' ';
          }
        }
      }
      got.push_back(call(AT_FDCWD, path, reinterpret_cast<struct stat*>(8), 0) != 0 ? ::strerrorname_np(errno) : "?");
    }
    return got;
  };
  const auto plain = [](int folder, const char* path, struct stat* to, int flags) {
    const long result = sys::call(SYS_newfstatat, folder, path, to, flags);
    if (result < 0) errno = static_cast<int>(-result);
    return result < 0 ? -1 : 0;
  };
  const auto wanted = all(plain);
  inFiber([&] { EXPECT_EQ(all(&::fstatat), wanted); });
  {
    struct stat of_fiber {
    }, of_thread{};
    inFiber([&] {
      EXPECT_EQ(::stat("/proc/thread-self", &of_fiber), 0);
      EXPECT_EQ(plain(AT_FDCWD, "/proc/thread-self", &of_thread, 0), 0);
    });
    EXPECT_EQ(of_fiber.st_ino, of_thread.st_ino);
  }
}

TEST(SlowMounts, AreToldByTheirTypeAndPlace) {
  const auto kind = [](const char* line) { return detail::slowMountOf(line).kind; };
  const auto device = [](const char* line) { return detail::slowMountOf(line).device; };
  EXPECT_EQ(device("36 35 0:51 / /mnt rw,noatime master:1 - nfs4 host:/x rw,errors=continue"), ::makedev(0, 51));
  EXPECT_EQ(device("36 35 0:52 / /a\\040b rw - fuse.sshfs host: rw"), ::makedev(0, 52));
  EXPECT_EQ(kind("36 35 0:51 / /mnt rw,noatime master:1 - nfs4 host:/x rw,errors=continue"), SlowKind::kNetwork);
  EXPECT_EQ(kind("36 35 0:52 / /a\\040b rw - fuse.sshfs host: rw"), SlowKind::kFuse);
  EXPECT_EQ(kind("36 35 254:1 / / rw - ext4 /dev/vda rw"), SlowKind::kNone);
  EXPECT_EQ(kind("36 35 0:53 / /proc/cpuinfo rw - fuse.lxcfs lxcfs rw"), SlowKind::kNone);
  EXPECT_EQ(kind("36 35 0:54 / /sys/fs/fuse/connections rw - fusectl fusectl rw"), SlowKind::kNone);
  EXPECT_EQ(kind(""), SlowKind::kNone);
}

// Cause: while the list was read again, it was empty for all others.
TEST_F(RingDisk, ASlowMountIsKnownWhileTheListIsReadAgain) {
  ASSERT_TRUE(detail::anySlowMount());
  char name[] = "/tmp/sylar_mounts_XXXXXX";
  const std::string folder = ::mkdtemp(name);
  std::atomic<bool> over{false};
  std::thread mounter([&] {
    for (int i = 0; i < 300; ++i) {
      EXPECT_EQ(::mount("sylar", folder.c_str(), "tmpfs", 0, nullptr), 0) << ::strerror(errno);
      EXPECT_EQ(::umount2(folder.c_str(), 0), 0) << ::strerror(errno);
    }
    over = true;
  });
  const auto look = [&over] {
    bool known = true;
    while (!over) known = detail::anySlowMount() && known;
    EXPECT_TRUE(known);
  };
  std::thread other(look);  // one of the two is told that the list has changed
  look();
  other.join();
  mounter.join();
  std::filesystem::remove(folder);
}

/// Lets a supervisor decide about each io_uring_enter of the calling thread, and returns its descriptor, or -1.
int superviseEnters() {
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{std::size(rules), rules};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}

// Cause: what the kernel had refused stayed in the ring, which was full after four of them.
TEST_F(RingDisk, IsUsedAgainAfterTheKernelHasRefusedIt) {
  constexpr unsigned kRefused = 6, kCalls = 20;
  std::atomic<int> listener{0};
  unsigned refused = 0, taken = 0;
  const int end = ::eventfd(0, EFD_CLOEXEC);
  std::thread supervisor([&] {
    while (listener == 0) std::this_thread::yield();
    pollfd of[] = {{listener, POLLIN, 0}, {end, POLLIN, 0}};
    while (::poll(of, 2, -1) > 0 && of[1].revents == 0) {
      seccomp_notif call{};
      seccomp_notif_resp answer{};
      if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;
      answer.id = call.id;
      const bool submits = call.data.args[1] > 0;
      if (submits && refused < kRefused) {
        ++refused;
        answer.error = -EAGAIN;
      } else {
        taken += submits;
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
      }
      EXPECT_EQ(::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer), 0);
    }
  });
  inFiber([&] {
    EXPECT_NE(EpollEngine::current()->ring(), nullptr);
    listener = superviseEnters();
    for (unsigned i = 0; i < kCalls; ++i) EXPECT_EQ(::fsync(m_fd), 0);
  });
  EXPECT_EQ(::eventfd_write(end, 1), 0);
  supervisor.join();
  ::close(end);
  if (listener < 0) GTEST_SKIP() << "somebody else decides about system calls here";
  EXPECT_EQ(refused, kRefused);
  EXPECT_GE(taken, kCalls - kRefused);
  ::close(listener);
}

TEST_F(RingDisk, WithoutAnIoUringHelperThreadsMakeTheCalls) {
  for (const int error : {ENOSYS, EPERM}) {
    for (const IOEngine engine : {IOEngine::kAuto, IOEngine::kUring}) {
      const EngineMode mode(engine);
      std::atomic<unsigned> told = 0;
      const LogLines lines([&](auto, std::string_view line) { told += line.find("io.engine") != line.npos; });
      m_disk.hold(FUSE_READ);
      std::thread([&] {
        refuseCall(SYS_io_uring_setup, error);
        inFiber([&] {
          EXPECT_EQ(EpollEngine::current()->ring(), nullptr);
          IOManager::GetThis()->schedule([&] {
            untilHeld();
            m_disk.letGo();
          });
          char byte = '.';
          EXPECT_EQ(::pread(m_fd, &byte, 1, 1), 1);
          EXPECT_EQ(byte, HeldDisk::byteAt(1));
          EXPECT_EQ(::fsync(m_fd), 0);
        });
      }).join();
      EXPECT_FALSE(m_disk.gaveUp());
      EXPECT_EQ(told, 1U);
    }
  }
}

}  // namespace
}  // namespace sylar::test
