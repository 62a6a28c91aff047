// The open of a FIFO waits for the other side, and leaves the worker to other fibers meanwhile.
#include <functional>

#include "sylar/cancel.h"
#include "sylar/sync/blocking_pool.h"
#include "sylar/testing/virtual_time.h"
#include "tests/hook/fd/kinds.h"
#include "tests/sync/waiter.h"

// What a fortified or an old binary calls.
extern "C" {
int __open(const char* path, int flags, ...);
int __open64(const char* path, int flags, ...);
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int directory, const char* path, int flags);
int __openat64_2(int directory, const char* path, int flags);
}

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

/// A FIFO of its own.
struct Fifo {
  Fifo() {
    ::unlink(name.c_str());
    EXPECT_EQ(::mkfifo(name.c_str(), 0600), 0);
  }
  int open(int flags) { return owned.keep(::open(name.c_str(), flags | O_CLOEXEC)); }

  Owned owned;
  const std::string name = owned.file();
};

struct OpenCase {
  const char* name;
  int (*open)(const char* path, int flags);
};
std::ostream& operator<<(std::ostream& out, const OpenCase& one) { return out << one.name; }

const OpenCase kOpenCases[] = {
    {"open", [](const char* path, int flags) { return ::open(path, flags); }},
    {"open64", [](const char* path, int flags) { return ::open64(path, flags); }},
    {"openat", [](const char* path, int flags) { return ::openat(AT_FDCWD, path, flags); }},
    {"openat64", [](const char* path, int flags) { return ::openat64(AT_FDCWD, path, flags); }},
    {"underscore_open", [](const char* path, int flags) { return __open(path, flags); }},
    {"underscore_open64", [](const char* path, int flags) { return __open64(path, flags); }},
    {"open_2", [](const char* path, int flags) { return __open_2(path, flags); }},
    {"open64_2", [](const char* path, int flags) { return __open64_2(path, flags); }},
    {"openat_2", [](const char* path, int flags) { return __openat_2(AT_FDCWD, path, flags); }},
    {"openat64_2", [](const char* path, int flags) { return __openat64_2(AT_FDCWD, path, flags); }},
    {"creat", [](const char* path, int flags) { return flags == O_RDONLY ? ::open(path, flags) : ::creat(path, 0600); }},
    {"creat64", [](const char* path, int flags) { return flags == O_RDONLY ? ::open(path, flags) : ::creat64(path, 0600); }},
};

class FifoOpen : public testing::TestWithParam<OpenCase> {
 protected:
  Fifo m_fifo;
};
INSTANTIATE_TEST_SUITE_P(By, FifoOpen, testing::ValuesIn(kOpenCases), [](const auto& one) { return one.param.name; });

TEST_P(FifoOpen, BringsTwoFibersOfTheOnlyWorkerTogether) {
  for (const int first : {O_RDONLY, O_WRONLY}) {
    Fifo fifo;  // its own for each, because a reader that is still there would not let the writer wait
    int reader = -1;
    int writer = -1;
    const auto open = [&](int flags) {
      (flags == O_RDONLY ? reader : writer) = fifo.owned.keep(GetParam().open(fifo.name.c_str(), flags));
    };
    inFiber([&] {
      IOManager::GetThis()->schedule([&] { open(first ^ O_WRONLY); });
      errno = ENOTTY;
      open(first);
      EXPECT_EQ(errno, ENOTTY);
    });
    char bytes[4] = {};
    EXPECT_EQ(::write(writer, "abc", 3), 3);
    EXPECT_EQ(::read(reader, bytes, sizeof bytes), 3);
    EXPECT_STREQ(bytes, "abc");
    EXPECT_EQ(::fcntl(reader, F_GETFL) & (O_NONBLOCK | O_ACCMODE), O_RDONLY);
    EXPECT_EQ(::fcntl(writer, F_GETFL) & (O_NONBLOCK | O_ACCMODE), O_WRONLY);
  }
}

TEST_P(FifoOpen, WithHooksOffBlocksTheOnlyWorker) {
  bool other = false;
  int writer = -1;
  std::thread outside([&] { writer = libcCalls().open(m_fifo.name.c_str(), O_WRONLY); });
  inFiber([&] {
    set_hook_enable(false);
    IOManager::GetThis()->schedule([&] { other = true; });
    m_fifo.owned.keep(GetParam().open(m_fifo.name.c_str(), O_RDONLY));
    EXPECT_FALSE(other);
  });
  outside.join();
  m_fifo.owned.keep(writer);
}

// A thread that waits in the kernel counts as a writer, or reader, already.
TEST(OpenOfAFifo, MeetsAThread) {
  for (const int mine : {O_RDONLY, O_WRONLY}) {
    Fifo fifo;
    std::thread outside([&] { libcCalls().close(libcCalls().open(fifo.name.c_str(), mine ^ O_WRONLY)); });
    inFiber([&] { fifo.open(mine); });
    outside.join();
  }
}

// In the kernel a reader that waits is told by the writer itself, whatever becomes of it.
TEST(OpenOfAFifo, IsThroughEvenIfTheWriterHasGoneAgain) {
  for (const std::string bytes : {"", "abc"}) {
    Fifo fifo;
    inFiber([&] {
      IOManager::GetThis()->schedule([&] {
        const int writer = libcCalls().open(fifo.name.c_str(), O_WRONLY | O_NONBLOCK);
        EXPECT_GE(writer, 0) << "a reader is there";
        EXPECT_EQ(libcCalls().write(writer, bytes.data(), bytes.size()), ssize_t(bytes.size()));
        libcCalls().close(writer);
      });
      const int reader = fifo.open(O_RDONLY);
      char got[8];
      EXPECT_EQ(::read(reader, got, sizeof got), ssize_t(bytes.size()));
      EXPECT_EQ(std::string(got, bytes.size()), bytes);
      EXPECT_EQ(::read(reader, got, sizeof got), 0);
    });
  }
}

