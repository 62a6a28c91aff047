// A read or write that never waits in libc gives as much through the hooks as there, from and to every kind of file.
#include <sched.h>

#include <algorithm>
#include <vector>

#include "tests/hook/fd/kinds.h"

namespace sylar::test::whole_read {
namespace {

constexpr size_t kSize = 1 << 20;

/// A thread that wants the caller's processor. The kernel then ends early what it has been told not to wait in.
class Rival {
 public:
  Rival() {
    ::sched_getaffinity(0, sizeof m_before, &m_before);
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(::sched_getcpu(), &here);
    ::sched_setaffinity(0, sizeof here, &here);
    m_thread = std::thread([this] {  // which inherits the processor
      while (!m_ends.load(std::memory_order_relaxed)) ::sched_getcpu();
    });
  }
  ~Rival() {
    m_ends.store(true);
    m_thread.join();
    ::sched_setaffinity(0, sizeof m_before, &m_before);
  }
  Rival(const Rival&) = delete;
  Rival& operator=(const Rival&) = delete;

 private:
  cpu_set_t m_before;
  std::atomic<bool> m_ends{false};
  std::thread m_thread;
};

struct Way {
  const char* name;
  ssize_t (*transfer)(int fd, char* buffer);
};
std::ostream& operator<<(std::ostream& out, const Way& one) { return out << one.name; }

template <auto kCall, auto... kMore>
ssize_t ofParts(int fd, char* buffer) {
  const iovec parts[2] = {{buffer, kSize / 4}, {buffer + kSize / 4, kSize - kSize / 4}};
  return kCall(fd, parts, 2, kMore...);
}

const Way kReads[] = {
    {"read", [](int fd, char* buffer) { return ::read(fd, buffer, kSize); }},
    {"readv", ofParts<&::readv>},
    {"preadv2", ofParts<&::preadv2, -1, 0>},
    {"pread", [](int fd, char* buffer) { return ::pread(fd, buffer, kSize, 0); }},
    {"preadv", ofParts<&::preadv, 0>},
    {"syscall", [](int fd, char* buffer) { return static_cast<ssize_t>(::syscall(SYS_read, fd, buffer, kSize)); }},
};
const Way kWrites[] = {
    {"write", [](int fd, char* buffer) { return ::write(fd, buffer, kSize); }},
    {"writev", ofParts<&::writev>},
    {"pwritev2", ofParts<&::pwritev2, -1, 0>},
    {"pwrite", [](int fd, char* buffer) { return ::pwrite(fd, buffer, kSize, 0); }},
};

class WholeTransfer : public testing::TestWithParam<Way> {
 protected:
  /// Returns how many of the transfers on a file were shorter than asked for.
  static int countShort(const char* path, int times) {
    int shorter = 0;
    inFiber([&] {
      const Rival rival;
      const Pair file({::open(path, O_RDWR | O_CLOEXEC), -1});
      std::vector<char> buffer(kSize);
      for (int i = 0; i < times; ++i) shorter += GetParam().transfer(file.a, buffer.data()) != ssize_t{kSize};
    });
    return shorter;
  }
};
class WholeRead : public WholeTransfer {};
class DeviceWrite : public WholeTransfer {};

std::string nameOf(const testing::TestParamInfo<Way>& one) { return one.param.name; }
INSTANTIATE_TEST_SUITE_P(By, WholeRead, testing::ValuesIn(kReads), nameOf);
INSTANTIATE_TEST_SUITE_P(By, DeviceWrite, testing::ValuesIn(kWrites), nameOf);

// Cause: a device that always is ready was read by attempts that must not wait, which the kernel ends when somebody else is to run.
TEST_P(WholeRead, OfADeviceThatIsAlwaysReady) {
  EXPECT_EQ(countShort("/dev/zero", 1000), 0);
  EXPECT_EQ(countShort("/dev/full", 20), 0);
  EXPECT_EQ(countShort("/dev/urandom", 20), 0);
}

// Cause: the same, for devices that can be waited for.
TEST_P(WholeRead, OfADeviceThatCanBeWaitedFor) { EXPECT_EQ(countShort("/dev/random", 20), 0); }

// Cause: the same.
TEST_P(WholeRead, OfAFile) {
  Owned owned;
  const std::string path = owned.file();
  const Pair file({::open(path.c_str(), O_RDWR | O_CLOEXEC), -1});
  const std::vector<char> bytes = streamBytes(kSize);
  inFiber([&] {
    const Rival rival;
    for (int i = 0; i < 50; ++i) {
      ASSERT_EQ(::pwrite(file.a, bytes.data(), kSize, 0), ssize_t{kSize});
      ASSERT_EQ(::fsync(file.a), 0);
      ASSERT_EQ(::posix_fadvise(file.a, i % 2 * 8192, i % 5 * 65'536, POSIX_FADV_DONTNEED), 0);
      ASSERT_EQ(::lseek(file.a, 0, SEEK_SET), 0);
      std::vector<char> got(kSize);
      ASSERT_EQ(GetParam().transfer(file.a, got.data()), ssize_t{kSize});
      ASSERT_EQ(got, bytes);
    }
  });
}

// Cause: the same.
TEST_P(DeviceWrite, IsWhole) {
  EXPECT_EQ(countShort("/dev/null", 100), 0);
  EXPECT_EQ(countShort("/dev/zero", 100), 0);
}

}  // namespace
}  // namespace sylar::test::whole_read
