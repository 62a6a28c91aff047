#include "sylar/hook/core/probe.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <termios.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "sylar/base/sys.h"

namespace sylar::probe {
namespace {

/// Returns the state of a TCP socket, or -1. The kernel reads it under the socket's lock. A poll may see an error before the
/// state changes, and reports ERR for things that are no failure.
int tcpState(int fd) {
  uint8_t state = 0;
  socklen_t size = sizeof state;  // tcp_info begins with it
  return sys::call(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, &state, &size) == 0 ? state : -1;
}

/// Polls one descriptor without waiting, and returns what is there.
short pollOne(int fd, short events) {
  pollfd one;
  long ready;
  do {
    one = {fd, events, 0};
    timespec zero{};
    ready = sys::call(SYS_ppoll, &one, 1, &zero, nullptr, 0);
  } while (ready == -EINTR);  // nothing is ready and a signal handler is to run, which is no answer
  return ready > 0 ? one.revents : short{0};
}

/// Returns true if the kernel's copy has succeeded. Where such copies are forbidden, copies here, and trusts the address.
bool copied(long result, void* to, const void* from, size_t size) {
  if (result != -ENOSYS && result != -EPERM) return result == static_cast<long>(size);
  std::memcpy(to, from, size);
  return true;
}

}  // namespace

bool isReady(int fd, short events) { return pollOne(fd, events) != 0; }
bool hasError(int fd) { return (pollOne(fd, 0) & POLLERR) != 0; }

bool isNonblocking(int fd) {
  const long flags = sys::call(SYS_fcntl, fd, F_GETFL, 0);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

int socketOption(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  return sys::call(SYS_getsockopt, fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

bool atUrgentMark(int fd) {
  int at_mark = 0;
  return sys::call(SYS_ioctl, fd, SIOCATMARK, &at_mark) == 0 && at_mark != 0;
}

bool hasBytes(int fd) {
  int count = 0;
  return sys::call(SYS_ioctl, fd, FIONREAD, &count) == 0 && count > 0;
}

bool hasEnded(int fd) { return isReady(fd, POLLRDHUP); }

bool isShutDown(int fd) { return (pollOne(fd, POLLRDHUP) & POLLRDHUP) != 0; }

bool tcpHasFailed(int fd) { return tcpState(fd) == TCP_CLOSE; }
bool isTcp(int fd) { return tcpState(fd) >= 0; }
bool tcpConnects(int fd) { return tcpState(fd) == TCP_SYN_SENT; }

bool isUnixConnection(int fd) {
  if (socketOption(fd, SO_DOMAIN) != AF_UNIX || socketOption(fd, SO_TYPE) == SOCK_DGRAM) return false;
  sockaddr_un peer;
  socklen_t size = sizeof peer;
  return sys::call(SYS_getpeername, fd, &peer, &size) == 0;  // fails while it is being connected
}

long unixWriteError(int fd) {
  if (const int error = socketOption(fd, SO_ERROR); error > 0) return -error;
  // On the other types an empty write is a message, and no write raises SIGPIPE.
  if (socketOption(fd, SO_TYPE) != SOCK_STREAM) return 0;
  return sys::call(SYS_sendto, fd, nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL, nullptr, 0);
}

bool isEventfd(int fd) {
  constexpr std::string_view kName = "anon_inode:[eventfd]";
  char name[kName.size() + 1];
  const long size = sys::call(SYS_readlink, pathOf(fd).data(), name, sizeof name);
  return size == static_cast<long>(kName.size()) && std::string_view(name, kName.size()) == kName;
}

bool isWaitable(int fd) {
  const long epoll = sys::call(SYS_epoll_create1, EPOLL_CLOEXEC);
  if (epoll < 0) return true;
  epoll_event nothing{};
  const bool refused = sys::call(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, fd, &nothing) == -EPERM;
  sys::closeFd(static_cast<int>(epoll));
  return !refused;
}

std::array<char, 32> pathOf(int fd) {
  std::array<char, 32> path{"/proc/self/fd/"};
  std::to_chars(path.data() + std::strlen(path.data()), path.data() + path.size() - 1, fd);
  return path;
}

bool isTerminal(int fd) {
  termios mode;
  return sys::call(SYS_ioctl, fd, TCGETS, &mode) == 0;
}

bool isMaster(int terminal) {
  int number = 0;
  return sys::call(SYS_ioctl, terminal, TIOCGPTN, &number) == 0;
}

int duration(const timespec* from, timespec* to) {
  // A futex call that does not wait still checks its timeout.
  static constexpr uint32_t kWord = 1;
  if (from == nullptr) return -EFAULT;
  const long result = sys::call(SYS_futex, &kWord, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, kWord + 1, from, nullptr, 0);
  if (result == -EFAULT || result == -EINVAL) return static_cast<int>(result);
  *to = *from;
  return 0;
}

bool copyIn(void* to, const void* from, size_t size) {
  const iovec local{to, size};
  const iovec remote{const_cast<void*>(from), size};
  return copied(sys::call(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0), to, from, size);
}

bool copyOut(void* to, const void* from, size_t size) {
  const iovec local{const_cast<void*>(from), size};
  const iovec remote{to, size};
  return copied(sys::call(SYS_process_vm_writev, getpid(), &local, 1, &remote, 1, 0), to, from, size);
}

}  // namespace sylar::probe
