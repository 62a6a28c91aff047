// Calls on a number that somebody is closing, and closes that do not come to their end.
#include <pthread.h>
#include <sys/eventfd.h>

#include <fstream>

#include "sylar/fiber/fiber_control.h"
#include "sylar/io/fd_table.h"
#include "tests/hook/support.h"

namespace sylar::test {
namespace {

bool kernelHas(int fd) { return ::syscall(SYS_fcntl, fd, F_GETFD) != -1; }

/// A close that lingers, on a thread of its own, until end(): the number is free, and the close goes on.
class LingeringClose {
 public:
  LingeringClose() : m_pair(tcpPair()), m_fd(std::exchange(m_pair.a, -1)) {
    const std::vector<char> much(1 << 16);
    while (libcCalls().send(m_fd, much.data(), much.size(), MSG_DONTWAIT) > 0) continue;
    const linger long_time{1, 60};
    EXPECT_EQ(::setsockopt(m_fd, SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time), 0);
    m_closer = std::thread([this] {
      EXPECT_EQ(::close(m_fd), 0);
      m_ended.store(true);
    });
    while (kernelHas(m_fd)) std::this_thread::yield();
  }
  ~LingeringClose() { end(); }
  LingeringClose(const LingeringClose&) = delete;
  LingeringClose& operator=(const LingeringClose&) = delete;

  int fd() const { return m_fd; }
  bool ended() const { return m_ended.load(); }
  void end() {
    if (m_pair.b >= 0) {
      resetOnClose(m_pair.b);
      m_pair.closeB();
    }
    if (m_closer.joinable()) m_closer.join();
  }

