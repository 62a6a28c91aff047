#include "tests/hook/differential/perform.h"

#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>

namespace sylar::test::differential {
namespace {

constexpr int kSmallBuffer = 4096;

std::string told(ssize_t result) {
  const int error = errno;
  return std::to_string(result) + (result == -1 ? std::string(" ") + ::strerrorname_np(error) : "");
}

/// The bytes in short: the first ones, and a sum of all.
std::string told(const char* bytes, size_t size) {
  uint64_t sum = 14695981039346656037u;
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    sum = (sum ^ static_cast<unsigned char>(bytes[i])) * 1099511628211u;
    if (i < 8) text += bytes[i];
  }
  return size == 0 ? "" : " '" + text + "' sum " + std::to_string(sum % 1'000'000);
}

/// Bytes that tell from which step they come, and where in it they were.
std::string bytesOf(const Work& work) {
  std::string bytes(static_cast<size_t>(work.step.size), ' ');
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>('a' + (static_cast<size_t>(work.index) * 7 + i * 5 + i / 26) % 26);
  return bytes;
}

Ends makeFifo(const Calls& make) {
  static std::atomic<int> count{0};
  const std::string path = "/tmp/sylar-differential-" + std::to_string(::getpid()) + "-" + std::to_string(count.fetch_add(1));
  EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
  // libc's open makes them unknown to the hooks, as descriptors of a library that is not hooked are.
  const auto open = reinterpret_cast<int (*)(const char*, int, ...)>(
      &make.read == &libcCalls().read ? ::dlsym(::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "open")
                                      : reinterpret_cast<void*>(&::open));
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  const int writer = open(path.c_str(), O_WRONLY);
  make.fcntl(reader, F_SETFL, 0);
  ::unlink(path.c_str());
  return {reader, writer};
}

/// A listener that is full with one connection.
int makeUnixListener(const Calls& make) {
  const int fd = make.socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un any{.sun_family = AF_UNIX, .sun_path = {}};
  EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any.sun_family), 0);  // to a free name
  EXPECT_EQ(::listen(fd, 0), 0);
  return fd;
}

