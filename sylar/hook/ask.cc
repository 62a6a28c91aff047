#include "sylar/hook/ask.h"

#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <termios.h>

#include <cstdint>
#include <cstring>

#include "sylar/base/sys.h"

namespace sylar::ask {

bool isReady(int fd, short events) {
  pollfd one{fd, events, 0};
  const timespec zero{};
  return sys::call(SYS_ppoll, &one, 1, &zero, nullptr, 0) != 0;
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

bool hasEnded(int fd) { return isReady(fd, POLLRDHUP); }

bool tcpHasFailed(int fd) {
  // Asked under the socket's lock: a poll may see the error before the state, and takes ERR for things that are no failure.
  uint8_t state = 0;
  socklen_t size = sizeof state;  // tcp_info begins with it
  return sys::call(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, &state, &size) == 0 && state == TCP_CLOSE;
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
  // A futex call that does not wait looks at its timeout all the same.
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
  const long copied = sys::call(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0);
  if (copied == -ENOSYS || copied == -EPERM) {  // forbidden here: then we trust
    std::memcpy(to, from, size);
    return true;
  }
  return copied == static_cast<long>(size);
}

}  // namespace sylar::ask
