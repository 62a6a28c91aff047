// The point of the hooks: while one fiber waits in a plain libc call, others run on the same thread. For every call that parks,
// and its counter-proof: with hooks off the same program gets stuck in it.
#include <threads.h>

#include <functional>
#include <memory>

#include "tests/hook/support.h"

// What a fortified or an old binary calls.
extern "C" {
ssize_t __read_chk(int fd, void* buffer, size_t size, size_t buffer_size);
ssize_t __recv_chk(int fd, void* buffer, size_t size, size_t buffer_size, int flags);
ssize_t __recvfrom_chk(int fd, void* buffer, size_t size, size_t buffer_size, int flags, sockaddr* from, socklen_t* from_size);
int __poll_chk(pollfd* fds, nfds_t count, int timeout_ms, size_t size_bytes);
int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask, size_t size_bytes);
int __select(int count, fd_set* read, fd_set* write, fd_set* except, timeval* timeout);
int __poll(pollfd* fds, nfds_t count, int timeout_ms);
ssize_t __read(int fd, void* buffer, size_t size);
ssize_t __write(int fd, const void* data, size_t size);
ssize_t __send(int fd, const void* data, size_t size, int flags);
int __connect(int fd, const sockaddr* address, socklen_t size);
int __nanosleep(const timespec* duration, timespec* rest);
}

