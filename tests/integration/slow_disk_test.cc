// A disk that answers when the test wants: a file system of a process (FUSE). While a fiber waits for it, its worker goes on.
#define FUSE_USE_VERSION 31
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "sylar/check.h"
#include "sylar/iomanager.h"
#include "tests/support/fibers.h"
#include "tests/support/own_mounts.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

constexpr size_t kSize = 100'000;
constexpr char kPath[] = "/file";

char byteAt(size_t offset) { return static_cast<char>('a' + offset % 23); }

/// What the process of the disk and the test have in common.
struct Shared {
  std::atomic<bool> open{true};  ///< lets the disk go on
  std::atomic<uint64_t> written{0};
};

Shared& g_shared = *new (::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared;

/// Waits until the disk may go on. A disk that nobody lets go on fails in the end, so that a blocked worker fails the test.
bool pass() {
  for (int i = 0; i < 30'000 && !g_shared.open; ++i) std::this_thread::sleep_for(1ms);
  return g_shared.open;
}

int getAttributes(const char* path, struct stat* status, fuse_file_info*) {
  *status = {};
  if (std::strcmp(path, "/") == 0) {
    status->st_mode = S_IFDIR | 0755;
    return 0;
  }
  if (std::strcmp(path, kPath) != 0) return -ENOENT;
  status->st_mode = S_IFREG | 0644;
  status->st_size = kSize;
  return 0;
}
int openFile(const char*, fuse_file_info*) { return 0; }
int readFile(const char*, char* buffer, size_t size, off_t offset, fuse_file_info*) {
  if (!pass()) return -EIO;
  const auto from = static_cast<size_t>(offset);
  const size_t n = from < kSize ? std::min(size, kSize - from) : 0;
  for (size_t i = 0; i < n; ++i) buffer[i] = byteAt(from + i);
  return static_cast<int>(n);
}
int writeFile(const char*, const char*, size_t size, off_t, fuse_file_info*) {
  if (!pass()) return -EIO;
  g_shared.written += size;
  return static_cast<int>(size);
}

/// The file system, mounted on a folder of its own. Another process serves it: of one whose own threads wait for it not even a kill
/// would end them.
class Disk {
 public:
  Disk() {
    test::hideMounts();
    char name[] = "/tmp/sylar_disk_XXXXXX";
    m_folder = ::mkdtemp(name);
    int mounted[2];
    SYLAR_CHECK(::pipe2(mounted, O_CLOEXEC) == 0);
    m_server = ::fork();
    if (m_server == 0) serve(mounted[1]);
    ::close(mounted[1]);
    char byte;
    m_mounted = ::read(mounted[0], &byte, 1) == 1;
    ::close(mounted[0]);
  }
  ~Disk() {
    EXPECT_EQ(m_mounted ? ::umount2(m_folder.c_str(), MNT_DETACH) : 0, 0);  // which ends the server
    int status = 0;
    EXPECT_EQ(::waitpid(m_server, &status, 0), m_server);
    std::filesystem::remove(m_folder);
  }
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  bool mounted() const { return m_mounted; }
  std::string path() const { return m_folder + kPath; }

 private:
  [[noreturn]] void serve(int mounted) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    fuse_operations operations{};
    operations.getattr = getAttributes;
    operations.open = openFile;
    operations.read = readFile;
    operations.write = writeFile;
    char program[] = "disk";
    char* arguments[] = {program, nullptr};
    fuse_args given = FUSE_ARGS_INIT(1, arguments);
    fuse* const server = fuse_new(&given, &operations, sizeof operations, nullptr);
    if (server != nullptr && fuse_mount(server, m_folder.c_str()) == 0 && ::write(mounted, "", 1) == 1) fuse_loop(server);
    ::_exit(0);
  }

  std::string m_folder;
  pid_t m_server = -1;
  bool m_mounted = false;
};

/// Has one fiber make `call` while the disk gives nothing, and another fiber of the same worker let it go on.
void whileTheDiskIsSlow(const std::function<void(int fd)>& call, int flags = O_RDWR) {
  const Disk disk;
  if (!disk.mounted()) GTEST_SKIP() << "no file system can be mounted here";
  const int fd = ::open(disk.path().c_str(), flags | O_CLOEXEC);
  ASSERT_GE(fd, 0) << std::strerror(errno);
  g_shared.open = false;
  inFiber([&] {
    IOManager::GetThis()->schedule([] { g_shared.open = true; });
    call(fd);
  });
  ::close(fd);
}

void expectBytes(const std::string& bytes, size_t offset) {
  for (size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], byteAt(offset + i)) << i;
}

TEST(SlowDisk, HoldsUpTheFiberThatReads) {
  whileTheDiskIsSlow([](int fd) {
    std::string bytes(kSize, '.');
    EXPECT_EQ(::read(fd, bytes.data(), bytes.size()), ssize_t{kSize});
    expectBytes(bytes, 0);
    EXPECT_EQ(::read(fd, bytes.data(), bytes.size()), 0);
  });
}

TEST(SlowDisk, HoldsUpTheFiberThatReadsAtAnOffset) {
  whileTheDiskIsSlow([](int fd) {
    std::string bytes(1'000, '.');
    EXPECT_EQ(::pread(fd, bytes.data(), bytes.size(), 50'000), 1'000);
    expectBytes(bytes, 50'000);
  });
}

TEST(SlowDisk, HoldsUpTheFiberThatWrites) {
  const uint64_t before = g_shared.written;
  whileTheDiskIsSlow([](int fd) { EXPECT_EQ(::write(fd, "12345", 5), 5); });
  EXPECT_TRUE(testing::Test::IsSkipped() || g_shared.written == before + 5);
}

TEST(SlowDisk, HoldsUpTheFiberThatSendsAFile) {
  whileTheDiskIsSlow([](int fd) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    IOManager::GetThis()->schedule([from = ends[0]] {
      std::string bytes(kSize, '.');
      EXPECT_EQ(::recv(from, bytes.data(), bytes.size(), MSG_WAITALL), ssize_t{kSize});
      expectBytes(bytes, 0);
      ::close(from);
    });
    for (size_t sent = 0; sent < kSize;) {
      const ssize_t n = ::sendfile(ends[1], fd, nullptr, kSize - sent);
      EXPECT_GT(n, 0) << std::strerror(errno);
      if (n <= 0) break;
      sent += static_cast<size_t>(n);
    }
    ::close(ends[1]);
  });
}

// The whole of an unmodified reader: the stream of the standard library.
TEST(SlowDisk, HoldsUpTheFiberThatReadsAStream) {
  whileTheDiskIsSlow([](int fd) {
    std::ifstream file("/proc/self/fd/" + std::to_string(fd));
    std::string bytes(kSize, '.');
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    EXPECT_EQ(file.gcount(), static_cast<std::streamsize>(kSize));
    expectBytes(bytes, 0);
  });
}

}  // namespace
}  // namespace sylar::test