// The look for a writer takes nothing out of the FIFO, however the two meet.
TEST(OpenOfAFifo, LosesNoByteOfAWriterThatComesDuringALook) {
  std::vector<Fifo> fifos(200);
  std::thread outside([&] {
    for (Fifo& fifo : fifos) {
      const int writer = libcCalls().open(fifo.name.c_str(), O_WRONLY);
      EXPECT_EQ(libcCalls().write(writer, "abc", 3), 3);
      libcCalls().close(writer);
    }
  });
  inFiber([&] {
    for (Fifo& fifo : fifos) {
      const int reader = fifo.open(O_RDONLY);
      char bytes[4] = {};
      ssize_t got = 0;
      for (ssize_t n; (n = ::read(reader, bytes + got, sizeof bytes - static_cast<size_t>(got))) > 0;) got += n;
      ASSERT_STREQ(bytes, "abc");
    }
  });
  outside.join();
}

/// Opens a FIFO for writing in a fiber, calls `change` when that waits, and then `read`, and expects the FIFO to be open.
void opensWhatThePathLedTo(const char* path, int flags, const std::function<void()>& change, const std::function<int()>& read) {
  inFiber([&] {
    int reader = -1;
    IOManager::GetThis()->schedule([&, me = Fiber::GetThis()] {
      untilParked(*me);
      change();
      reader = read();
    });
    const int fd = ::open(path, flags, 0600);
    struct stat status {};
    ASSERT_EQ(::fstat(fd, &status), 0) << ::strerror(errno);
    EXPECT_TRUE(S_ISFIFO(status.st_mode));
    EXPECT_EQ(::write(fd, "x", 1), 1);
    char byte;
    EXPECT_EQ(::read(reader, &byte, 1), 1);
    ::close(reader);
    ::close(fd);
  });
}

// Cause: the path was looked up again each time the writer looked for a reader, so that another file was opened, or made, or none.
TEST(OpenOfAFifo, LooksItsPathUpOnce) {
  for (const int flags : {O_WRONLY, O_WRONLY | O_CREAT | O_TRUNC}) {
    const Fifo fifo;
    const char* const path = fifo.name.c_str();
    int reader = -1;
    const auto unlink = [&] {
      reader = ::open(path, O_RDONLY | O_NONBLOCK);
      EXPECT_EQ(::unlink(path), 0);
    };
    opensWhatThePathLedTo(path, flags, unlink, [&] { return reader; });
    EXPECT_NE(::access(path, F_OK), 0);
  }
}

TEST(OpenOfAFifo, OfARelativePathSurvivesAChangeOfTheDirectory) {
  const Fifo fifo;
  const size_t slash = fifo.name.rfind('/');
  const int before = ::open(".", O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::chdir(fifo.name.substr(0, slash).c_str()), 0);
  opensWhatThePathLedTo(
      fifo.name.substr(slash + 1).c_str(), O_WRONLY, [] { EXPECT_EQ(::chdir("/"), 0); },
      [&] { return ::open(fifo.name.c_str(), O_RDONLY | O_NONBLOCK); });
  EXPECT_EQ(::fchdir(before), 0);
  ::close(before);
}

TEST(OpenOfAFifo, NeedsNoHelperThread) {
  constexpr int kFifos = 100;  // more than the pool has threads
  std::vector<Fifo> fifos(kFifos);
  int together = 0;
  inFiber([&] {
    for (Fifo& fifo : fifos) {
      IOManager::GetThis()->schedule([&] {
        fifo.open(O_RDONLY);
        ++together;
      });
    }
    IOManager::GetThis()->schedule([&] {
      EXPECT_EQ(together, 0);
      EXPECT_EQ(BlockingPool::process().threads(), 0u);
      for (Fifo& fifo : fifos) fifo.open(O_WRONLY);
    });
  });
  EXPECT_EQ(together, kFifos);
}

void expectError(int result, int error) {
  EXPECT_EQ(result, -1);
  EXPECT_EQ(errno, error) << ::strerror(errno);
}

TEST(OpenOfAFifo, EndsWithACancel) {
  for (const int flags : {O_RDONLY, O_WRONLY}) {
    Fifo fifo;
    std::stop_source stop;
    IOManager iom(1, false, "cancel");
    const Fiber::ptr fiber = waiterOn(iom, [&] {
      withCancel(stop.get_token(), [&] {
        expectError(::open(fifo.name.c_str(), flags), ECANCELED);
        expectError(::open(fifo.name.c_str(), O_WRONLY | O_NONBLOCK), ENXIO);  // nobody reads
      });
    });
    stop.request_stop();
    fiber->join();
  }
}

TEST(OpenOfAFifo, EndsWithTheDeadline) {
  for (const int flags : {O_RDONLY, O_WRONLY}) {
    Fifo fifo;
    VirtualTime time;
    time.run([&] {
      withDeadline(Deadline::after(1h, time), [&] {
        expectError(::open(fifo.name.c_str(), flags), ETIMEDOUT);
        expectError(::open(fifo.name.c_str(), flags), ETIMEDOUT);
      });
    });
    EXPECT_EQ(time.elapsed(), 1h);
  }
}

}  // namespace
}  // namespace sylar::test