namespace sylar::test {
namespace {

/// A call that waits, and what lets it go on.
struct Waiting {
  std::function<void()> wait;
  std::function<void()> release;
};

/// How to set it up; outside fibers or in one.
struct WaitCase {
  std::string name;
  std::function<Waiting()> make;
};

std::ostream& operator<<(std::ostream& out, const WaitCase& one) { return out << one.name; }

using Transfer = ssize_t (*)(int fd, char* buffer, size_t size);

/// A receiving call on an empty stream.
WaitCase receives(const std::string& name, Transfer receive) {
  return {name, [receive] {
            auto pair = std::make_shared<Pair>(makeUnix(hookedCalls(), SOCK_STREAM));
            return Waiting{[=] {
                             char buffer[8] = {};
                             volatile size_t size = sizeof buffer;  // so that a fortified build must check it
                             EXPECT_EQ(receive(pair->a, buffer, size), 5);
                             EXPECT_STREQ(buffer, "hello");
                           },
                           [=] { EXPECT_EQ(::send(pair->b, "hello", 5, MSG_DONTWAIT), 5); }};
          }};
}

/// A sending call of more than both buffers hold.
WaitCase sends(const std::string& name, Transfer send) {
  return {name, [send] {
            auto pair = std::make_shared<Pair>(makeUnix(hookedCalls(), SOCK_STREAM));
            setBuffer(pair->a, SO_SNDBUF, 4096);
            auto bytes = std::make_shared<std::vector<char>>(streamBytes(64 * 1024));
            return Waiting{[=] { EXPECT_EQ(send(pair->a, bytes->data(), bytes->size()), ssize_t(bytes->size())); },
                           [=] {
                             std::vector<char> got(bytes->size());
                             EXPECT_EQ(::recv(pair->b, got.data(), got.size(), MSG_WAITALL), ssize_t(got.size()));
                             EXPECT_EQ(got, *bytes);
                           }};
          }};
}

WaitCase sleeps(const std::string& name, std::function<void()> sleep) {
  return {name, [sleep] { return Waiting{sleep, [] {}}; }};
}

WaitCase accepts(const std::string& name, int (*accept_one)(int listener)) {
  return {name, [accept_one] {
            auto sockets = std::make_shared<Pair>(
                Ends{boundSocket(hookedCalls(), SOCK_STREAM), ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)});
            return Waiting{[=] {
                             const int fd = accept_one(sockets->a);
                             EXPECT_GE(fd, 0);
                             ::close(fd);
                           },
                           [=] {
                             EXPECT_EQ(connectTo(hookedCalls(), sockets->b, addressOf(sockets->a)), -1);
                             EXPECT_EQ(errno, EINPROGRESS);
                           }};
          }};
}

/// An AF_UNIX listener with a full backlog.
WaitCase connects(const std::string& name, int (*connect_to)(int fd, const sockaddr* address, socklen_t size)) {
  return {name, [connect_to] {
            struct Sockets {
              Pair listening{{::socket(AF_UNIX, SOCK_STREAM, 0), -1}};
              Pair clients{{::socket(AF_UNIX, SOCK_STREAM, 0), ::socket(AF_UNIX, SOCK_STREAM, 0)}};
              sockaddr_un address{};
              socklen_t size = sizeof address;
            };
            auto sockets = std::make_shared<Sockets>();
            const sa_family_t unix_family = AF_UNIX;
            EXPECT_EQ(::bind(sockets->listening.a, reinterpret_cast<const sockaddr*>(&unix_family), sizeof unix_family), 0);
            auto* const address = reinterpret_cast<sockaddr*>(&sockets->address);
            EXPECT_EQ(::getsockname(sockets->listening.a, address, &sockets->size), 0);
            EXPECT_EQ(::listen(sockets->listening.a, 0), 0);
            EXPECT_EQ(::connect(sockets->clients.a, address, sockets->size), 0);
            return Waiting{[=] { EXPECT_EQ(connect_to(sockets->clients.b, address, sockets->size), 0); },
                           [=] { EXPECT_EQ(::close(::accept(sockets->listening.a, nullptr, nullptr)), 0); }};
          }};
}

WaitCase polls(const std::string& name, int (*poll_one)(pollfd* fds, nfds_t count)) {
  return {name, [poll_one] {
            auto pair = std::make_shared<Pair>(makeUnix(hookedCalls(), SOCK_STREAM));
            return Waiting{[=] {
                             pollfd fds[2] = {{pair->a, POLLIN, 0}, {pair->b, POLLIN, 0}};
                             volatile nfds_t count = 2;
                             EXPECT_EQ(poll_one(fds, count), 1);
                             EXPECT_EQ(fds[0].revents, POLLIN);
                             EXPECT_EQ(fds[1].revents, 0);
                           },
                           [=] { EXPECT_EQ(::send(pair->b, "x", 1, MSG_DONTWAIT), 1); }};
          }};
}

/// Makes `select` of what is to be read.
template <class Select>
int viaSelect(pollfd* fds, nfds_t count, Select select) {
  fd_set read;
  FD_ZERO(&read);
  int end = 0;
  for (nfds_t i = 0; i < count; ++i) {
    FD_SET(fds[i].fd, &read);
    end = std::max(end, fds[i].fd + 1);
  }
  const int ready = select(end, &read);
  for (nfds_t i = 0; i < count; ++i) fds[i].revents = FD_ISSET(fds[i].fd, &read) ? POLLIN : 0;
  return ready;
}

/// Makes `wait` on an epoll of what is to be read.
template <class Wait>
int viaEpoll(pollfd* fds, nfds_t count, Wait wait) {
  const Pair epoll({::epoll_create1(0), -1});
  for (nfds_t i = 0; i < count; ++i) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    EXPECT_EQ(::epoll_ctl(epoll.a, EPOLL_CTL_ADD, fds[i].fd, &event), 0);
  }
  epoll_event events[2] = {};
  const int ready = wait(epoll.a, events);
  for (int i = 0; i < ready; ++i) fds[events[i].data.u64].revents = POLLIN;
  return ready;
}