/// Lets small writes leave at once. Otherwise they wait until the peer has acknowledged those before, which is a matter of time.
Ends withoutDelay(Ends ends) {
  for (const int fd : ends) {
    const int on = 1;
    EXPECT_EQ(::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
  }
  return ends;
}

Ends makeEnds(const Calls& make, Kind kind) {
  switch (kind) {
    case Kind::kTcp: return withoutDelay(makeTcp(make));
    case Kind::kUnixStream: return makeUnix(make, SOCK_STREAM);
    case Kind::kUnixDatagram: return makeUnix(make, SOCK_DGRAM);
    case Kind::kUnixSeqpacket: return makeUnix(make, SOCK_SEQPACKET);
    case Kind::kPipe: return makePipe(make);
    case Kind::kFifo: return makeFifo(make);
    case Kind::kEventfd: return {static_cast<int>(::syscall(SYS_eventfd2, 0, 0)), -1};
    case Kind::kListener: return {boundSocket(make, SOCK_STREAM), -1};
    case Kind::kUnixListener: return {makeUnixListener(make), -1};
  }
  return {-1, -1};
}

/// Buffers of a known size, so that a long write waits at the same byte each time.
void bound(const Ends& ends, Kind kind) {
  if (kind == Kind::kPipe || kind == Kind::kFifo) ::syscall(SYS_fcntl, ends[0], F_SETPIPE_SZ, kSmallBuffer);
  if (kind == Kind::kUnixStream) {
    for (const int end : ends) ::syscall(SYS_setsockopt, end, SOL_SOCKET, SO_SNDBUF, &kSmallBuffer, sizeof kSmallBuffer);
  }
}

/// Puts a descriptor into a message.
void addRight(msghdr& message, char* control, size_t size, int fd) {
  message.msg_control = control;
  message.msg_controllen = size;
  *CMSG_FIRSTHDR(&message) = {CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
  std::memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof fd);
}

void receiveMessage(Work& work, const Calls& call, std::string& room) {
  const size_t half = room.size() / 2;
  iovec parts[2] = {{room.data(), half}, {room.data() + half, room.size() - half}};
  alignas(cmsghdr) char control[64] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = call.recvmsg(work.fd, &message, work.step.flags);
  work.gave = told(n);
  if (n < 0) return;
  work.gave += " flags " + std::to_string(message.msg_flags) + " control " + std::to_string(message.msg_controllen);
  for (const cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr && one->cmsg_len == CMSG_LEN(sizeof(int)); one = nullptr) {
    int passenger;
    std::memcpy(&passenger, CMSG_DATA(one), sizeof passenger);
    call.close(passenger);
  }
}

ssize_t sendMessage(const Work& work, const Calls& call, std::string& bytes) {
  iovec parts[2] = {{bytes.data(), bytes.size() / 3}, {bytes.data() + bytes.size() / 3, bytes.size() - bytes.size() / 3}};
  if (work.step.op == Op::k_writev) return call.writev(work.fd, parts, 2);
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (work.step.op == Op::k_sendrights) addRight(message, control, sizeof control, STDERR_FILENO);
  return call.sendmsg(work.fd, &message, work.step.flags);
}

void transferIn(Work& work, const Calls& call) {
  std::string room(static_cast<size_t>(work.step.size), '.');
  const size_t half = room.size() / 2;
  const iovec parts[2] = {{room.data(), half}, {room.data() + half, room.size() - half}};
  ssize_t n = 0;
  switch (work.step.op) {
    case Op::k_read: n = call.read(work.fd, room.data(), room.size()); break;
    case Op::k_readv: n = call.readv(work.fd, parts, 2); break;
    case Op::k_recv: n = call.recv(work.fd, room.data(), room.size(), work.step.flags); break;
    case Op::k_recvfrom: {
      sockaddr_un from{};
      socklen_t size = sizeof from;
      n = call.recvfrom(work.fd, room.data(), room.size(), work.step.flags, reinterpret_cast<sockaddr*>(&from), &size);
      work.gave = told(n) + (n >= 0 ? " address of " + std::to_string(size) : "");
      break;
    }
    default: receiveMessage(work, call, room);
  }
  if (work.gave.empty()) work.gave = told(n);
  work.gave += told(room.data(), room.size());  // all of it: nothing else may be written
}

void transferOut(Work& work, const Calls& call) {
  std::string bytes = bytesOf(work);
  ssize_t n = 0;
  switch (work.step.op) {
    case Op::k_write: n = call.write(work.fd, bytes.data(), bytes.size()); break;
    case Op::k_send: n = call.send(work.fd, bytes.data(), bytes.size(), work.step.flags); break;
    default: n = sendMessage(work, call, bytes);
  }
  work.gave = told(n);
}

void eventfdTransfer(Work& work, const Calls& call) {
  uint64_t value = static_cast<uint64_t>(work.step.size);
  const bool reads = work.step.op == Op::k_read;
  const ssize_t n = reads ? call.read(work.fd, &value, sizeof value) : call.write(work.fd, &value, sizeof value);
  work.gave = told(n) + (reads ? " value " + std::to_string(value) : "");
}

void pollBoth(Work& work, const Calls& call) {
  pollfd fds[2] = {{work.fd, static_cast<short>(work.step.flags), 0}, {work.other, POLLIN, 0}};
  const int n = call.poll(fds, 2, work.step.timeout);
  work.gave = told(n) + " revents " + std::to_string(fds[0].revents) + " " + std::to_string(fds[1].revents);
}

void selectOne(Work& work, const Calls& call) {
  fd_set reads, writes;
  FD_ZERO(&reads);
  FD_ZERO(&writes);
  if ((work.step.flags & POLLIN) != 0) FD_SET(work.fd, &reads);
  if ((work.step.flags & POLLOUT) != 0) FD_SET(work.fd, &writes);
  timeval timeout{0, work.step.timeout * 1000};
  const int n = call.select(work.fd + 1, &reads, &writes, nullptr, work.step.timeout < 0 ? nullptr : &timeout);
  work.gave = told(n) + " sets " + std::to_string(FD_ISSET(work.fd, &reads)) + " " + std::to_string(FD_ISSET(work.fd, &writes));
  if (n == 0 && work.step.timeout >= 0) work.gave += " left " + std::to_string(timeout.tv_usec);
}

void epollOne(Work& work, const Calls& call) {
  const int epoll = ::epoll_create1(0);
  epoll_event event{};
  event.events = static_cast<uint32_t>(work.step.flags);
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, work.fd, &event);
  epoll_event got{};
  const int n = call.epoll_wait(epoll, &got, 1, work.step.timeout);
  work.gave = told(n) + " events " + std::to_string(got.events);
  call.close(epoll);
}

ssize_t connectTo(int listener, int fd, const Calls& call) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  EXPECT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  return call.connect(fd, reinterpret_cast<sockaddr*>(&address), size);
}

