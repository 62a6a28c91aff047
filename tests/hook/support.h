// For the tests of hooks: libc's own functions beside the interposed names, and descriptors in pairs.
#pragma once

#include <aio.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/base/sys.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/hook.h"
#include "sylar/hook/core/names.h"
#include "sylar/iomanager.h"
#include "tests/support/busy.h"
#include "tests/support/engine_mode.h"
#include "tests/support/fibers.h"

namespace sylar::test {

// glibc's access attributes are no part of a type; GCC says so each time.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
// clang-format off
#define SYLAR_TESTED_CALLS(X) \
  X(socket) X(socketpair) X(pipe) X(pipe2) X(close) X(dup) X(dup2) X(dup3) X(fcntl) X(ioctl) \
  X(setsockopt) X(connect) X(accept) X(accept4) X(read) X(readv) X(recv) X(recvfrom) X(recvmsg) \
  X(wait) X(wait3) X(wait4) X(waitpid) X(waitid) X(system) X(popen) X(pclose) \
  X(recvmmsg) X(sendmmsg) X(sendfile) X(splice) X(tee) X(vmsplice) X(copy_file_range) X(pread) X(preadv) X(pwrite) X(pwritev) \
  X(preadv2) X(pwritev2) X(syscall) \
  X(write) X(writev) X(send) X(sendto) X(sendmsg) X(poll) X(ppoll) X(select) X(pselect) \
  X(epoll_wait) X(epoll_pwait) X(epoll_pwait2) X(nanosleep) X(usleep) X(clock_nanosleep) \
  SYLAR_NAME_CALLS(X) X(open) X(openat) X(creat) X(flock) X(lockf) \
  X(fsync) X(fdatasync) X(syncfs) X(sync) X(msync) X(sync_file_range) \
  X(mq_receive) X(mq_timedreceive) X(mq_send) X(mq_timedsend) X(mq_close) X(msgrcv) X(msgsnd) X(semop) X(semtimedop) \
  X(aio_suspend) X(lio_listio)
// clang-format on

/// One set of implementations of the same functions.
struct Calls {
#define SYLAR_MEMBER_(name) decltype(&::name) name;
  SYLAR_TESTED_CALLS(SYLAR_MEMBER_)
#undef SYLAR_MEMBER_
};
#pragma GCC diagnostic pop

/// The names as every program calls them: interposed.
inline Calls hookedCalls() {
#define SYLAR_NAMED_(name) .name = &::name,
  return {SYLAR_TESTED_CALLS(SYLAR_NAMED_)};
#undef SYLAR_NAMED_
}

/// libc's own, past every interposition.
inline const Calls& libcCalls() {
  static const Calls calls = [] {
    void* const libc = ::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    const auto find = [libc](const char* name) { return ::dlsym(libc, name); };
#define SYLAR_FOUND_(name) .name = reinterpret_cast<decltype(Calls::name)>(find(#name)),
    return Calls{SYLAR_TESTED_CALLS(SYLAR_FOUND_)};
#undef SYLAR_FOUND_
  }();
  return calls;
}

/// Sets setHookFiles() for as long as it lives.
class FilesMode {
 public:
  explicit FilesMode(bool on) { setHookFiles(on); }
  ~FilesMode() { setHookFiles(m_before); }
  FilesMode(const FilesMode&) = delete;
  FilesMode& operator=(const FilesMode&) = delete;

