// Reads and writes of files: what is in the page cache is read at once, and what is not suspends the fiber.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <csignal>
#include <fstream>
#include <optional>
#include <tuple>

#include "sylar/hook/core/attempt.h"
#include "sylar/hook/core/iovec_cursor.h"
#include "sylar/hook_stats.h"
#include "sylar/io/epoll_engine.h"
#include "tests/hook/core/busy_helper.h"
#include "tests/hook/support.h"

namespace sylar {
namespace {

/// If it is set, the page cache seems to hold that many bytes from the beginning of each file, and no others.
std::optional<off_t> g_cached;
/// Whether the file system cannot tell.
bool g_untold = false;

}  // namespace

long attempt::readCached(int fd, const iovec* parts, int count, off_t offset) {
  iovec some[16];
  if (g_untold) return -EOPNOTSUPP;
  if (g_cached) {
    const off_t from = offset >= 0 ? offset : ::lseek(fd, 0, SEEK_CUR);
    struct stat status;
    if (::fstat(fd, &status) != 0) return -errno;
    if (from >= status.st_size) return 0;
    if (from >= *g_cached) return -EAGAIN;
    const IovecCursor held(parts, static_cast<size_t>(count), static_cast<size_t>(*g_cached - from));
    count = static_cast<int>(held.fill(some));
    parts = some;
  }
  return sys::call(SYS_preadv2, fd, parts, count, offset, 0L, 0);
}

namespace test {
namespace {

constexpr size_t kSize = 10'000;

std::string content() {
  std::string all(kSize, ' ');
  for (size_t i = 0; i < kSize; ++i) all[i] = static_cast<char>('a' + i % 23);
  return all;
}

/// A file with content(), of which the page cache holds what a test says.
class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::ofstream(m_name) << content();
    g_cached = kSize;
  }
  ~FileTest() override {
    g_cached.reset();
    g_untold = false;
  }
  int open(int flags = O_RDONLY) { return m_owned.keep(::open(m_name.c_str(), flags | O_CLOEXEC)); }
  std::string bytes() const {
    std::ifstream file(m_name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  Owned m_owned;
  const std::string m_name = m_owned.file();
};

/// Runs `body` in a fiber of one worker. Returns true if another fiber of that worker ran meanwhile.
bool othersRun(const std::function<void()>& body) {
  bool other = false, during = false;
  inFiber([&] {
    IOManager::GetThis()->schedule([&] { other = true; });
    body();
    during = other;
  });
  return during;
}

/// A call that reads `size` bytes, from the file's position, which is its begin, or from offset 0.
struct Reader {
  const char* name;
  ssize_t (*read)(int fd, char* buffer, size_t size);
  bool moves;
};

ssize_t throughVector(int fd, char* buffer, size_t size, ssize_t (*call)(int, const iovec*, int)) {
  const iovec parts[] = {{buffer, size / 3}, {buffer + size / 3, size - size / 3}};
  return call(fd, parts, 2);
}

const Reader kFileReaders[] = {
    {"read", [](int fd, char* buffer, size_t size) { return ::read(fd, buffer, size); }, true},
    {"readv", [](int fd, char* buffer, size_t size) { return throughVector(fd, buffer, size, &::readv); }, true},
    {"preadv2",
     [](int fd, char* buffer, size_t size) {
       return throughVector(fd, buffer, size,
                            [](int file, const iovec* parts, int count) { return ::preadv2(file, parts, count, -1, 0); });
     },
     true},
    {"by_number", [](int fd, char* buffer, size_t size) { return ssize_t{::syscall(SYS_read, fd, buffer, size)}; }, true},
    {"pread", [](int fd, char* buffer, size_t size) { return ::pread(fd, buffer, size, 0); }, false},
    {"pread64", [](int fd, char* buffer, size_t size) { return ::pread64(fd, buffer, size, 0); }, false},
    {"preadv",
     [](int fd, char* buffer, size_t size) {
       return throughVector(fd, buffer, size,
                            [](int file, const iovec* parts, int count) { return ::preadv(file, parts, count, 0); });
     },
     false},
    {"preadv2_with_offset",
     [](int fd, char* buffer, size_t size) {
       return throughVector(fd, buffer, size,
                            [](int file, const iovec* parts, int count) { return ::preadv2(file, parts, count, 0, 0); });
     },
     false},
    {"pread64_by_number", [](int fd, char* buffer, size_t size) { return ssize_t{::syscall(SYS_pread64, fd, buffer, size, 0)}; },
     false},
};

class FileRead : public FileTest, public testing::WithParamInterface<std::tuple<IOEngine, Reader>> {
 protected:
  static const Reader& reader() { return std::get<Reader>(GetParam()); }
  /// A ring finds at once what is in the page cache after all.
  static void expectSuspended(bool others) {
    if (ioEngine() == IOEngine::kEpoll) {
      EXPECT_TRUE(others);
    }
  }

  const EngineMode m_engine{std::get<IOEngine>(GetParam())};

  /// Makes the call, and expects it to read `size` bytes, or those that there are. Returns true if others ran meanwhile.
  bool othersRunDuringRead(size_t size = kSize) {
    const int fd = open();
    std::string buffer(2 * kSize, '.');
    const bool others = othersRun([&] {
      errno = 77;
      EXPECT_EQ(reader().read(fd, buffer.data(), size), static_cast<ssize_t>(std::min(size, kSize)));
      EXPECT_EQ(errno, 77);
    });
    EXPECT_TRUE(buffer.starts_with(content().substr(0, size)));
    EXPECT_EQ(buffer[std::min(size, kSize)], '.');
    EXPECT_EQ(::lseek(fd, 0, SEEK_CUR), reader().moves ? static_cast<off_t>(std::min(size, kSize)) : 0);
    return others;
  }
};

void PrintTo(const Reader& reader, std::ostream* out) { *out << reader.name; }
std::string nameOfReader(const testing::TestParamInfo<FileRead::ParamType>& info) {
  const auto& [engine, reader] = info.param;
  return std::string(reader.name) + (engine == IOEngine::kEpoll ? "_with_helper_threads" : "");
}
INSTANTIATE_TEST_SUITE_P(By, FileRead,
                         testing::Combine(testing::Values(IOEngine::kAuto, IOEngine::kEpoll), testing::ValuesIn(kFileReaders)),
                         nameOfReader);

TEST_P(FileRead, OfWhatIsCachedSuspendsNobody) {
  EXPECT_FALSE(othersRunDuringRead());
  EXPECT_FALSE(othersRunDuringRead(100));
  EXPECT_FALSE(othersRunDuringRead(2 * kSize));
}

TEST_P(FileRead, OfWhatIsNotCachedSuspendsTheFiber) {
  g_cached = 0;
  expectSuspended(othersRunDuringRead());
  expectSuspended(othersRunDuringRead(100));
}

TEST_P(FileRead, GoesOnBehindWhatIsCached) {
  for (const off_t cached : {1, 3'333, 9'999}) {
    g_cached = cached;
    expectSuspended(othersRunDuringRead());
    expectSuspended(othersRunDuringRead(2 * kSize));
  }
  g_cached = 500;
  EXPECT_FALSE(othersRunDuringRead(500));
}

TEST_P(FileRead, IsLibcsWhereTheFileSystemCannotTell) {
  g_untold = true;
  EXPECT_FALSE(othersRunDuringRead());
}

TEST_P(FileRead, BlocksTheThreadIfTheSettingSaysSo) {
  g_cached = 0;
  const FilesMode off(false);
  EXPECT_FALSE(othersRunDuringRead());
}

TEST_F(FileTest, ReadAtTheEndSuspendsNobody) {
  const int fd = open();
  EXPECT_EQ(::lseek(fd, 0, SEEK_END), static_cast<off_t>(kSize));
  char byte;
  EXPECT_FALSE(othersRun([&] { EXPECT_EQ(::read(fd, &byte, 1), 0); }));
}

TEST_F(FileTest, ReadsAreCountedAsCallsAndWaits) {
  g_cached = 0;
  const int fd = open();
  const auto of_pread = [] {
    for (const HookStats& one : hookStats()) {
      if (std::string_view(one.name) == "pread") return one;
    }
    return HookStats{.name = ""};
  };
  const HookStats before = of_pread();
  char byte;
  inFiber([&] { EXPECT_EQ(::pread(fd, &byte, 1, 5), 1); });
  EXPECT_EQ(of_pread().calls, before.calls + 1);
  EXPECT_EQ(of_pread().parks, before.parks + 1);
}

TEST_F(FileTest, AFileOfMemoryIsReadAtOnce) {
  g_untold = true;
  const int fd = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  char bytes[100];
  EXPECT_FALSE(othersRun([&] { EXPECT_EQ(::read(fd, bytes, sizeof bytes), static_cast<ssize_t>(sizeof bytes)); }));
  ::close(fd);
}

// ---- Writes. -----------------------------------------------------------------------------------------------------------------

using Writer = ssize_t (*)(int fd);
const Writer kFileWriters[] = {
    [](int fd) { return ::write(fd, "12345", 5); },
    [](int fd) { return ::pwrite(fd, "12345", 5, 0); },
    [](int fd) { return ::pwrite64(fd, "12345", 5, 0); },
    [](int fd) { return ssize_t{::syscall(SYS_pwrite64, fd, "12345", 5, 0)}; },
    [](int fd) {
      const iovec parts[] = {{const_cast<char*>("123"), 3}, {const_cast<char*>("45"), 2}};
      return ::writev(fd, parts, 2);
    },
    [](int fd) {
      const iovec parts[] = {{const_cast<char*>("123"), 3}, {const_cast<char*>("45"), 2}};
      return ::pwritev(fd, parts, 2, 0);
    },
};

TEST_F(FileTest, AWriteIntoThePageCacheSuspendsNobody) {
  for (const Writer write : kFileWriters) {
    const int fd = open(O_RDWR);
    EXPECT_FALSE(othersRun([&] { EXPECT_EQ(write(fd), 5); }));
    EXPECT_EQ(bytes(), "12345" + content().substr(5));
  }
}

TEST_F(FileTest, AWriteToTheDiskSuspendsTheFiber) {
  for (const IOEngine engine : {IOEngine::kAuto, IOEngine::kEpoll}) {
    const EngineMode mode(engine);
    for (const Writer write : kFileWriters) {
      const int fd = open(O_RDWR | O_DSYNC);
      EXPECT_TRUE(othersRun([&] { EXPECT_EQ(write(fd), 5); }));
      EXPECT_EQ(bytes(), "12345" + content().substr(5));
    }
  }
}

TEST_F(FileTest, AReadPastThePageCacheSuspendsTheFiber) {
  const int fd = open(O_RDONLY | O_DIRECT);
  alignas(4096) static char s_bytes[8192];
  for (const IOEngine engine : {IOEngine::kAuto, IOEngine::kEpoll}) {
    const EngineMode mode(engine);
    EXPECT_TRUE(othersRun([&] { EXPECT_EQ(::pread(fd, s_bytes, sizeof s_bytes, 4096), static_cast<ssize_t>(kSize) - 4096); }));
    EXPECT_EQ(std::string_view(s_bytes, kSize - 4096), content().substr(4096));
    EXPECT_TRUE(othersRun([&] {
      EXPECT_EQ(::pread(fd, s_bytes + 1, 10, 3), -1);
      EXPECT_EQ(errno, EINVAL);
    }));
  }
}

// What the kernel does to the thread that writes behind the limit.
TEST_F(FileTest, AWriteBehindTheLimitRaisesItsSignal) {
  static std::atomic<int> signals;
  signals = 0;
  struct sigaction action {};
  action.sa_handler = [](int) { ++signals; };
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGXFSZ, &action, &before), 0);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{kSize, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const int fd = open(O_RDWR | O_DSYNC);
  EXPECT_TRUE(othersRun([&] {
    EXPECT_EQ(::pwrite(fd, "x", 1, 2 * kSize), -1);
    EXPECT_EQ(errno, EFBIG);
  }));
  EXPECT_EQ(signals, 1);
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_EQ(::sigaction(SIGXFSZ, &before, nullptr), 0);
}

// ---- Other calls. ------------------------------------------------------------------------------------------------------------

TEST_F(FileTest, SendfileReadsWhatIsNotCachedOnAHelperThread) {
  const EngineMode helper_threads(IOEngine::kEpoll);
  for (const bool with_offset : {true, false}) {
    const int fd = open();
    const Pair ends = tcpPair();
    off_t offset = 100;
    EXPECT_EQ(::lseek(fd, with_offset ? 0 : 100, SEEK_SET), with_offset ? 0 : 100);
    const auto send = [&] { EXPECT_EQ(::sendfile(ends.a, fd, with_offset ? &offset : nullptr, kSize), ssize_t{kSize - 100}); };
    g_cached = kSize;
    EXPECT_FALSE(othersRun(send));
    std::string got(kSize - 100, '.');
    EXPECT_EQ(::recv(ends.b, got.data(), got.size(), MSG_WAITALL), static_cast<ssize_t>(got.size()));
    EXPECT_EQ(got, content().substr(100));

    offset = 100;
    EXPECT_EQ(::lseek(fd, with_offset ? 0 : 100, SEEK_SET), with_offset ? 0 : 100);
    g_cached = kSize / 2;
    EXPECT_TRUE(othersRun(send));
    EXPECT_EQ(::recv(ends.b, got.data(), got.size(), MSG_WAITALL), static_cast<ssize_t>(got.size()));
    EXPECT_EQ(got, content().substr(100));
  }
}

// C++ streams read by the hooked names.
TEST_F(FileTest, AnIfstreamSuspendsItsFiber) {
  const int fd = open();
  g_cached = 0;
  std::string word;
  EXPECT_TRUE(othersRun([&] {
    std::ifstream file("/proc/self/fd/" + std::to_string(fd));
    std::getline(file, word);
  }));
  EXPECT_EQ(word, content());
}

TEST_F(FileTest, SendfileToAPipeReadsWhatIsNotCachedOnAHelperThread) {
  const EngineMode helper_threads(IOEngine::kEpoll);
  const int fd = open();
  const Pair ends = pipePair();
  g_cached = 10;
  EXPECT_TRUE(othersRun([&] { EXPECT_EQ(::sendfile(ends.b, fd, nullptr, 4'000), 4'000); }));
  std::string got(4'000, '.');
  EXPECT_EQ(::read(ends.a, got.data(), got.size()), 4'000);
  EXPECT_EQ(got, content().substr(0, 4'000));
}

// Programs call on files under locks that nobody sees: those of libc's streams, spin locks, mutexes with a protocol.
TEST_F(FileTest, AnyNumberOfCallsThatNeedNoHelperSuspendsNobody) {
  const int fd = open(O_RDWR);
  char byte;
  EXPECT_FALSE(othersRun([&] {
    for (int i = 0; i < 10'000; ++i) {
      EXPECT_EQ(::pread(fd, &byte, 1, i), 1);
      EXPECT_EQ(::pwrite(fd, "x", 1, i), 1);
    }
  }));
}

/// Makes `read` while the only helper thread is at work, and meanwhile gives the number to another file.
void whileTheNumberGoesOn(int& fd, const std::function<void()>& read) {
  BusyHelper helper;
  Owned owned;
  const int other = owned.keep(::open(owned.file().c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::pwrite(other, "another file", 12, 0), 12);
  inFiber([&] {
    helper.begin();
    IOManager::GetThis()->schedule([&] {
      EXPECT_EQ(::dup2(other, fd), fd);
      helper.release();
    });
    read();
  });
  EXPECT_EQ(::lseek(other, 0, SEEK_CUR), 0);
}

TEST_P(FileRead, NeverReadsTheNumbersNextOwner) {
  const EngineMode helper_threads(IOEngine::kEpoll);
  for (const off_t cached : {0, 5'000}) {
    g_cached = cached;
    int fd = open();
    std::string buffer(kSize, '.');
    whileTheNumberGoesOn(fd, [&] {
      EXPECT_EQ(reader().read(fd, buffer.data(), buffer.size()), -1);
      EXPECT_EQ(errno, EBADF);
    });
    EXPECT_EQ(buffer.find("another"), std::string::npos);
  }
}

// The ring holds the file of a read at an offset; what it does for one on the position ends before the number is looked at again.
TEST_P(FileRead, ByTheRingNeverReadsTheNumbersNextOwner) {
  bool has_ring = false;
  inFiber([&] { has_ring = detail::EpollEngine::current()->ring() != nullptr; });
  if (!has_ring) GTEST_SKIP() << "there is none";
  for (const off_t cached : {0, 5'000}) {
    g_cached = cached;
    const int fd = open();
    Owned owned;
    const int other = owned.keep(::open(owned.file().c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::pwrite(other, "another file", 12, 0), 12);
    std::string buffer(kSize, '.');
    inFiber([&] {
      IOManager::GetThis()->schedule([&] { EXPECT_EQ(::dup2(other, fd), fd); });
      const ssize_t n = reader().read(fd, buffer.data(), buffer.size());
      EXPECT_TRUE(n == ssize_t{kSize} || (reader().moves && n == -1 && errno == EBADF)) << n;
    });
    EXPECT_EQ(buffer.find("another"), std::string::npos);
    EXPECT_EQ(::lseek(other, 0, SEEK_CUR), 0);
  }
}

}  // namespace
}  // namespace test
}  // namespace sylar