ssize_t viaReadv(int fd, char* buffer, size_t size) {
  const iovec parts[2] = {{buffer, 1}, {buffer + 1, size - 1}};
  return ::readv(fd, parts, 2);
}
ssize_t viaRecvmsg(int fd, char* buffer, size_t size) {
  iovec part{buffer, size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return ::recvmsg(fd, &message, 0);
}
ssize_t viaWritev(int fd, char* data, size_t size) {
  const iovec parts[2] = {{data, 100}, {data + 100, size - 100}};
  return ::writev(fd, parts, 2);
}
ssize_t viaSendmsg(int fd, char* data, size_t size) {
  iovec part{data, size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return ::sendmsg(fd, &message, 0);
}

// The buffers are declared here, so that a fortified build knows their sizes and calls the checking aliases.
ssize_t viaRead(int fd, char* buffer, size_t size) {
  char own[8] = {};
  const ssize_t n = ::read(fd, own, size);
  std::memcpy(buffer, own, sizeof own);
  return n;
}
ssize_t viaRecv(int fd, char* buffer, size_t size) {
  char own[8] = {};
  const ssize_t n = ::recv(fd, own, size, 0);
  std::memcpy(buffer, own, sizeof own);
  return n;
}
ssize_t viaRecvfrom(int fd, char* buffer, size_t size) {
  char own[8] = {};
  const ssize_t n = ::recvfrom(fd, own, size, 0, nullptr, nullptr);
  std::memcpy(buffer, own, sizeof own);
  return n;
}

std::vector<WaitCase> waitCases() {
  const timespec moment{0, 5'000'000};
  return {
      receives("read", viaRead),
      receives("readv", viaReadv),
      receives("recv", viaRecv),
      receives("recvfrom", viaRecvfrom),
      receives("recvmsg", viaRecvmsg),
      receives("read_chk", [](int fd, char* b, size_t n) { return __read_chk(fd, b, n, n); }),
      receives("recv_chk", [](int fd, char* b, size_t n) { return __recv_chk(fd, b, n, n, 0); }),
      receives("recvfrom_chk", [](int fd, char* b, size_t n) { return __recvfrom_chk(fd, b, n, n, 0, nullptr, nullptr); }),
      receives("underscore_read", [](int fd, char* b, size_t n) { return __read(fd, b, n); }),
      receives("recv_all", [](int fd, char* b, size_t) { return ::recv(fd, b, 5, MSG_WAITALL); }),
      receives("recv_peek",
               [](int fd, char* b, size_t n) {
                 EXPECT_EQ(::recv(fd, b, n, MSG_PEEK), 5);
                 return ::recv(fd, b, n, MSG_DONTWAIT);
               }),
      // AF_UNIX has no error queue, and waits for bytes.
      receives("recv_error_queue", [](int fd, char* b, size_t n) { return ::recv(fd, b, n, MSG_ERRQUEUE); }),
      sends("write", [](int fd, char* b, size_t n) { return ::write(fd, b, n); }),
      sends("writev", viaWritev),
      sends("send", [](int fd, char* b, size_t n) { return ::send(fd, b, n, 0); }),
      sends("sendto", [](int fd, char* b, size_t n) { return ::sendto(fd, b, n, 0, nullptr, 0); }),
      sends("sendmsg", viaSendmsg),
      sends("underscore_write", [](int fd, char* b, size_t n) { return __write(fd, b, n); }),
      sends("underscore_send", [](int fd, char* b, size_t n) { return __send(fd, b, n, 0); }),
      accepts("accept", [](int fd) { return ::accept(fd, nullptr, nullptr); }),
      accepts("accept4", [](int fd) { return ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC); }),
      connects("connect", [](int fd, const sockaddr* to, socklen_t size) { return ::connect(fd, to, size); }),
      connects("underscore_connect", [](int fd, const sockaddr* to, socklen_t size) { return __connect(fd, to, size); }),
      polls("poll",
            [](pollfd* fds, nfds_t count) {
              pollfd own[2] = {fds[0], fds[1]};
              const int n = ::poll(own, count, -1);
              std::memcpy(fds, own, sizeof own);
              return n;
            }),
      polls("poll_chk", [](pollfd* fds, nfds_t count) { return __poll_chk(fds, count, -1, count * sizeof *fds); }),
      polls("ppoll", [](pollfd* fds, nfds_t count) { return ::ppoll(fds, count, nullptr, nullptr); }),
      polls("ppoll_chk",
            [](pollfd* fds, nfds_t count) { return __ppoll_chk(fds, count, nullptr, nullptr, count * sizeof *fds); }),
      polls("select",
            [](pollfd* fds, nfds_t count) {
              return viaSelect(fds, count, [](int end, fd_set* read) { return ::select(end, read, nullptr, nullptr, nullptr); });
            }),
      polls("underscore_select",
            [](pollfd* fds, nfds_t count) {
              return viaSelect(fds, count, [](int end, fd_set* read) { return __select(end, read, nullptr, nullptr, nullptr); });
            }),
      polls("pselect",
            [](pollfd* fds, nfds_t count) {
              return viaSelect(fds, count,
                               [](int end, fd_set* read) { return ::pselect(end, read, nullptr, nullptr, nullptr, nullptr); });
            }),
      polls("epoll_wait",
            [](pollfd* fds, nfds_t count) {
              return viaEpoll(fds, count, [](int epoll, epoll_event* events) { return ::epoll_wait(epoll, events, 2, -1); });
            }),
      polls("epoll_pwait",
            [](pollfd* fds, nfds_t count) {
              return viaEpoll(fds, count,
                              [](int epoll, epoll_event* events) { return ::epoll_pwait(epoll, events, 2, -1, nullptr); });
            }),
      polls("epoll_pwait2",
            [](pollfd* fds, nfds_t count) {
              return viaEpoll(fds, count,
                              [](int epoll, epoll_event* events) { return ::epoll_pwait2(epoll, events, 2, nullptr, nullptr); });
            }),
      sleeps("select_of_nothing",
             [] {
               timeval wanted{0, 5000};
               EXPECT_EQ(::select(0, nullptr, nullptr, nullptr, &wanted), 0);
             }),
      polls("underscore_poll", [](pollfd* fds, nfds_t count) { return __poll(fds, count, -1); }),
      sleeps("sleep", [] { EXPECT_EQ(::sleep(1), 0u); }),
      sleeps("usleep", [] { EXPECT_EQ(::usleep(5000), 0); }),
      sleeps("nanosleep", [=] { EXPECT_EQ(::nanosleep(&moment, nullptr), 0); }),
      sleeps("clock_nanosleep", [=] { EXPECT_EQ(::clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, nullptr), 0); }),
      sleeps("clock_nanosleep_until",
             [] {
               timespec until{};
               EXPECT_EQ(::clock_gettime(CLOCK_REALTIME, &until), 0);
               until.tv_sec += 1;  // not less: a call that comes too late does not wait
               EXPECT_EQ(::clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, nullptr), 0);
             }),
      sleeps("thrd_sleep", [=] { EXPECT_EQ(::thrd_sleep(&moment, nullptr), 0); }),
      sleeps("underscore_nanosleep", [=] { EXPECT_EQ(__nanosleep(&moment, nullptr), 0); }),
  };
}