 private:
  Pair m_pair;
  const int m_fd;
  std::atomic<bool> m_ended{false};
  std::thread m_closer;
};

// P3: closing -> EBADF. In Linux the number is free before the close lingers.
TEST(ANumberThatIsBeingClosed, IsNotOpenForCallsWhileTheCloseLingers) {
  inFiber([] {  // whose worker has its own descriptors by now: none of them gets the number
    const Pair pair = unixPair();
    LingeringClose lingering;
    const int fd = lingering.fd();
    char byte = 'x';
    const auto fails = [&](const char* what, ssize_t result) {
      EXPECT_EQ(result, -1) << what;
      EXPECT_EQ(errno, EBADF) << what;
    };
    fails("read", ::read(fd, &byte, 1));
    fails("write", ::write(fd, &byte, 1));
    fails("recv", ::recv(fd, &byte, 1, 0));
    fails("accept", ::accept(fd, nullptr, nullptr));
    fails("close", ::close(fd));
    pollfd polled[2] = {{fd, POLLIN, 0}, {pair.a, POLLIN, 0}};
    EXPECT_EQ(::poll(polled, 2, -1), 1);
    EXPECT_EQ(polled[0].revents, POLLNVAL);
    std::thread([&] { fails("close on a plain thread", ::close(fd)); }).join();
    EXPECT_FALSE(lingering.ended()) << "they did not wait for the end of the close";
  });
}

TEST(ANumberThatIsBeingClosed, IsItsNextOwnersWhileTheOldCloseLingers) {
  const Pair pair = unixPair();
  LingeringClose lingering;
  const int next = ::fcntl(pair.a, F_DUPFD, lingering.fd());
  ASSERT_EQ(next, lingering.fd());
  inFiber([&] {
    char byte = 0;
    IOManager::GetThis()->schedule([&] { EXPECT_EQ(::write(pair.b, "x", 1), 1); });
    EXPECT_EQ(::read(next, &byte, 1), 1);
    EXPECT_EQ(::close(next), 0);
    EXPECT_FALSE(lingering.ended());
  });
  lingering.end();
  EXPECT_FALSE(kernelHas(next));
}

TEST(ANumberThatIsBeingClosed, TakesACopyWhileTheOldCloseLingers) {
  const Pair pair = unixPair();
  LingeringClose lingering;
  const int copy = ::dup2(pair.a, lingering.fd());
  EXPECT_EQ(copy, lingering.fd());
  EXPECT_FALSE(lingering.ended());
  inFiber([&] {
    char byte = 0;
    IOManager::GetThis()->schedule([&] { EXPECT_EQ(::write(pair.b, "x", 1), 1); });
    EXPECT_EQ(::read(copy, &byte, 1), 1);
  });
  EXPECT_EQ(::close(copy), 0);
}

bool isIn(long number, pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/syscall");
  long call = -1;
  return (file >> call) && call == number;
}

/// Returns a thread that runs `body`, and waits in the system call `number`.
template <class Body>
std::thread untilIn(long number, Body body) {
  std::atomic<pid_t> id{0};
  std::thread thread([&id, body] {
    id.store(::gettid());
    body();
  });
  while (!isIn(number, id.load())) std::this_thread::yield();
  return thread;
}

/// Returns a stream over `fd`, which takes no more bytes, with more bytes pending than it would take.
FILE* pendingStream(int fd) {
  const std::vector<char> much(1 << 16, 'x');
  while (libcCalls().send(fd, much.data(), much.size(), MSG_DONTWAIT) > 0) continue;
  FILE* const stream = ::fdopen(fd, "r+");
  static std::array<char, 1 << 17> s_buffer;  // libc takes the size of a buffer only together with a buffer
  EXPECT_EQ(::setvbuf(stream, s_buffer.data(), _IOFBF, s_buffer.size()), 0);
  EXPECT_EQ(::fwrite(much.data(), 1, much.size(), stream), much.size());
  return stream;
}

// A stream is flushed while its number is open. Cause: the number was marked as being closed, a fiber that read from it
// spun, and the fiber of the same worker on which the flush waited never ran.
TEST(AStreamThatIsClosed, IsFlushedBeforeItsNumberIsClosed) {
  for (const bool again : {false, true}) {
    Pair pair = unixPair();
    const int fd = std::exchange(pair.a, -1);
    FILE* const stream = pendingStream(fd);
    std::thread closer = untilIn(SYS_write, [=] {
      FILE* const next = again ? ::freopen("/dev/null", "r", stream) : stream;
      EXPECT_NE(next, nullptr);
      EXPECT_EQ(::fclose(next), 0);
    });
    bool received = false;
    inFiber([&] {
      IOManager::GetThis()->schedule([&] {
        EXPECT_EQ(::send(pair.b, "y", 1, 0), 1);
        while (!received) Fiber::YieldToReady();
        std::vector<char> bytes(1 << 16);
        while (::recv(pair.b, bytes.data(), bytes.size(), 0) > 0) continue;
      });
      char byte;
      EXPECT_EQ(::recv(fd, &byte, 1, 0), 1);
      received = true;
    });
    closer.join();
  }
}

// fclose(3): what cannot be written is an error, and the stream is closed all the same.
TEST(AStreamThatIsClosed, SaysWhatItCouldNotWrite) {
  FILE* const full = ::fopen("/dev/full", "w");
  EXPECT_EQ(::fputc('x', full), 'x');
  const int fd = ::fileno(full);
  EXPECT_EQ(::fclose(full), EOF);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_FALSE(kernelHas(fd));
}

// Cause: the fiber kept its worker until the end of the close, for which the peer's fiber on the same worker was needed.
TEST(ANumberThatIsBeingClosed, IsAwaitedWithoutTheWorker) {
  for (const bool polls : {false, true}) {
    const Pair pair = unixPair();
    Pair lingers = tcpPair();
    const std::vector<char> much(1 << 16);
    while (libcCalls().send(lingers.a, much.data(), much.size(), MSG_DONTWAIT) > 0) continue;
    const linger long_time{1, 60};
    EXPECT_EQ(::setsockopt(lingers.a, SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time), 0);
    const int fd = std::exchange(lingers.a, -1);
    const int other = pair.a;
    std::thread closer = untilIn(SYS_dup2, [=] { EXPECT_EQ(::dup2(other, fd), fd); });
    inFiber([&] {
      IOManager::GetThis()->schedule([&] {
        EXPECT_EQ(::write(pair.b, "x", 1), 1);
        resetOnClose(lingers.b);
        lingers.closeB();
      });
      if (polls) {
        pollfd one{fd, POLLIN, 0};
        EXPECT_EQ(::poll(&one, 1, -1), 1);
      }
      char byte;
      EXPECT_EQ(::read(fd, &byte, 1), 1);
    });
    closer.join();
    ::close(fd);
  }
}

/// Runs `body` on a thread that is cancelled before it begins.
template <class Body>
void onACancelledThread(Body body) {
  pthread_t thread;
  const auto begin = [](void* argument) -> void* {
    ::pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
    ::pthread_cancel(::pthread_self());
    (*static_cast<Body*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&thread, nullptr, begin, &body), 0);
  void* result = nullptr;
  ASSERT_EQ(::pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

// pthreads(7): close is a cancellation point, and a thread that is cancelled there has not closed.
TEST(ACloseThatIsCancelled, LeavesTheNumberOpenForEverybody) {
  Pair pair = unixPair();
  onACancelledThread([&] { ::close(pair.a); });
  ASSERT_TRUE(kernelHas(pair.a));
  ASSERT_FALSE(Entry::isClosing(FdTable::find(pair.a)->life()));
  inFiber([&] {
    IOManager::GetThis()->schedule([&] { EXPECT_EQ(::write(pair.b, "x", 1), 1); });
    char byte;
    EXPECT_EQ(::read(pair.a, &byte, 1), 1);
    pair.closeA();
  });
  EXPECT_FALSE(kernelHas(pair.a));
}

TEST(ACloseThatIsCancelled, WakesThoseWhoWait) {
  const Pair pair = unixPair();
  inFiber([&] {
    char byte;
    ssize_t result = 0;
    const auto reader = std::make_shared<Fiber>([&] { result = ::read(pair.a, &byte, 1); });
    IOManager::GetThis()->schedule(reader);
    untilParked(*reader);
    onACancelledThread([&] { ::close(pair.a); });
    reader->join();
    EXPECT_EQ(result, -1);
  });
}

// close_range(2) and closefrom(3) are no cancellation points, and declared to throw nothing.
TEST(ACloseThatIsCancelled, IsNoRangeOfThem) {
  for (const bool all : {false, true}) {
    const int high = ::fcntl(unixPair().a, F_DUPFD, 900);
    ASSERT_GE(high, 900);
    inFiber([&] {  // so that it is one of those that are closed one by one
      char byte;
      EXPECT_EQ(::recv(high, &byte, 1, 0), 0);
    });
    onACancelledThread([&] {
      if (all) {
        ::closefrom(high);
      } else {
        ::close_range(static_cast<unsigned>(high), static_cast<unsigned>(high), 0);
      }
      EXPECT_FALSE(kernelHas(high));
      ::pthread_testcancel();
    });
  }
}

// dup(2): flags that dup3 does not know are EINVAL, and the target stays what it is. Cause: its waiters got EBADF.
TEST(ACopyThatIsRefused, LeavesThoseWhoWaitForTheTargetWaiting) {
  inFiber([] {
    const Pair pair = unixPair();
    const Pair other = unixPair();
    char byte;
    ssize_t result = 0;
    const auto reader = std::make_shared<Fiber>([&] { result = ::read(pair.a, &byte, 1); });
    IOManager::GetThis()->schedule(reader);
    untilParked(*reader);
    EXPECT_EQ(::dup3(other.a, pair.a, O_NONBLOCK), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
    reader->join();
    EXPECT_EQ(result, 1);
  });
}

// io.md, invariant 7. eventfd(2): a write of more than there is room for waits, though poll says that there is room.
TEST(AWriteToAnEventfdThatBlocks, KeepsNoCloseWaiting) {
  const int fd = ::eventfd(0, EFD_SEMAPHORE);
  const int rescue = ::dup(fd);
  const uint64_t full = ~uint64_t{0} - 1, five = 5;
  uint64_t one = 0;
  ASSERT_EQ(libcCalls().write(fd, &full, sizeof full), 8);
  std::atomic<pid_t> thread{0};
  std::atomic<bool> closed{false};
  IOManager iom(1, false, "writer");
  const auto writer = std::make_shared<Fiber>([&] {
    thread.store(threadId());
    EXPECT_EQ(::write(fd, &five, sizeof five), 8) << ::strerror(errno);
  });
  iom.schedule(writer);
  while (stateOf(*writer) != FiberState::kParked) std::this_thread::yield();
  ASSERT_EQ(libcCalls().read(rescue, &one, sizeof one), 8);  // room for one: an event, and the write blocks
  while (!isIn(SYS_write, thread.load())) std::this_thread::yield();
  std::thread closer([&] {
    EXPECT_EQ(::close(fd), 0);
    closed.store(true);
  });
  for (int i = 0; i < 30'000 && !closed.load(); ++i) libcCalls().usleep(1000);
  EXPECT_TRUE(closed.load());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(libcCalls().read(rescue, &one, sizeof one), 8);
  writer->join();
  closer.join();
  EXPECT_EQ(::close(rescue), 0);
}

}  // namespace
}  // namespace sylar::test