void connectNew(Work& work, const Calls& make, const Calls& call) {
  work.made[0] = make.socket(work.step.kind == Kind::kListener ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
  work.gave = told(connectTo(work.fd, work.made[0], call));
}

/// Sends the descriptor to itself.
void pass(Work& work, const Calls& make, const Calls& call) {
  const Ends ends = makeUnix(make, SOCK_STREAM);
  char byte = 'r';
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  addRight(message, control, sizeof control, work.fd);
  work.gave = told(call.sendmsg(ends[0], &message, 0)) + ", ";
  work.gave += told(call.recvmsg(ends[1], &message, 0));
  std::memcpy(&work.made[0], CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
  for (const int end : ends) call.close(end);
}

/// Reads until the writer that waits for room is through, and nothing is left.
void drain(Work& work, const Calls& call) {
  std::string all;
  char some[512];
  ssize_t n = 1;
  pollfd ready{work.fd, POLLIN, 0};
  while (n > 0) {
    const bool last = work.until == nullptr || work.until->load(std::memory_order_acquire);
    if (call.poll(&ready, 1, last ? 0 : 1) > 0) {
      n = call.read(work.fd, some, sizeof some);
      if (n > 0) all.append(some, static_cast<size_t>(n));
    } else if (last) {
      break;
    }
  }
  work.gave = told(std::min<ssize_t>(n, 1)) + " all " + std::to_string(all.size()) + told(all.data(), all.size());
}

}  // namespace

void perform(Work& work, const Calls& make, const Calls& call) {
  const Step& step = work.step;
  switch (step.op) {
    case Op::k_create:
      work.made = makeEnds(make, step.kind);
      bound(work.made, step.kind);
      work.gave = work.made[0] >= 0 ? "made" : "failed";
      break;
    case Op::k_dup: work.gave = (work.made[0] = call.dup(work.fd)) >= 0 ? "a copy" : told(-1); break;
    case Op::k_dup2: work.gave = call.dup2(work.fd, work.other) == work.other ? "onto it" : told(-1); break;
    case Op::k_close: work.gave = told(call.close(work.fd)); break;
    case Op::k_read:
    case Op::k_readv:
    case Op::k_recv:
    case Op::k_recvfrom:
    case Op::k_recvmsg: step.kind == Kind::kEventfd ? eventfdTransfer(work, call) : transferIn(work, call); break;
    case Op::k_write:
    case Op::k_writev:
    case Op::k_send:
    case Op::k_sendmsg:
    case Op::k_sendrights: step.kind == Kind::kEventfd ? eventfdTransfer(work, call) : transferOut(work, call); break;
    case Op::k_poll: pollBoth(work, call); break;
    case Op::k_select: selectOne(work, call); break;
    case Op::k_epoll: epollOne(work, call); break;
    case Op::k_shutdown: work.gave = told(::shutdown(work.fd, step.flags)); break;
    case Op::k_timeout: {
      const timeval timeout{0, step.timeout * 1000};
      work.gave = told(call.setsockopt(work.fd, SOL_SOCKET, step.flags, &timeout, sizeof timeout));
      break;
    }
    case Op::k_mark: work.gave = told(call.setsockopt(work.fd, SOL_SOCKET, SO_RCVLOWAT, &step.size, sizeof step.size)); break;
    case Op::k_nonblock: {
      int on = step.flags & 1;
      const int flags = call.fcntl(work.fd, F_GETFL, 0);
      work.gave = told(step.size % 2 == 0 ? call.ioctl(work.fd, FIONBIO, &on)
                                          : call.fcntl(work.fd, F_SETFL, on != 0 ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
      break;
    }
    case Op::k_connect: connectNew(work, make, call); break;
    case Op::k_reconnect: work.gave = told(connectTo(work.other, work.fd, call)); break;
    case Op::k_accept: work.gave = (work.made[0] = call.accept(work.fd, nullptr, nullptr)) >= 0 ? "accepted" : told(-1); break;
    case Op::k_pass: pass(work, make, call); break;
    case Op::k_available: {
      int bytes = -1;
      const int n = call.ioctl(work.fd, FIONREAD, &bytes);
      work.gave = told(n) + " bytes " + std::to_string(bytes);
      break;
    }
    case Op::k_drain: drain(work, call); break;
  }
  if (work.tells_flags && work.fd >= 0 && step.op != Op::k_close)
    work.gave += " nonblock " + std::to_string((call.fcntl(work.fd, F_GETFL, 0) & O_NONBLOCK) != 0);
}

}  // namespace sylar::test::differential