class Parking : public testing::TestWithParam<WaitCase> {};

// HA-8, CD-H10
TEST_P(Parking, LetsAnotherFiberOfTheOnlyWorkerRun) {
  const Waiting waiting = GetParam().make();
  std::string order;
  inFiber([&] {
    IOManager* const iom = IOManager::GetThis();
    iom->schedule([&] {  // without the hook it would never begin, and the call below never end
      order += "other ";
      waiting.release();
    });
    waiting.wait();
    order += "waiter";
  });
  EXPECT_EQ(order, "other waiter");
}

TEST_P(Parking, WithHooksOffBlocksTheOnlyWorker) {
  const Waiting waiting = GetParam().make();
  std::string order;
  std::atomic<bool> waits{false};
  std::thread outside([&] {
    spinUntil(waits, true);
    waiting.release();
  });
  inFiber([&] {
    set_hook_enable(false);
    IOManager::GetThis()->schedule([&] { order += "other"; });
    waits.store(true, std::memory_order_release);
    waiting.wait();
    order += "waiter ";
  });
  outside.join();
  EXPECT_EQ(order, "waiter other");
}

TEST_P(Parking, KeepsErrnoAndTheThread) {
  const Waiting waiting = GetParam().make();
  inFiber(
      [&] {
        IOManager::GetThis()->schedule(
            [&] {
              errno = EDOM;
              waiting.release();
              errno = ERANGE;
            },
            threadId());
        const pid_t thread = threadId();
        errno = ENOENT;
        waiting.wait();
        EXPECT_EQ(errno, ENOENT);
        EXPECT_EQ(threadId(), thread);
      },
      2);
}

