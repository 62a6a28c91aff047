#include "sylar/hook/fd/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <algorithm>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/hook/core/probe.h"

namespace sylar::terminal {

Reading::Reading(IoCall& call) : m_call(call) {
  const int fd = call.fd();
  if (probe::isMaster(fd)) return;  // a master reports the other side's mode
  termios mode{};
  if (sys::call(SYS_ioctl, fd, TCGETS, &mode) != 0 || (mode.c_lflag & ICANON) != 0) return;
  m_raw = true;
  m_min = mode.c_cc[VMIN];
  m_tenths = mode.c_cc[VTIME];
}

size_t Reading::bytesNow(size_t size) {
  const size_t now = m_raw && size > 0 ? rawBytesNow(size) : size == 0 || probe::isReady(m_call.fd(), POLLIN) ? SIZE_MAX : 0;
  if (now == 0) m_waited = true;
  return now;
}

size_t Reading::bytesAtLast() const {
  int waiting = 0;  // asked again, because somebody else may have read since
  return sys::call(SYS_ioctl, m_call.fd(), FIONREAD, &waiting) == 0 ? static_cast<size_t>(waiting) : 0;
}

bool Reading::wasHungUp() const { return m_waited && probe::isReady(m_call.fd(), 0); }

size_t Reading::rawBytesNow(size_t size) {
  SYLAR_DCHECK(m_raw && size > 0);
  int waiting = 0;
  if (sys::call(SYS_ioctl, m_call.fd(), FIONREAD, &waiting) != 0) return SIZE_MAX;
  const bool grown = static_cast<size_t>(waiting) > m_waiting;
  m_waiting = static_cast<size_t>(waiting);
  // Exactly these, because a read of more would wait again.
  if (m_waiting >= std::max<size_t>(1, std::min<size_t>(m_min, size))) return m_waiting;
  const bool hung_up = probe::isReady(m_call.fd(), 0);
  if (hung_up || (m_min == 0 && m_tenths == 0)) return SIZE_MAX;
  if (m_tenths > 0 && (m_min == 0 ? !m_timed : grown)) {
    m_timed = true;
    m_call.limit(Deadline::after(std::chrono::milliseconds(100) * m_tenths, waitClock()), ETIME);
  } else if (m_tenths == 0 && size < m_min) {
    m_call.askAgainLater();  // events come from m_min bytes on
  }
  return 0;
}

}  // namespace sylar::terminal