 private:
  const bool m_before = hookFiles();
};

inline sockaddr_in loopback(uint16_t port = 0) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// Where a socket is bound.
inline sockaddr_in addressOf(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  return address;
}

/// A bound socket; listening if it is a stream and `backlog` >= 0.
inline int boundSocket(const Calls& calls, int type, int backlog = 16) {
  const int fd = calls.socket(AF_INET, type, 0);
  const sockaddr_in address = loopback();
  EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  if (type == SOCK_STREAM && backlog >= 0) {
    EXPECT_EQ(::listen(fd, backlog), 0);
  }
  return fd;
}

inline int connectTo(const Calls& calls, int fd, const sockaddr_in& address) {
  return calls.connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

/// Two ends that talk to each other, made by `creators`. [0] reads what is written to [1]; both directions but for a pipe.
using Ends = std::array<int, 2>;

inline Ends makeUnix(const Calls& creators, int type) {
  Ends ends{};
  EXPECT_EQ(creators.socketpair(AF_UNIX, type, 0, ends.data()), 0);
  return ends;
}
inline Ends makePipe(const Calls& creators) {
  Ends ends{};
  EXPECT_EQ(creators.pipe(ends.data()), 0);
  return ends;
}
inline Ends makeTcp(const Calls& creators) {
  const int listener = boundSocket(creators, SOCK_STREAM);
  const int client = creators.socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(connectTo(creators, client, addressOf(listener)), 0);
  const int server = creators.accept(listener, nullptr, nullptr);
  EXPECT_GE(server, 0);
  creators.close(listener);
  return {server, client};
}
inline Ends makeUdp(const Calls& creators) {
  const Ends ends{boundSocket(creators, SOCK_DGRAM), boundSocket(creators, SOCK_DGRAM)};
  EXPECT_EQ(connectTo(creators, ends[0], addressOf(ends[1])), 0);
  EXPECT_EQ(connectTo(creators, ends[1], addressOf(ends[0])), 0);
  return ends;
}

/// Two ends that are closed with their scope.
struct Pair {
  explicit Pair(Ends made) : a(made[0]), b(made[1]) {}
  ~Pair() {
    closeA();
    closeB();
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  void closeA() {
    if (a >= 0) {
      EXPECT_EQ(::close(std::exchange(a, -1)), 0);
    }
  }
  void closeB() {
    if (b >= 0) {
      EXPECT_EQ(::close(std::exchange(b, -1)), 0);
    }
  }
  int a;
  int b;
};

inline Pair unixPair(int type = SOCK_STREAM) { return Pair(makeUnix(hookedCalls(), type)); }
inline Pair tcpPair() { return Pair(makeTcp(hookedCalls())); }
inline Pair udpPair() { return Pair(makeUdp(hookedCalls())); }
inline Pair pipePair() { return Pair(makePipe(hookedCalls())); }

/// Closing it now sends a reset instead of an end of stream.
inline void resetOnClose(int fd) {
  const linger none{1, 0};
  EXPECT_EQ(::setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
}

inline void setTimeout(const Calls& calls, int fd, int option, int64_t us) {
  const timeval timeout{us / 1'000'000, us % 1'000'000};
  EXPECT_EQ(calls.setsockopt(fd, SOL_SOCKET, option, &timeout, sizeof timeout), 0);
}

inline void setBuffer(int fd, int option, int bytes) { EXPECT_EQ(::setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof bytes), 0); }

/// Byte `i` of the stream that all tests of long transfers send: a lost, doubled or swapped stretch does not go unseen.
inline char streamByte(size_t i) { return static_cast<char>((i * 2654435761u) >> 13 ^ i); }
inline std::vector<char> streamBytes(size_t size) {
  std::vector<char> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = streamByte(i);
  return bytes;
}

/// Lets a fiber of the same worker run until it waits. For fibers.
inline void untilParked(const Fiber& fiber) {
  while (stateOf(fiber) != FiberState::kParked) Fiber::YieldToReady();
}

/// Lets others run until the worker has looked for ready descriptors `times` times. For fibers of the only worker.
inline void untilPolled(uint64_t times = 2) {
  const auto polls = [] { return IOManager::GetThis()->getWorkerStats().polls; };
  for (const uint64_t end = polls() + times; polls() < end;) Fiber::YieldToReady();
}

/// Runs `step` on the same worker when the fiber that calls this has parked.
inline void whenParked(const std::function<void()>& step) { IOManager::GetThis()->schedule(step); }

/// Runs `wait` in a fiber and, when it has parked, `release` on the same worker.
inline void waitsFor(const std::function<void()>& wait, const std::function<void()>& release) {
  bool released = false;
  inFiber([&] {
    whenParked([&] {
      released = true;
      release();
    });
    wait();
    EXPECT_TRUE(released);
  });
}

/// The exit status of a child, or 1000 and the number of the signal that ended it. For fibers.
inline int exitOf(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) ::usleep(1000);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// The id of the thread, or of the worker whose fiber this is.
inline pid_t threadId() { return sys::threadId(); }

/// Sends a signal to the worker whose fiber this is. Its handler has run when this returns.
inline void signalWorker(int signal) {
#ifdef SYLAR_TSAN  // where the fiber's thread is the worker's, and other calls leave the handler for later
  EXPECT_EQ(::raise(signal), 0);
#else
  EXPECT_EQ(::tgkill(::getpid(), threadId(), signal), 0);
#endif
}

/// Waits for a word that another thread sets. For plain threads.
template <class T>
void spinUntil(const std::atomic<T>& word, T value) {
  busyUntil([&] { return word.load(std::memory_order_acquire) == value; });
}

/// The kernel ids of an IOManager's `count` workers. For plain threads.
inline std::vector<pid_t> threadsOf(IOManager& iom, size_t count) {
  std::vector<pid_t> threads(count);
  std::atomic<size_t> begun{0};
  std::atomic<size_t> ended{0};
  for (pid_t& thread : threads) {
    iom.place([&] {
      thread = threadId();
      begun.fetch_add(1, std::memory_order_release);
      busyUntil([&] { return begun.load(std::memory_order_acquire) == count; });  // so that each has its own worker
      ended.fetch_add(1, std::memory_order_release);
    });
  }
  spinUntil(ended, count);
  return threads;
}

}  // namespace sylar::test