INSTANTIATE_TEST_SUITE_P(Of, Parking, testing::ValuesIn(waitCases()), [](const auto& one) { return one.param.name; });

// A buffer that is too small is what the checking aliases are for.
TEST(ParkingDeathTest, FortifiedCallsEndTheProcessOnASmallBuffer) {
  char buffer[8];
  pollfd two[2] = {};
  volatile size_t small = 4;
  ssize_t n = 0;
  EXPECT_DEATH(n = __read_chk(-1, buffer, 8, small), "buffer overflow");
  EXPECT_DEATH(n = __recv_chk(-1, buffer, 8, small, 0), "buffer overflow");
  EXPECT_DEATH(n = __recvfrom_chk(-1, buffer, 8, small, 0, nullptr, nullptr), "buffer overflow");
  EXPECT_DEATH(n = __poll_chk(two, 2, 0, small), "buffer overflow");
  EXPECT_EQ(n, 0);
}

// The same on every kind of descriptor, in both directions.
TEST(Parking, OnEveryKindOfDescriptor) {
  const std::function<Ends()> kinds[] = {
      [] { return makeTcp(hookedCalls()); },
      [] { return makeUdp(hookedCalls()); },
      [] { return makePipe(hookedCalls()); },
      [] { return makeUnix(hookedCalls(), SOCK_STREAM); },
      [] { return makeUnix(hookedCalls(), SOCK_DGRAM); },
      [] { return makeUnix(hookedCalls(), SOCK_SEQPACKET); },
  };
  for (const auto& make : kinds) {
    const Pair pair(make());
    char byte = 0;
    waitsFor([&] { EXPECT_EQ(::read(pair.a, &byte, 1), 1); }, [&] { EXPECT_EQ(::write(pair.b, "r", 1), 1); });
    EXPECT_EQ(byte, 'r');
  }
}

TEST(Parking, WriterOfAFullPipeWaitsForTheReader) {
  const Pair pair = pipePair();
  const std::vector<char> bytes = streamBytes(1 << 20);
  std::vector<char> got(bytes.size());
  waitsFor([&] { EXPECT_EQ(::write(pair.b, bytes.data(), bytes.size()), ssize_t(bytes.size())); },
           [&] {
             for (size_t done = 0; done < got.size();) {
               const ssize_t n = ::read(pair.a, got.data() + done, got.size() - done);
               ASSERT_GT(n, 0);
               done += static_cast<size_t>(n);
             }
           });
  EXPECT_EQ(got, bytes);
}

// The backlog of a TCP listener is full: the connection comes through with a later try of the kernel's, a second later.
TEST(Parking, ConnectOverTcpWaitsForAFullBacklog) {
  const int listener = boundSocket(hookedCalls(), SOCK_STREAM, 0);
  const int first = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(connectTo(hookedCalls(), first, addressOf(listener)), 0);
  const int second = ::socket(AF_INET, SOCK_STREAM, 0);
  int accepted[2] = {-1, -1};
  waitsFor([&] { EXPECT_EQ(connectTo(hookedCalls(), second, addressOf(listener)), 0); },
           [&] {
             for (int& fd : accepted) fd = ::accept(listener, nullptr, nullptr);
           });
  for (const int fd : {listener, first, second, accepted[0], accepted[1]}) EXPECT_EQ(::close(fd), 0);
}

}  // namespace
}  // namespace sylar::test
