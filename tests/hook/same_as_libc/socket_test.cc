// Hooked against raw: everything that is not plain transfer: connect, accept, poll, flags, copies, wrong arguments.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdio>

#include "sylar/base/sanitizers.h"
#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {
namespace {

// The sanitizers' interceptors read these arguments before the kernel can refuse them.
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
constexpr bool kKernelSeesPointersFirst = false;
#else
constexpr bool kKernelSeesPointersFirst = true;
#endif

// ---- Wrong descriptors. -------------------------------------------------------------------------------------------------------

/// Every call that takes a descriptor, on one that is not right for most of them.
void everyCall(Run& run, int fd) {
  const Calls& call = run.call;
  char byte = 'b';
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const sockaddr_in address = loopback(1);
  const auto* const to = reinterpret_cast<const sockaddr*>(&address);
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  run.got("read", call.read(fd, &byte, 1));
  run.got("readv", call.readv(fd, &part, 1));
  run.got("recv", call.recv(fd, &byte, 1, 0));
  run.got("recvfrom", call.recvfrom(fd, &byte, 1, 0, reinterpret_cast<sockaddr*>(&from), &size));
  run.got("recvmsg", call.recvmsg(fd, &message, 0));
  run.got("write", call.write(fd, &byte, 1));
  run.got("writev", call.writev(fd, &part, 1));
  run.got("send", call.send(fd, &byte, 1, 0));
  run.got("sendto", call.sendto(fd, &byte, 1, 0, to, sizeof address));
  run.got("sendmsg", call.sendmsg(fd, &message, 0));
  run.got("recv, size 0", call.recv(fd, &byte, 0, 0));
  run.got("send, size 0", call.send(fd, &byte, 0, 0));
  run.got("connect", call.connect(fd, to, sizeof address));
  run.got("accept", call.accept(fd, nullptr, nullptr));
  run.got("accept4", call.accept4(fd, nullptr, nullptr, SOCK_NONBLOCK));
  const int on = 1;
  run.got("setsockopt", call.setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
}

void everyCallOnNoDescriptor(Run& run, int fd) {
  everyCall(run, fd);
  char byte;
  int on = 1;
  run.got("read, size 0", run.call.read(fd, &byte, 0));
  run.got("write, size 0", run.call.write(fd, &byte, 0));
  run.got("dup", run.call.dup(fd));
  run.got("dup2", run.call.dup2(fd, 100));
  run.got("dup3", run.call.dup3(fd, 100, 0));
  run.got("F_GETFL", run.call.fcntl(fd, F_GETFL));
  run.got("F_SETFL", run.call.fcntl(fd, F_SETFL, O_NONBLOCK));
  run.got("F_DUPFD", run.call.fcntl(fd, F_DUPFD, 0));
  run.got("FIONBIO", run.call.ioctl(fd, FIONBIO, &on));
  run.got("close", run.call.close(fd));
}

void aClosedNumber(Run& run) {
  const Ends ends = makeUnix(run.make, SOCK_STREAM);
  run.got("close", run.call.close(ends[0]));
  run.got("close", run.call.close(ends[1]));
  everyCallOnNoDescriptor(run, ends[0]);
}
void aNegativeNumber(Run& run) { everyCallOnNoDescriptor(run, -1); }
void anAbsurdNumber(Run& run) { everyCallOnNoDescriptor(run, INT32_MAX); }

void aRegularFile(Run& run) {
  const int fd = run.keep(::open("/tmp", O_TMPFILE | O_RDWR, 0600));
  run.got("write", run.call.write(fd, "0123456789", 10));
  run.got("lseek", ::lseek(fd, 2, SEEK_SET));
  char buffer[16] = {};
  run.got("read", run.call.read(fd, buffer, 5));
  run.note("read", buffer);
  everyCall(run, fd);
  run.got("read at the end", run.call.read(fd, buffer, 5));
}
void aDirectory(Run& run) { everyCall(run, run.keep(::open("/tmp", O_RDONLY | O_DIRECTORY))); }
void devices(Run& run) {
  everyCall(run, run.keep(::open("/dev/null", O_RDWR)));
  everyCall(run, run.keep(::open("/dev/zero", O_RDWR)));
}
void anEpoll(Run& run) { everyCall(run, run.keep(::epoll_create1(0))); }
void aPipe(Run& run) {
  const Ends ends = run.keep(makePipe(run.make));
  libcCalls().write(ends[1], "waits", 5);
  everyCall(run, ends[0]);
  everyCall(run, ends[1]);
}

void anEventfd(Run& run) {
  const int fd = run.keep(::eventfd(2, 0));
  uint64_t value = 0;
  run.got("read", run.call.read(fd, &value, sizeof value));
  run.note("read", std::to_string(value));
  value = 5;
  run.got("write", run.call.write(fd, &value, sizeof value));
  run.got("read", run.call.read(fd, &value, 4));
  run.got("read", run.call.read(fd, &value, sizeof value));
}

void aFifoByName(Run& run) {
  char name[] = "/tmp/sylar_fifo_XXXXXX";
  ::close(::mkstemp(name));
  ::unlink(name);
  run.got("mkfifo", ::mkfifo(name, 0600));
  const int early = run.keep(::open(name, O_RDONLY | O_NONBLOCK));
  char buffer[16] = {};
  run.got("read without any writer", run.call.read(early, buffer, 4));
  const int fd = run.keep(::open(name, O_RDWR));
  ::unlink(name);
  run.got("read with a writer", run.call.read(early, buffer, 4));
  run.later([=](const Calls& libc) { libc.write(fd, "later", 5); });
  run.got("read", run.call.read(fd, buffer, sizeof buffer));
  run.note("read", buffer);
  run.join();
  char text[] = "gathered";
  const iovec parts[4] = {{text, 0}, {text, 3}, {text, 0}, {text + 3, 5}};
  run.got("writev", run.call.writev(fd, parts, 4));
  std::memset(buffer, 0, sizeof buffer);
  run.got("read", run.call.read(fd, buffer, sizeof buffer));
  run.note("read", buffer);
}

/// fclose closes a number without any hook; what comes next under that number is another thing.
void aNumberThatStdioClosed(Run& run) {
  for (const bool socket_first : {true, false}) {
    const Ends old = socket_first ? makeUnix(run.make, SOCK_STREAM) : makePipe(run.make);
    std::fclose(::fdopen(old[0], "r"));
    const int file = ::open("/dev/zero", O_RDWR);
    run.note("same number", file == old[0] ? "yes" : "no");
    char buffer[4] = {1, 1, 1, 1};
    run.got("read", run.call.read(file, buffer, 4));
    run.got("write", run.call.write(file, buffer, 4));
    run.note("byte", std::to_string(buffer[3]));
    run.close(old[1]);
    run.close(file);
  }
}

// ---- connect. -----------------------------------------------------------------------------------------------------------------

int tcpSocket(Run& run, int flags = 0) { return run.keep(run.make.socket(AF_INET, SOCK_STREAM | flags, 0)); }

void noteFlags(Run& run, int fd) {
  run.got("F_GETFL", run.call.fcntl(fd, F_GETFL) & O_NONBLOCK);
  run.got("F_GETFD", run.call.fcntl(fd, F_GETFD));
}

void connectSucceeds(Run& run) {
  const int listener = run.keep(boundSocket(run.make, SOCK_STREAM));
  const int fd = tcpSocket(run);
  run.got("connect", connectTo(run.call, fd, addressOf(listener)));
  noteFlags(run, fd);
  run.got("connect again", connectTo(run.call, fd, addressOf(listener)));
  run.got("connect of a listener", connectTo(run.call, listener, addressOf(listener)));
  run.got("send", run.call.send(fd, "x", 1, 0));
}

void connectRefused(Run& run) {
  const int nobody = run.keep(boundSocket(run.make, SOCK_STREAM, -1));
  const int fd = tcpSocket(run);
  for (int i = 0; i < 3; ++i) run.got("connect", connectTo(run.call, fd, addressOf(nobody)));
  run.got("send", run.call.send(fd, "x", 1, 0));
  run.got("listen", ::listen(nobody, 1));
  run.got("connect", connectTo(run.call, fd, addressOf(nobody)));
  noteFlags(run, fd);
}

void connectNonblocking(Run& run) {
  const int listener = run.keep(boundSocket(run.make, SOCK_STREAM));
  for (const bool by_copy : {false, true}) {
    const int fd = tcpSocket(run, by_copy ? 0 : SOCK_NONBLOCK);
    if (by_copy) run.got("F_SETFL", run.call.fcntl(run.keep(run.make.dup(fd)), F_SETFL, O_NONBLOCK));
    run.got("connect", connectTo(run.call, fd, addressOf(listener)));
    pollfd out{fd, POLLOUT, 0};
    run.got("poll", run.call.poll(&out, 1, -1));
    run.got("revents", out.revents);
    run.got("connect again", connectTo(run.call, fd, addressOf(listener)));
    run.got("connect again", connectTo(run.call, fd, addressOf(listener)));
    noteFlags(run, fd);
  }
}

void connectNonblockingRefused(Run& run) {
  const int nobody = run.keep(boundSocket(run.make, SOCK_STREAM, -1));
  const int fd = tcpSocket(run, SOCK_NONBLOCK);
  run.got("connect", connectTo(run.call, fd, addressOf(nobody)));
  pollfd out{fd, POLLOUT, 0};
  run.got("poll", run.call.poll(&out, 1, -1));
  run.got("revents", out.revents);
  run.got("connect again", connectTo(run.call, fd, addressOf(nobody)));
}

void connectWithWrongArguments(Run& run) {
  const int fd = tcpSocket(run);
  const sockaddr_in address = loopback(1);
  const auto* const to = reinterpret_cast<const sockaddr*>(&address);
  run.got("short", run.call.connect(fd, to, 4));
  run.got("length -1", run.call.connect(fd, to, static_cast<socklen_t>(opaque(-1))));
  sockaddr_in other = address;
  other.sin_family = AF_UNIX;
  run.got("family", connectTo(run.call, fd, other));
  if (kKernelSeesPointersFirst) {
    run.got("pointer", run.call.connect(fd, static_cast<sockaddr*>(badPointer()), sizeof address));
  }
  noteFlags(run, fd);
}

void connectOfADatagramSocket(Run& run) {
  const int fd = run.keep(run.make.socket(AF_INET, SOCK_DGRAM, 0));
  const int other = run.keep(boundSocket(run.make, SOCK_DGRAM));
  run.got("connect", connectTo(run.call, fd, addressOf(other)));
  run.got("connect again", connectTo(run.call, fd, addressOf(other)));
  sockaddr_in nobody{};
  nobody.sin_family = AF_UNSPEC;
  run.got("disconnect", connectTo(run.call, fd, nobody));
  run.got("send", run.call.send(fd, "x", 1, 0));
}

/// A Unix socket's name that no file stands for; new at each call.
sockaddr_un abstractName(socklen_t* size) {
  static std::atomic<int> number{0};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int length = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "sylar-%d-%d", ::getpid(), ++number);
  *size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
  return address;
}

struct UnixListener {
  UnixListener(Run& run, int type, int backlog) : address(abstractName(&size)) {
    fd = run.keep(run.make.socket(AF_UNIX, type, 0));
    EXPECT_EQ(::bind(fd, to(), size), 0);
    if (backlog < 0) return;
    EXPECT_EQ(::listen(fd, backlog), 0);
  }
  const sockaddr* to() const { return reinterpret_cast<const sockaddr*>(&address); }
  socklen_t size = 0;
  sockaddr_un address;
  int fd = -1;
};

void connectOverUnix(Run& run) {
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    const auto connects = [&](const char* what, const UnixListener& to, int flags = 0) {
      const int fd = run.keep(run.make.socket(AF_UNIX, type | flags, 0));
      run.got(what, run.call.connect(fd, to.to(), to.size));
      return fd;
    };
    const UnixListener deaf(run, type, -1);
    connects("not listening", deaf);
    UnixListener absent = deaf;
    absent.address = abstractName(&absent.size);
    connects("nobody", absent);
    const UnixListener roomy(run, type, 4);
    const int connected = connects("listening", roomy);
    run.got("again", run.call.connect(connected, roomy.to(), roomy.size));
    const UnixListener listener(run, type, 0);
    connects("listening", listener);
    connects("full, nonblocking", listener, SOCK_NONBLOCK);
    const int timed = run.keep(run.make.socket(AF_UNIX, type, 0));
    setTimeout(run.call, timed, SO_SNDTIMEO, 20'000);
    run.got("full, with a timeout", run.call.connect(timed, listener.to(), listener.size));
    run.later([=](const Calls& libc) { libc.close(libc.accept(listener.fd, nullptr, nullptr)); });
    connects("full, then not", listener);
    run.join();
  }
}

void connectOverUnixNonblockingByACopy(Run& run) {
  const UnixListener listener(run, SOCK_STREAM, 0);
  const int first = run.keep(run.make.socket(AF_UNIX, SOCK_STREAM, 0));
  run.got("connect", run.call.connect(first, listener.to(), listener.size));
  const int fd = run.keep(run.make.socket(AF_UNIX, SOCK_STREAM, 0));
  run.got("F_SETFL", run.call.fcntl(run.keep(run.make.dup(fd)), F_SETFL, O_NONBLOCK));
  run.got("connect", run.call.connect(fd, listener.to(), listener.size));
}

void connectOverUnixToAListenerThatEnds(Run& run) {
  const UnixListener listener(run, SOCK_STREAM, 0);
  const int first = run.keep(run.make.socket(AF_UNIX, SOCK_STREAM, 0));
  run.got("connect", run.call.connect(first, listener.to(), listener.size));
  const int last = libcCalls().dup(listener.fd);
  run.close(listener.fd);
  run.later([=](const Calls& libc) { libc.close(last); });
  const int fd = run.keep(run.make.socket(AF_UNIX, SOCK_STREAM, 0));
  run.got("connect", run.call.connect(fd, listener.to(), listener.size));
}

// ---- accept. ------------------------------------------------------------------------------------------------------------------

void acceptOnWhatDoesNotListen(Run& run) {
  const auto accepts = [&](const char* what, int fd) {
    run.got(what, run.call.accept(fd, nullptr, nullptr));
    run.got(what, run.call.accept4(fd, nullptr, nullptr, SOCK_CLOEXEC));
  };
  accepts("new", tcpSocket(run));
  accepts("bound", run.keep(boundSocket(run.make, SOCK_STREAM, -1)));
  accepts("connected", run.keep(makeTcp(run.make))[0]);
  accepts("udp", run.keep(boundSocket(run.make, SOCK_DGRAM)));
  accepts("unix", run.keep(makeUnix(run.make, SOCK_STREAM))[0]);
  accepts("unix datagram", run.keep(makeUnix(run.make, SOCK_DGRAM))[0]);
  accepts("seqpacket", run.keep(makeUnix(run.make, SOCK_SEQPACKET))[0]);
}

void acceptTellsThePeer(Run& run) {
  const int listener = run.keep(boundSocket(run.make, SOCK_STREAM));
  for (const socklen_t space : {sizeof(sockaddr_in), size_t{4}, size_t{0}}) {
    const int client = tcpSocket(run);
    run.got("connect", connectTo(run.call, client, addressOf(listener)));
    sockaddr_in peer{};
    socklen_t size = space;
    const int fd = run.keep(run.call.accept(listener, reinterpret_cast<sockaddr*>(&peer), &size));
    run.note("accepted", fd >= 0 ? "yes" : "no");
    run.note("size", std::to_string(size));
    run.note("port", peer.sin_port == addressOf(client).sin_port ? "its" : std::to_string(peer.sin_port));
  }
}

// CD-H2, FM-16
void acceptWithFlags(Run& run) {
  const int listener = run.keep(boundSocket(run.make, SOCK_STREAM));
  for (const int flags : {0, int{SOCK_NONBLOCK}, int{SOCK_CLOEXEC}, SOCK_NONBLOCK | SOCK_CLOEXEC}) {
    run.got("connect", connectTo(run.call, tcpSocket(run), addressOf(listener)));
    const int fd = run.keep(run.call.accept4(listener, nullptr, nullptr, flags));
    noteFlags(run, fd);
    char byte;
    if ((flags & SOCK_NONBLOCK) != 0) run.got("read", run.call.read(fd, &byte, 1));
  }
  run.got("connect", connectTo(run.call, tcpSocket(run), addressOf(listener)));
  run.got("unknown flags", run.call.accept4(listener, nullptr, nullptr, 1 << 20));
  run.got("F_SETFL", run.call.fcntl(listener, F_SETFL, O_NONBLOCK));
  noteFlags(run, run.keep(run.call.accept(listener, nullptr, nullptr)));  // is not inherited
  run.got("none left", run.call.accept(listener, nullptr, nullptr));
  run.got("none left", run.call.accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
}

// CD-H3
void acceptTimesOutAndHandsTheTimeoutDown(Run& run) {
  const int listener = run.keep(boundSocket(run.make, SOCK_STREAM));
  setTimeout(run.call, listener, SO_RCVTIMEO, 10'000);
  run.got("accept", run.call.accept(listener, nullptr, nullptr));
  const int client = tcpSocket(run);
  run.got("connect", connectTo(run.call, client, addressOf(listener)));
  const int fd = run.keep(run.call.accept(listener, nullptr, nullptr));
  char byte;
  run.got("read", run.call.read(fd, &byte, 1));
  setTimeout(run.call, fd, SO_RCVTIMEO, 0);
  run.later([=](const Calls& libc) { libc.write(client, "x", 1); });
  run.got("read", run.call.read(fd, &byte, 1));
}

// CD-H3: what TCP hands down, AF_UNIX does not.
void acceptHandsDownByFamily(Run& run) {
  const auto timesOut = [&](bool handed_down, int listener, int client, const sockaddr* to, socklen_t size) {
    setTimeout(run.call, listener, SO_RCVTIMEO, 5'000);
    setTimeout(run.call, listener, SO_SNDTIMEO, 5'000);
    run.got("connect", run.call.connect(client, to, size));
    const int fd = run.keep(run.call.accept(listener, nullptr, nullptr));
    std::atomic<bool> ended{false};
    run.later([=, &ended](const Calls& libc) {
      // Long after the listener's timeout. Where that is handed down, not before it has ended the read, however late that begins.
      for (int i = 0; i < (handed_down ? 1000 : 1) && !ended.load(); ++i) libc.usleep(40'000);
      libc.write(client, "x", 1);
    });
    char byte;
    run.got("read", run.call.read(fd, &byte, 1));
    ended.store(true);
    run.join();
    timeval left{};
    for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
      socklen_t length = sizeof left;
      run.got("getsockopt", ::getsockopt(fd, SOL_SOCKET, option, &left, &length));
      run.note("of the accepted", left.tv_sec == 0 && left.tv_usec == 0 ? "none" : "some");
    }
  };
  const int tcp = run.keep(boundSocket(run.make, SOCK_STREAM));
  const sockaddr_in address = addressOf(tcp);
  timesOut(true, tcp, tcpSocket(run), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const UnixListener local(run, SOCK_STREAM, 4);
  timesOut(false, local.fd, run.keep(run.make.socket(AF_UNIX, SOCK_STREAM, 0)), local.to(), local.size);
}

void sendTimeoutIsHandedDown(Run& run) {
  const int listener = run.keep(boundSocket(run.make, SOCK_STREAM));
  setTimeout(run.call, listener, SO_SNDTIMEO, 20'000);
  const int client = tcpSocket(run);
  run.got("connect", connectTo(run.call, client, addressOf(listener)));
  const int fd = run.keep(run.call.accept(listener, nullptr, nullptr));
  const std::vector<char> bytes(1 << 20);
  ssize_t n = 1;
  for (int i = 0; i < 100 && n > 0; ++i) n = run.call.write(fd, bytes.data(), bytes.size());
  run.got("write, in the end", n);
}

void acceptLater(Run& run) {
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    const UnixListener listener(run, type, 4);
    run.later([=](const Calls& libc) {
      const int fd = libc.socket(AF_UNIX, type, 0);
      libc.connect(fd, listener.to(), listener.size);
      libc.write(fd, "hello", 5);
      libc.close(fd);
    });
    const int fd = run.keep(run.call.accept(listener.fd, nullptr, nullptr));
    char buffer[8] = {};
    run.got("read", run.call.read(fd, buffer, sizeof buffer));
    run.note("read", buffer);
    run.got("read", run.call.read(fd, buffer, sizeof buffer));
    run.join();
  }
}

void acceptOnAListenerThatIsShutDown(Run& run) {
  const int listener = run.keep(boundSocket(run.make, SOCK_STREAM));
  run.later([=](const Calls&) { ::shutdown(listener, SHUT_RD); });
  run.got("accept", run.call.accept(listener, nullptr, nullptr));
  run.join();
}

// FM-05
void acceptOfAConnectionThatWasReset(Run& run) {
  const int listener = run.keep(boundSocket(run.make, SOCK_STREAM));
  const int client = tcpSocket(run);
  run.got("connect", connectTo(run.call, client, addressOf(listener)));
  run.got("send", run.call.send(client, "data", 4, 0));
  resetOnClose(client);
  run.close(client);
  const int fd = run.keep(run.call.accept(listener, nullptr, nullptr));
  char buffer[8] = {};
  for (int i = 0; i < 3; ++i) run.got("read", run.call.read(fd, buffer, sizeof buffer));
  run.got("write", run.call.write(fd, "x", 1));
}

// ---- poll. --------------------------------------------------------------------------------------------------------------------

void polls(Run& run, std::vector<pollfd> fds, int timeout_ms) {
  for (pollfd& one : fds) one.revents = 0x5555;
  run.got("poll", run.call.poll(fds.data(), fds.size(), timeout_ms));
  for (const pollfd& one : fds) run.got("revents", one.revents);
}

void pollOfNothing(Run& run) {
  polls(run, {}, 0);
  polls(run, {}, 10);
  polls(run, {{-1, POLLIN, 0}}, 10);
  polls(run, {{-7, POLLIN, 0}, {-1, POLLOUT, 0}}, 10);
}

void pollOfWrongThings(Run& run) {
  const Ends ends = run.keep(makeUnix(run.make, SOCK_STREAM));
  const int closed = run.make.dup(ends[0]);
  run.got("close", run.call.close(closed));
  polls(run, {{closed, POLLIN, 0}}, -1);
  polls(run, {{ends[0], POLLIN, 0}, {closed, POLLIN, 0}, {-1, POLLIN, 0}}, -1);
  if (!kKernelSeesPointersFirst) return;
  run.got("bad array", run.call.poll(static_cast<pollfd*>(badPointer()), 1, 10));
  run.got("too many", run.call.poll(nullptr, opaque<nfds_t>(1) << 30, 10));
  run.got("the kernel counts with 32 bits", run.call.poll(nullptr, opaque<nfds_t>(1) << 40, 10));
}

void pollOfWhatIsAlwaysReady(Run& run) {
  const int file = run.keep(::open("/tmp", O_TMPFILE | O_RDWR, 0600));
  const int null = run.keep(::open("/dev/null", O_RDWR));
  polls(run, {{file, POLLIN | POLLOUT, 0}}, -1);
  polls(run, {{null, POLLIN | POLLOUT, 0}}, -1);
}

void pollTimesOut(Run& run) {
  const Ends ends = run.keep(makeUnix(run.make, SOCK_STREAM));
  polls(run, {{ends[0], POLLIN, 0}, {ends[1], POLLIN, 0}}, 10);
  polls(run, {{ends[0], 0, 0}}, 10);
  polls(run, {{ends[0], POLLPRI | POLLRDHUP, 0}, {ends[0], POLLIN, 0}}, 10);
}

void pollUntilReadable(Run& run) {
  const std::vector<Ends> all = {makeUnix(run.make, SOCK_STREAM), makeUnix(run.make, SOCK_DGRAM), makeTcp(run.make),
                                 makeUdp(run.make), makePipe(run.make)};
  for (const Ends made : all) {
    const Ends ends = run.keep(made);
    for (const short events : {POLLIN, POLLRDNORM, POLLIN | POLLRDNORM | POLLPRI}) {
      run.later([=](const Calls& libc) { libc.write(ends[1], "x", 1); });
      polls(run, {{-1, POLLIN, 0}, {ends[0], events, 0}, {ends[0], events, 0}}, -1);
      char byte;
      run.got("read", run.call.read(ends[0], &byte, 1));
      run.join();
    }
  }
}

void pollUntilWritable(Run& run) {
  for (const short events : {POLLOUT, POLLWRNORM, POLLIN | POLLOUT | POLLWRNORM}) {
    const Ends ends = run.keep(makeUnix(run.make, SOCK_STREAM));
    setBuffer(ends[1], SO_SNDBUF, 4096);
    const std::vector<char> bytes(1000);
    while (libcCalls().send(ends[1], bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) continue;
    run.later([=](const Calls& libc) {
      char sink[4096];
      while (libc.recv(ends[0], sink, sizeof sink, MSG_DONTWAIT) > 0) continue;
    });
    polls(run, {{ends[1], events, 0}}, -1);
    run.join();
  }
}

void pollUntilTheEnd(Run& run) {
  for (const short events : {0, POLLIN, POLLOUT, POLLIN | POLLRDHUP, int{POLLRDHUP}}) {
    const auto until = [&](Ends ends, void (*end)(int)) {
      run.later([=](const Calls&) { end(ends[1]); });
      run.join();  // what is reported may come in two steps
      polls(run, {{ends[0], events, 0}}, -1);
    };
    const auto hang_up = [](int fd) { ::shutdown(fd, SHUT_RDWR); };
    until(run.keep(makeUnix(run.make, SOCK_STREAM)), hang_up);
    if (events != 0 && events != POLLOUT) until(run.keep(makeTcp(run.make)), hang_up);
  }
  const Ends ends = run.keep(makePipe(run.make));
  const int writer = libcCalls().dup(ends[1]);
  run.close(ends[1]);
  run.later([=](const Calls& libc) { libc.close(writer); });
  polls(run, {{ends[0], 0, 0}}, -1);
}

void pollOfAListener(Run& run) {
  const UnixListener listener(run, SOCK_STREAM, 4);
  const int fd = run.keep(libcCalls().socket(AF_UNIX, SOCK_STREAM, 0));
  run.later([=](const Calls& libc) { libc.connect(fd, listener.to(), listener.size); });
  polls(run, {{listener.fd, POLLIN, 0}}, -5);
}

void pollOfUncommonThings(Run& run) {
  const int event = run.keep(::eventfd(0, 0));
  const int epoll = run.keep(::epoll_create1(0));
  epoll_event in{};
  in.events = EPOLLIN;
  run.got("epoll_ctl", ::epoll_ctl(epoll, EPOLL_CTL_ADD, event, &in));
  polls(run, {{event, POLLIN, 0}, {epoll, POLLIN, 0}}, 10);
  run.later([=](const Calls& libc) {
    const uint64_t one = 1;
    libc.write(event, &one, sizeof one);
  });
  polls(run, {{epoll, POLLIN, 0}}, -1);
  run.join();
  polls(run, {{event, POLLIN, 0}, {epoll, POLLIN, 0}}, -1);
}

// ---- Out-of-band bytes, control messages, addresses. --------------------------------------------------------------------------

void outOfBand(Run& run) {
  const Ends ends = run.keep(makeTcp(run.make));
  char buffer[16] = {};
  run.got("none", run.call.recv(ends[0], buffer, 1, MSG_OOB));
  run.later([=](const Calls& libc) {
    libc.send(ends[1], "ab", 2, 0);
    libc.send(ends[1], "!", 1, MSG_OOB);
    libc.send(ends[1], "cd", 2, 0);
  });
  polls(run, {{ends[0], POLLPRI, 0}}, -1);
  run.join();
  run.got("up to the mark", run.call.recv(ends[0], buffer, sizeof buffer, 0));
  run.got("urgent", run.call.recv(ends[0], buffer, 1, MSG_OOB));
  run.note("urgent", std::string(buffer, 1));
  run.got("after the mark", run.call.read(ends[0], buffer, sizeof buffer));
  run.got("taken", run.call.recv(ends[0], buffer, 1, MSG_OOB));
}

/// The urgent pointer has come, its byte has not: the window is full. This never waits, not even on a blocking socket.
void outOfBandThatIsStillUnderWay(Run& run) {
  const int listener = run.keep(boundSocket(run.make, SOCK_STREAM));
  setBuffer(listener, SO_RCVBUF, 2048);
  const int client = tcpSocket(run);
  run.got("connect", connectTo(run.call, client, addressOf(listener)));
  const int server = run.keep(run.call.accept(listener, nullptr, nullptr));
  const std::vector<char> bytes(1 << 20);
  while (libcCalls().send(client, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) continue;
  libcCalls().send(client, "!", 1, MSG_OOB | MSG_DONTWAIT);
  for (int i = 0; i < 3; ++i) {
    char byte;
    run.got("recv", run.call.recv(server, &byte, 1, MSG_OOB));
  }
}

void descriptorsInAMessage(Run& run) {
  for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
    const Ends ends = run.keep(makeUnix(run.make, type));
    const Ends sent = run.keep(makePipe(run.make));
    const auto message = [](iovec* part, char* control, size_t size) {
      msghdr header{};
      header.msg_iov = part;
      header.msg_iovlen = 1;
      header.msg_control = control;
      header.msg_controllen = size;
      return header;
    };
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    char byte = 'd';
    iovec part{&byte, 1};
    msghdr out = message(&part, control, sizeof control);
    cmsghdr* const rights = CMSG_FIRSTHDR(&out);
    *rights = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(rights), &sent[1], sizeof(int));
    for (const bool room : {true, false}) {
      run.got("sendmsg", run.call.sendmsg(ends[1], &out, 0));
      alignas(cmsghdr) char got[CMSG_SPACE(sizeof(int))] = {};
      msghdr in = message(&part, got, room ? sizeof got : 0);
      run.got("recvmsg", run.call.recvmsg(ends[0], &in, MSG_CMSG_CLOEXEC));
      run.note("flags", std::to_string(in.msg_flags));
      run.note("control bytes", std::to_string(in.msg_controllen));
      if (!room) continue;
      int received = -1;
      std::memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&in)), sizeof received);
      run.keep(received);
      run.later([=](const Calls& libc) { libc.write(received, "through", 7); });
      char buffer[8] = {};
      run.got("read", run.call.read(sent[0], buffer, sizeof buffer));
      run.note("read", buffer);
      run.join();
    }
    std::memset(CMSG_DATA(rights), 0xff, sizeof(int));
    run.got("sendmsg of no descriptor", run.call.sendmsg(ends[1], &out, 0));
  }
}

void addressesOfDatagrams(Run& run) {
  const int a = run.keep(boundSocket(run.make, SOCK_DGRAM));
  const int b = run.keep(boundSocket(run.make, SOCK_DGRAM));
  const sockaddr_in to = addressOf(a);
  run.got("sendto", run.call.sendto(b, "hello", 5, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to));
  run.got("sendto nobody", run.call.sendto(b, "hello", 5, 0, nullptr, 0));
  run.got("send", run.call.send(b, "hello", 5, 0));
  run.got("write", run.call.write(b, "hello", 5));
  run.got("sendto a bad address", run.call.sendto(b, "x", 1, 0, static_cast<sockaddr*>(badPointer()), sizeof to));
  sockaddr_in from{};
  socklen_t size = sizeof from;
  char buffer[8] = {};
  run.got("recvfrom", run.call.recvfrom(a, buffer, sizeof buffer, 0, reinterpret_cast<sockaddr*>(&from), &size));
  run.note("from", from.sin_port == addressOf(b).sin_port ? "b" : "somebody");
  run.note("size", std::to_string(size));
}

void aDatagramThatNobodyTakes(Run& run) {
  const int nobody = boundSocket(run.make, SOCK_DGRAM);
  const sockaddr_in address = addressOf(nobody);
  const int fd = run.keep(run.make.socket(AF_INET, SOCK_DGRAM, 0));
  run.got("connect", connectTo(run.call, fd, address));
  run.got("close", run.call.close(nobody));
  run.later([=](const Calls& libc) { libc.send(fd, "x", 1, 0); });
  char byte;
  run.got("recv", run.call.recv(fd, &byte, 1, 0));
  run.join();
}

/// The receiver is full of other senders' messages: nothing tells this sender's socket when there is room again.
void aDatagramToAFullReceiver(Run& run) {
  const UnixListener receiver(run, SOCK_DGRAM, -1);
  const int rival = run.keep(run.make.socket(AF_UNIX, SOCK_DGRAM, 0));
  const auto fill = [&] {
    while (libcCalls().sendto(rival, "r", 1, MSG_DONTWAIT, receiver.to(), receiver.size) == 1) continue;
  };
  const int fd = run.keep(run.make.socket(AF_UNIX, SOCK_DGRAM, 0));
  fill();
  run.got("MSG_DONTWAIT", run.call.sendto(fd, "x", 1, MSG_DONTWAIT, receiver.to(), receiver.size));
  const auto empty = [=](const Calls& libc) {
    char byte;
    while (libc.recv(receiver.fd, &byte, 1, MSG_DONTWAIT) == 1) continue;
  };
  run.later(empty);
  run.got("sendto", run.call.sendto(fd, "x", 1, 0, receiver.to(), receiver.size));
  run.join();
  setTimeout(run.call, fd, SO_SNDTIMEO, 20'000);
  fill();
  run.got("sendto, timed", run.call.sendto(fd, "x", 1, 0, receiver.to(), receiver.size));
  setTimeout(run.call, fd, SO_SNDTIMEO, 0);
  run.got("connect", run.call.connect(fd, receiver.to(), receiver.size));
  run.later(empty);
  run.got("write", run.call.write(fd, "x", 1));
  run.join();
}

void lowWaterMark(Run& run) {
  const Ends ends = run.keep(makeTcp(run.make));
  const int mark = 6;
  run.got("SO_RCVLOWAT", run.call.setsockopt(ends[0], SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark));
  run.later([=](const Calls& libc) {
    libc.write(ends[1], "four", 4);
    libc.usleep(10'000);
    libc.write(ends[1], "and more", 8);  // enough alone: the kernel does not count what a late receiver has copied before
  });
  char buffer[16] = {};
  run.got("recv", run.call.recv(ends[0], buffer, sizeof buffer, 0));
  run.join();
}

// ---- Creators, copies, flags, sleeps. -----------------------------------------------------------------------------------------

void creatorsThatFail(Run& run) {
  run.got("socket", run.make.socket(AF_INET, 77, 0));
  run.got("socket", run.make.socket(9999, SOCK_STREAM, 0));
  int fds[2] = {-5, -5};
  run.got("socketpair", run.make.socketpair(AF_INET, SOCK_STREAM, 0, fds));
  run.got("socketpair", run.make.socketpair(AF_UNIX, SOCK_STREAM, 0, static_cast<int*>(badPointer())));
  run.got("pipe2", run.make.pipe2(fds, O_APPEND));
  run.got("pipe", run.make.pipe(static_cast<int*>(badPointer())));
}

void creatorsWithFlags(Run& run) {
  int fds[2];
  char byte;
  run.got("pipe2", run.make.pipe2(fds, O_NONBLOCK | O_CLOEXEC));
  const Ends pipe = run.keep({fds[0], fds[1]});
  noteFlags(run, pipe[0]);
  run.got("read", run.call.read(pipe[0], &byte, 1));
  run.got("socketpair", run.make.socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
  const Ends pair = run.keep({fds[0], fds[1]});
  noteFlags(run, pair[1]);
  run.got("read", run.call.read(pair[1], &byte, 1));
}

void copies(Run& run) {
  const Ends ends = run.keep(makeUnix(run.make, SOCK_STREAM));
  const int target = run.keep(run.make.dup(ends[1]));
  run.note("dup2 onto itself", run.call.dup2(ends[0], ends[0]) == ends[0] ? "it" : "not");
  run.got("dup3 onto itself", run.call.dup3(ends[0], ends[0], 0));
  run.got("dup2 of nothing", run.call.dup2(-1, target));
  run.got("dup2 to a negative", run.call.dup2(ends[0], -1));
  run.got("dup2 beyond the limit", run.call.dup2(ends[0], INT32_MAX));
  run.got("dup3 with unknown flags", run.call.dup3(ends[0], target, O_APPEND));
  run.got("F_DUPFD beyond the limit", run.call.fcntl(ends[0], F_DUPFD, INT32_MAX));
  run.note("dup3", run.call.dup3(ends[0], target, O_CLOEXEC) == target ? "it" : "not");
  run.got("F_GETFD", run.call.fcntl(target, F_GETFD));
  const int copy = run.keep(run.call.fcntl(ends[0], F_DUPFD_CLOEXEC, 200));
  run.note("F_DUPFD_CLOEXEC", std::to_string(copy));
  run.later([=](const Calls& libc) {
    for (int i = 0; i < 3; ++i) libc.send(ends[1], "x", 1, 0);
  });
  char byte;
  for (const int fd : {ends[0], target, copy}) run.got("read", run.call.read(fd, &byte, 1));
}

// CD-H13
void commandsPassThrough(Run& run) {
  const Ends ends = run.keep(makePipe(run.make));
  run.got("unknown fcntl", run.call.fcntl(ends[0], 7777, 1));
  run.got("F_SETPIPE_SZ", run.call.fcntl(ends[0], F_SETPIPE_SZ, 8192));
  run.got("F_GETPIPE_SZ", run.call.fcntl(ends[0], F_GETPIPE_SZ));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_len = 5;
  const int file = run.keep(::open("/tmp", O_TMPFILE | O_RDWR, 0600));
  run.got("F_SETLK", run.call.fcntl(file, F_SETLK, &lock));
  run.got("F_GETLK", run.call.fcntl(file, F_GETLK, &lock));
  run.got("F_SETLK, bad pointer", run.call.fcntl(file, F_SETLK, badPointer()));
  run.got("F_SETFL", run.call.fcntl(ends[0], F_SETFL, O_NONBLOCK | O_ASYNC));
  run.got("F_GETFL", run.call.fcntl(ends[0], F_GETFL));
  int waiting = -1;
  libcCalls().write(ends[1], "abc", 3);
  run.got("FIONREAD", run.call.ioctl(ends[0], FIONREAD, &waiting));
  run.got("waiting", waiting);
  run.got("unknown ioctl", run.call.ioctl(ends[0], 0x7777, &waiting));
  run.got("FIONBIO, bad pointer", run.call.ioctl(ends[0], FIONBIO, badPointer()));
}

// CD-H9
void sleepsOfNoLength(Run& run) {
  const auto sleeps = [&](const char* what, time_t seconds, long ns) {
    timespec rest{77, 77};
    const timespec duration{seconds, ns};
    run.got(what, run.call.nanosleep(&duration, &rest));
    run.got("rest", rest.tv_sec);
  };
  sleeps("zero", 0, 0);
  sleeps("one", 0, 1);
  sleeps("nanoseconds < 0", 0, -1);
  sleeps("nanoseconds too many", 0, 1'000'000'000);
  sleeps("two seconds as nanoseconds", 0, 2'000'000'000);
  sleeps("seconds < 0", -1, 0);
  run.got("usleep", run.call.usleep(0));
  if (kKernelSeesPointersFirst) run.got("null", run.call.nanosleep(nullptr, nullptr));
}

// FM-25
void aLargeNumber(Run& run) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int number = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 20)) - 1;
  const Ends ends = run.keep(makeUnix(run.make, SOCK_STREAM));
  const int copy = run.keep(run.call.dup2(ends[0], number));
  run.note("dup2", copy == number ? "it" : "not");
  run.later([=](const Calls& libc) { libc.write(ends[1], "x", 1); });
  char byte;
  run.got("read", run.call.read(copy, &byte, 1));
}

std::vector<Case> socketCases() {
  return {
      {"EveryCallOnAClosedNumber", aClosedNumber},
      {"EveryCallOnANegativeNumber", aNegativeNumber},
      {"EveryCallOnAnAbsurdNumber", anAbsurdNumber},
      {"EveryCallOnARegularFile", aRegularFile},
      {"EveryCallOnADirectory", aDirectory},
      {"EveryCallOnDevices", devices},
      {"EveryCallOnAnEpoll", anEpoll},
      {"EveryCallOnAPipe", aPipe},
      {"ReadsAndWritesAnEventfd", anEventfd},
      {"ReadsAndWritesAFifoByName", aFifoByName},
      {"ReadsAFileBehindANumberThatStdioClosed", aNumberThatStdioClosed},
      {"ConnectSucceedsThenIsConnected", connectSucceeds},
      {"ConnectRefusedThenTriedAgain", connectRefused},
      {"ConnectNonblocking", connectNonblocking},
      {"ConnectNonblockingRefused", connectNonblockingRefused},
      {"ConnectWithWrongArguments", connectWithWrongArguments},
      {"ConnectOfADatagramSocket", connectOfADatagramSocket},
      {"ConnectOverUnix", connectOverUnix},
      {"ConnectOverUnixNonblockingByACopy", connectOverUnixNonblockingByACopy},
      {"ConnectOverUnixToAListenerThatEnds", connectOverUnixToAListenerThatEnds},
      {"AcceptOnWhatDoesNotListen", acceptOnWhatDoesNotListen},
      {"AcceptTellsThePeer", acceptTellsThePeer},
      {"AcceptWithFlags", acceptWithFlags},
      {"AcceptTimesOutAndHandsTheTimeoutDown", acceptTimesOutAndHandsTheTimeoutDown},
      {"AcceptHandsTimeoutsDownByFamily", acceptHandsDownByFamily},
      {"AcceptHandsTheSendTimeoutDown", sendTimeoutIsHandedDown},
      {"AcceptLater", acceptLater},
      {"AcceptOnAListenerThatIsShutDown", acceptOnAListenerThatIsShutDown},
      {"AcceptOfAConnectionThatWasReset", acceptOfAConnectionThatWasReset},
      {"PollOfNothing", pollOfNothing},
      {"PollOfWrongThings", pollOfWrongThings},
      {"PollOfWhatIsAlwaysReady", pollOfWhatIsAlwaysReady},
      {"PollTimesOut", pollTimesOut},
      {"PollUntilReadable", pollUntilReadable},
      {"PollUntilWritable", pollUntilWritable},
      {"PollUntilTheEnd", pollUntilTheEnd},
      {"PollOfAListener", pollOfAListener},
      {"PollOfUncommonThings", pollOfUncommonThings},
      {"OutOfBand", outOfBand},
      {"OutOfBandStillUnderWay", outOfBandThatIsStillUnderWay},
      {"DescriptorsInAMessage", descriptorsInAMessage},
      {"AddressesOfDatagrams", addressesOfDatagrams},
      {"DatagramThatNobodyTakes", aDatagramThatNobodyTakes},
      {"DatagramToAFullReceiver", aDatagramToAFullReceiver},
      {"LowWaterMark", lowWaterMark},
      {"CreatorsThatFail", creatorsThatFail},
      {"CreatorsWithFlags", creatorsWithFlags},
      {"Copies", copies},
      {"CommandsPassThrough", commandsPassThrough},
      {"SleepsOfNoLength", sleepsOfNoLength},
      {"ALargeNumber", aLargeNumber},
  };
}

class SocketTest : public SameAsLibc {};

// HA-5, FM-12, FM-16, FM-19, FM-24
TEST_P(SocketTest, ResultErrnoAndData) { compare(GetParam()); }

INSTANTIATE_TEST_SUITE_P(SameAsLibc, SocketTest, testing::ValuesIn(socketCases()), nameOf);

}  // namespace
}  // namespace sylar::test
