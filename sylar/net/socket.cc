#include "sylar/socket.h"

#include <netinet/tcp.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ostream>
#include <sstream>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/hook/table/duplicate.h"
#include "sylar/io/fd_table.h"
#include "sylar/net/socket_control.h"
#include "sylar/net/socket_use.h"
#include "sylar/net/unix_path.h"
#include "sylar/sched/waker.h"

namespace sylar {
namespace {

/// Ends the waits of fibers in `direction` of `fd`. Returns true if there was one.
bool cancelWaits(int fd, Direction direction) {
  Entry* const entry = FdTable::find(fd);
  if (entry == nullptr) return false;
  bool any = false;
  entry->dequeueIf(
      direction, [](const Entry::Waiter& waiter) { return waiter.fire == nullptr && waiter.waker.claim(WakeReason::kCanceled); },
      [&any](const Entry::Waiter& waiter) {  // a claimed waiter stays where it is until it is delivered
        any = true;
        Waker::deliver(*waiter.waker.core);
      });
  return any;
}

}  // namespace

Socket::ptr Socket::CreateTCP(const Address::ptr& address) {
  SYLAR_CHECK(address != nullptr);
  return std::make_shared<Socket>(address->getFamily(), TCP);
}
Socket::ptr Socket::CreateUDP(const Address::ptr& address) {
  SYLAR_CHECK(address != nullptr);
  return std::make_shared<Socket>(address->getFamily(), UDP);
}
Socket::ptr Socket::CreateTCPSocket() { return std::make_shared<Socket>(IPv4, TCP); }
Socket::ptr Socket::CreateUDPSocket() { return std::make_shared<Socket>(IPv4, UDP); }
Socket::ptr Socket::CreateTCPSocket6() { return std::make_shared<Socket>(IPv6, TCP); }
Socket::ptr Socket::CreateUDPSocket6() { return std::make_shared<Socket>(IPv6, UDP); }
Socket::ptr Socket::CreateUnixTCPSocket() { return std::make_shared<Socket>(UNIX, TCP); }
Socket::ptr Socket::CreateUnixUDPSocket() { return std::make_shared<Socket>(UNIX, UDP); }

Socket::Socket(int family, int type, int protocol) : m_family(family), m_type(type), m_protocol(protocol) { open(); }

Socket::Socket(const Socket& listener, int fd, Address::ptr peer)
    : m_life(0),
      m_fd(fd),
      m_family(listener.m_family),
      m_type(listener.m_type),
      m_protocol(listener.m_protocol),
      m_connected(true),
      m_ends{nullptr, std::move(peer)} {
  if (m_family == UNIX) return;  // there the kernel does not pass timeouts on
  for (const Side side : {kRecv, kSend}) m_timeouts[side] = listener.m_timeouts[side].load();
}

Socket::~Socket() {
  if (isValid()) ::close(m_fd.load());
}

// ---- Life. ------------------------------------------------------------------------------------------------------------------

/// Returns true if the socket is open. It gets a new descriptor only when no call on the old one is left.
bool Socket::open() {
  if (isValid()) return true;
  if (m_life.load(std::memory_order_acquire) != kClosed || m_fd.load(std::memory_order_acquire) >= 0) return fail(EBUSY);
  const int fd = ::socket(m_family, m_type | SOCK_CLOEXEC, m_protocol);
  if (fd < 0) return fail(errno);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (m_type == TCP && m_family != UNIX) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  for (const Side side : {kRecv, kSend}) {
    if (m_timeouts[side] >= 0) applyTimeout(fd, side, m_timeouts[side]);
  }
  setAddresses(nullptr, nullptr);
  m_connected.store(m_type == UDP, std::memory_order_relaxed);
  m_end.idle.store(false, std::memory_order_relaxed);
  m_end.ending.store(false, std::memory_order_relaxed);
  m_fd.store(fd, std::memory_order_relaxed);
  m_life.store(0, std::memory_order_release);
  return true;
}

bool Socket::enter(uint64_t call) const {
  uint64_t life = m_life.load(std::memory_order_relaxed);
  do {
    if ((life & kClosed) != 0) return fail(EBADF);
  } while (!m_life.compare_exchange_weak(life, life + call, std::memory_order_acquire, std::memory_order_relaxed));
  return true;
}

/// Returns false if this was the last call and closing the descriptor failed. Leaves errno alone.
bool Socket::leave(uint64_t call) const {
  if (m_life.fetch_sub(call, std::memory_order_acq_rel) != (call | kClosed)) return true;
  const int saved_errno = errno;
  const bool closed = ::close(m_fd.exchange(-1, std::memory_order_acq_rel)) == 0;
  errno = saved_errno;
  return closed;
}

bool Socket::close() {
  uint64_t life = m_life.load(std::memory_order_relaxed);
  do {
    if ((life & kClosed) != 0) return fail(EBADF);
  } while (!m_life.compare_exchange_weak(life, (life + kCall) | kClosed, std::memory_order_acq_rel, std::memory_order_relaxed));
  if (m_watched != nullptr) m_watched->entry.remove();
  setFile(nullptr);
  if (life != 0) breakOff(getSocket(), life >= kBlockingCall);
  return leave(kCall);
}

static bool listens(int fd) {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0 && value == 1;
}

/// Ends the calls that are running on `fd`. A socket that is neither connected nor listening replaces the descriptor: waiting
/// fibers are woken, and a thread that is about to call finds that socket. Threads that block in the kernel notice only a
/// shutdown. A shutdown also affects other processes that have the socket, so it is not made without need.
void Socket::breakOff(int fd, bool blocking_calls) {
  const int nothing = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool none_left = nothing < 0;
  if ((blocking_calls || (none_left && !listens(fd))) && !sys::inForkedChild()) ::shutdown(fd, SHUT_RDWR);
  if (none_left) {
    cancelWaits(fd, Direction::kRead);
    cancelWaits(fd, Direction::kWrite);
  } else {
    replaceAndEndCalls(nothing, fd);
    ::close(nothing);
  }
}

bool Socket::cancel(bool reads, bool writes) {
  const Use use(*this);
  if (!use) return false;
  const bool read = reads && cancelWaits(use.fd(), Direction::kRead);
  const bool write = writes && cancelWaits(use.fd(), Direction::kWrite);
  return read || write;
}
bool Socket::cancelRead() { return cancel(true, false); }
bool Socket::cancelWrite() { return cancel(false, true); }
bool Socket::cancelAll() { return cancel(true, true); }

bool Socket::shutdown(int how) {
  const Use use(*this);
  return use && (::shutdown(use.fd(), how) == 0 || fail(errno));
}

// ---- Results. ---------------------------------------------------------------------------------------------------------------

/// Records why a call failed. Returns false with errno.
bool Socket::fail(int error) const {
  const auto why = [error] {
    switch (error) {
      case EAGAIN:
      case ETIMEDOUT: return Failure::kTimeout;
      case ECANCELED: return Failure::kCanceled;
      case EBADF: return Failure::kClosed;
      default: return Failure::kOther;
    }
  };
  m_failure.store(why(), std::memory_order_relaxed);
  errno = error;
  return false;
}

/// Returns the result of a call. If the socket was closed during the call, any result without bytes becomes EBADF.
int Socket::result(ssize_t done) const {
  if (done > 0 && m_watched != nullptr) m_watched->entry.touch();
  if (done > 0 || (done == 0 && isValid())) return static_cast<int>(done);
  fail(isValid() ? errno : EBADF);
  return -1;
}

// ---- Options. ---------------------------------------------------------------------------------------------------------------

bool Socket::applyTimeout(int fd, Side side, int64_t ms) {
  const timeval value{ms < 0 ? 0 : ms / 1000, ms < 0 ? 0 : ms % 1000 * 1000};
  return ::setsockopt(fd, SOL_SOCKET, side == kRecv ? SO_RCVTIMEO : SO_SNDTIMEO, &value, sizeof value) == 0;
}

bool Socket::setTimeout(Side side, int64_t ms) {
  if (ms <= 0) ms = -1;
  if (m_timeouts[side].load(std::memory_order_relaxed) == ms) return true;
  if (const Use use(*this); use && !applyTimeout(use.fd(), side, ms)) return fail(errno);
  m_timeouts[side].store(ms, std::memory_order_relaxed);
  return true;
}

bool Socket::getOption(int level, int option, void* result, socklen_t* length) const {
  const Use use(*this);
  return use && (::getsockopt(use.fd(), level, option, result, length) == 0 || fail(errno));
}

bool Socket::setOption(int level, int option, const void* value, socklen_t length) {
  const Use use(*this);
  if (!use) return false;
  if (::setsockopt(use.fd(), level, option, value, length) != 0) return fail(errno);
  if (level == SOL_SOCKET && (option == SO_RCVTIMEO || option == SO_SNDTIMEO)) {
    const auto& given = *static_cast<const timeval*>(value);
    const int64_t ms = given.tv_sec * 1000 + (given.tv_usec + 999) / 1000;
    m_timeouts[option == SO_RCVTIMEO ? kRecv : kSend] = ms > 0 ? ms : -1;
  }
  return true;
}

int Socket::getError() const {
  int error = 0;
  return getOption(SOL_SOCKET, SO_ERROR, error) ? error : -1;
}

// ---- Addresses. -------------------------------------------------------------------------------------------------------------

void Socket::setAddresses(Address::ptr local, Address::ptr remote) {
  const Lock lock(m_lock);
  m_ends[kLocal].swap(local);
  m_ends[kRemote].swap(remote);
}

Address::ptr Socket::address(End end) const {
  {
    const Lock lock(m_lock);
    if (m_ends[end] != nullptr) return m_ends[end];
  }
  sockaddr_storage raw;
  socklen_t size = sizeof raw;
  const auto ask = end == kLocal ? ::getsockname : ::getpeername;
  const Use use(*this);
  Address::ptr found;
  if (use && ask(use.fd(), reinterpret_cast<sockaddr*>(&raw), &size) == 0) {
    found = Address::Create(reinterpret_cast<sockaddr*>(&raw), size);
  }
  if (found == nullptr) return std::make_shared<UnknownAddress>(m_family);
  const Lock lock(m_lock);
  m_ends[end] = found;
  return found;
}

Address::ptr Socket::getRemoteAddress() const { return address(kRemote); }
Address::ptr Socket::getLocalAddress() const { return address(kLocal); }

std::ostream& Socket::dump(std::ostream& os) const {
  os << "[Socket sock=" << getSocket() << " is_connected=" << isConnected() << " family=" << m_family << " type=" << m_type
     << " protocol=" << m_protocol;
  if (isValid()) os << " local_address=" << *getLocalAddress() << " remote_address=" << *getRemoteAddress();
  return os << "]";
}

std::string Socket::toString() const {
  std::ostringstream out;
  dump(out);
  return out.str();
}

std::ostream& operator<<(std::ostream& os, const Socket& socket) { return socket.dump(os); }

}  // namespace sylar
