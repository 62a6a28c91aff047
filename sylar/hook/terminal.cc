#include "sylar/hook/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "sylar/base/sys.h"
#include "sylar/hook/ask.h"

namespace sylar::terminal {

Reading::Reading(int fd) : m_fd(fd) {
  if (ask::isMaster(fd)) return;  // asked for its mode, it tells the other side's
  termios mode{};
  if (sys::call(SYS_ioctl, fd, TCGETS, &mode) != 0 || (mode.c_lflag & ICANON) != 0) return;
  m_raw = true;
  m_min = mode.c_cc[VMIN];
  m_tenths = mode.c_cc[VTIME];
}

size_t Reading::bytesNow(IoCall& call, size_t size) {
  const size_t now = m_raw && size > 0 ? rawBytesNow(call, size) : size == 0 || ask::isReady(m_fd, POLLIN) ? SIZE_MAX : 0;
  if (now == 0) m_waited = true;
  return now;
}

size_t Reading::bytesAtLast() const {
  int waiting = 0;  // asked anew: somebody else may have read meanwhile
  return sys::call(SYS_ioctl, m_fd, FIONREAD, &waiting) == 0 ? static_cast<size_t>(waiting) : 0;
}

bool Reading::wasHungUp() const { return m_waited && ask::isReady(m_fd, 0); }

size_t Reading::rawBytesNow(IoCall& call, size_t size) {
  int waiting = 0;
  if (sys::call(SYS_ioctl, m_fd, FIONREAD, &waiting) != 0) return SIZE_MAX;
  const bool grown = static_cast<size_t>(waiting) > m_waiting;
  m_waiting = static_cast<size_t>(waiting);
  if (m_waiting >= std::max<size_t>(1, std::min<size_t>(m_min, size))) return m_waiting;  // exactly these: more would wait again
  const bool hung_up = ask::isReady(m_fd, 0);
  if (hung_up || (m_min == 0 && m_tenths == 0)) return SIZE_MAX;
  if (m_tenths > 0 && (m_min == 0 ? !m_timed : grown)) {
    m_timed = true;
    call.limit(Deadline::after(std::chrono::milliseconds(100) * m_tenths, waitClock()), ETIME);
  } else if (m_tenths == 0 && size < m_min) {
    call.askAgainLater();  // events come from m_min bytes on
  }
  return 0;
}

// Poll says that a terminal takes something, not how much, and output processing makes two bytes of one. So the write goes to
// an open file of our own, which may have O_NONBLOCK.
long writevNow(int fd, const iovec* parts, int count) {
  if (ask::isMaster(fd)) return -EOPNOTSUPP;  // it would open another pseudoterminal
  char path[32] = "/proc/self/fd/";
  *std::to_chars(path + std::strlen(path), path + sizeof path - 1, fd).ptr = '\0';
  const long own = sys::call(SYS_openat, AT_FDCWD, path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (own < 0) return -EOPNOTSUPP;
  const long written = sys::call(SYS_writev, own, parts, count);
  sys::closeFd(static_cast<int>(own));
  return written;
}

}  // namespace sylar::terminal
