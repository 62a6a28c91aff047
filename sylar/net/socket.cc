#include "sylar/socket.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ostream>
#include <sstream>
#include <typeinfo>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/hook.h"
#include "sylar/hook/core/wait_loop.h"
#include "sylar/hook/table/duplicate.h"
#include "sylar/io/fd_table.h"
#include "sylar/net/socket_control.h"
#include "sylar/net/unix_path.h"
#include "sylar/sched/waker.h"

namespace sylar {
namespace {

/// The most bytes that the kernel transfers in one call.
constexpr size_t kMost = 0x7ffff000;

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

msghdr messageOf(const iovec* buffers, size_t length) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(buffers);
  message.msg_iovlen = length;
  return message;
}

/// Returns true if the result of a transfer of all buffers fits an int. Otherwise errno is EINVAL.
bool fits(const iovec* buffers, size_t length) {
  size_t left = kMost;
  for (size_t i = 0; i < length; ++i) {
    if (buffers[i].iov_len > left) {
      errno = EINVAL;
      return false;
    }
    left -= buffers[i].iov_len;
  }
  return true;
}

}  // namespace

/// The socket that accept() returns.
class Socket::Connection final : public Socket {
 public:
  Connection(const Socket& listener, int fd, Address::ptr peer) : Socket(listener, fd, std::move(peer)) {}
};

/// A call that is running. Until it ends, the descriptor number belongs to this socket.
class Socket::Use {
 public:
  /// The object is false, with EBADF, if the socket is closed. A call with MSG_DONTWAIT in its `flags` blocks nowhere.
  explicit Use(const Socket& socket, int flags = 0)
      : m_call((flags & MSG_DONTWAIT) != 0 || hookEngine() != nullptr ? kCall : kBlockingCall),
        m_socket(socket.enter(m_call) ? &socket : nullptr) {}
  ~Use() { end(); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  explicit operator bool() const { return m_socket != nullptr; }
  int fd() const { return m_socket->getSocket(); }
  void end() {
    if (m_socket != nullptr) std::exchange(m_socket, nullptr)->leave(m_call);
  }

 private:
  const uint64_t m_call;
  const Socket* m_socket;
};

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

template <class Call>
int Socket::transfer(int flags, Call call) {
  const Use use(*this, flags);
  if (!use) return -1;
  if (m_connected.load(std::memory_order_relaxed)) return result(call(use.fd()));
  fail(ENOTCONN);
  return -1;
}

// ---- Connections. -----------------------------------------------------------------------------------------------------------

int Socket::awaitWritable(int timeout_ms) const {
  const Use use(*this);
  if (!use) return -1;
  pollfd one{use.fd(), POLLOUT, 0};
  const int ready = ::poll(&one, 1, timeout_ms);
  if (ready >= 0 && isValid()) return ready;
  fail(isValid() ? errno : EBADF);
  return -1;
}

int Socket::getUnsent() const {
  const Use use(*this, MSG_DONTWAIT);
  int bytes = 0;
  return use && ::ioctl(use.fd(), SIOCOUTQ, &bytes) == 0 ? bytes : -1;
}

int SocketControl::unread(const Socket& socket) {
  const Socket::Use use(socket, MSG_DONTWAIT);
  int bytes = 0;
  return use && ::ioctl(use.fd(), FIONREAD, &bytes) == 0 ? bytes : -1;
}

/// Waits until a connection may be in the queue of the non-blocking listener `fd`. Returns false with errno on failure.
bool Socket::awaitConnection(int fd) const {
  if (!m_accept_waits.load(std::memory_order_relaxed)) {
    errno = EAGAIN;
    return false;
  }
  pollfd one{fd, POLLIN, 0};
  const int ready = ::poll(&one, 1, static_cast<int>(std::min<int64_t>(getRecvTimeout(), INT_MAX)));
  if (ready == 0) errno = EAGAIN;
  return ready > 0 && isValid();
}

Socket::ptr Socket::accept() {
  const Use use(*this);
  if (!use) return nullptr;
  sockaddr_storage peer;
  socklen_t size = sizeof peer;
  const auto accept_one = [&] {
    return ::accept4(use.fd(), reinterpret_cast<sockaddr*>(&peer), &(size = sizeof peer), SOCK_CLOEXEC);
  };
  int fd;
  while ((fd = accept_one()) < 0 && errno == EAGAIN && awaitConnection(use.fd())) continue;
  if (fd < 0) {
    result(-1);
    return nullptr;
  }
  try {
    return std::make_shared<Connection>(*this, fd, Address::Create(reinterpret_cast<sockaddr*>(&peer), size));
  } catch (...) {
    ::close(fd);
    throw;
  }
}

bool Socket::bind(const Address::ptr addr) {
  if (addr == nullptr || addr->getFamily() != m_family) return fail(EINVAL);
  if (!open()) return false;
  const Use use(*this);
  if (!use) return false;
  const auto* const path = dynamic_cast<const UnixAddress*>(addr.get());
  const int done = path != nullptr ? bindUnix(use.fd(), *path) : ::bind(use.fd(), addr->getAddr(), addr->getAddrLen());
  if (result(done) != 0) return false;
  if (path != nullptr) setFile(SocketFile::of(*path));
  setAddresses(nullptr, nullptr);
  return true;
}

bool SocketControl::adopt(Socket& socket, int fd) {
  const Socket::Use use(socket);
  const bool done = use && socket.result(::dup3(fd, use.fd(), O_CLOEXEC)) >= 0;
  const int error = errno;
  ::close(fd);
  errno = error;
  if (!done) return false;
  if (socket.m_family != AF_UNIX) socket.setOption(IPPROTO_TCP, TCP_NODELAY, int{1});  // connections have it of their listener
  socket.setAddresses(nullptr, nullptr);
  return true;
}

bool SocketControl::ownsFile(const Socket& listener) {
  const Lock lock(listener.m_lock);
  return listener.m_file != nullptr;
}

void SocketControl::leaveFile(Socket& listener) {
  const Lock lock(listener.m_lock);
  if (listener.m_file != nullptr) listener.m_file->leave();
}

void SocketControl::takeFile(Socket& listener) {
  const auto path = std::dynamic_pointer_cast<UnixAddress>(listener.getLocalAddress());
  if (path != nullptr) listener.setFile(SocketFile::of(*path));
}

/// Replaces the socket file, and removes the one that was there.
void Socket::setFile(std::unique_ptr<SocketFile> file) {
  const Lock lock(m_lock);
  m_file.swap(file);
}

bool Socket::listen(int backlog) {
  const Use use(*this);
  if (!use) return false;
  if (::listen(use.fd(), backlog) != 0) return fail(errno);
  const int flags = ::fcntl(use.fd(), F_GETFL);
  return result(::fcntl(use.fd(), F_SETFL, flags | O_NONBLOCK)) == 0;
}

bool Socket::connect(const Address::ptr addr, uint64_t timeout_ms) {
  if (addr == nullptr || addr->getFamily() != m_family) return fail(EINVAL);
  if (!open()) return false;
  Use use(*this);
  if (!use) return false;
  int done;
  if (timeout_ms == ~uint64_t{0}) {
    done = ::connect(use.fd(), addr->getAddr(), addr->getAddrLen());
  } else {
    const int64_t before_ms = getSendTimeout();  // without hooks, connect ends with the send timeout
    setSendTimeout(static_cast<int64_t>(std::clamp<uint64_t>(timeout_ms, 1, INT64_MAX)));
    done = ::connect_with_timeout(use.fd(), addr->getAddr(), addr->getAddrLen(), timeout_ms);
    const int error = errno;
    setSendTimeout(before_ms);
    errno = error;
  }
  if (done != 0 && errno == EINPROGRESS) errno = ETIMEDOUT;
  if (result(done) != 0) {
    const int error = errno;
    const Failure why = getFailure();
    use.end();
    close();
    m_failure = why;
    errno = error;
    return false;
  }
  setAddresses(nullptr, addr);
  m_connected.store(true, std::memory_order_release);
  return true;
}

bool Socket::reconnect(uint64_t timeout_ms) {
  Address::ptr remote;
  {
    const Lock lock(m_lock);
    remote = m_ends[kRemote];
  }
  close();
  return connect(remote, timeout_ms);
}

// ---- Transfers. -------------------------------------------------------------------------------------------------------------

int Socket::send(const void* buffer, size_t length, int flags) {
  return transfer(flags, [=](int fd) { return ::send(fd, buffer, std::min(length, kMost), flags | MSG_NOSIGNAL); });
}

int Socket::send(const iovec* buffers, size_t length, int flags) {
  return transfer(flags, [=](int fd) -> ssize_t {
    const msghdr message = messageOf(buffers, length);
    return fits(buffers, length) ? ::sendmsg(fd, &message, flags | MSG_NOSIGNAL) : -1;
  });
}

int Socket::sendTo(const void* buffer, size_t length, const Address::ptr to, int flags) {
  const iovec one{const_cast<void*>(buffer), std::min(length, kMost)};
  return sendTo(&one, 1, to, flags);
}

int Socket::sendTo(const iovec* buffers, size_t length, const Address::ptr to, int flags) {
  return transfer(flags, [=](int fd) -> ssize_t {
    msghdr message = messageOf(buffers, length);
    message.msg_name = to == nullptr ? nullptr : to->getAddr();
    message.msg_namelen = to == nullptr ? 0 : to->getAddrLen();
    return fits(buffers, length) ? ::sendmsg(fd, &message, flags | MSG_NOSIGNAL) : -1;
  });
}

int Socket::recv(void* buffer, size_t length, int flags) {
  return transfer(flags, [=](int fd) { return ::recv(fd, buffer, std::min(length, kMost), flags); });
}

/// Returns true if the calls of `socket` are those here. A derived class may have its own, which encrypt for example.
bool SocketControl::isPlain(const Socket& socket) {
  return typeid(socket) == typeid(Socket::Connection) || typeid(socket) == typeid(Socket);
}

ssize_t SocketControl::receiveLate(Socket& socket, LateBuffer& buffer, int flags) {
  if (isPlain(socket)) return socket.transfer(flags, [&](int fd) { return detail::receiveLate(fd, buffer, flags); });
  char* const bytes = buffer.take();
  if (bytes == nullptr) {
    errno = ENOMEM;
    return -1;
  }
  const ssize_t n = socket.recv(bytes, LateBuffer::kSize, flags);
  const int error = errno;
  if (n <= 0) buffer.giveBack();
  errno = error;
  return n;
}

ssize_t SocketControl::sendLate(Socket& socket, const void* data, size_t size) {
  if (!isPlain(socket)) return socket.send(data, size, MSG_DONTWAIT);
  return socket.transfer(MSG_DONTWAIT, [=](int fd) { return detail::sendLate(fd, data, std::min(size, kMost)); });
}

int Socket::recv(iovec* buffers, size_t length, int flags) { return recvFrom(buffers, length, nullptr, flags); }

int Socket::recvFrom(void* buffer, size_t length, Address::ptr from, int flags) {
  iovec one{buffer, std::min(length, kMost)};
  return recvFrom(&one, 1, std::move(from), flags);
}

int Socket::recvFrom(iovec* buffers, size_t length, Address::ptr from, int flags) {
  return transfer(flags, [=, this](int fd) -> ssize_t {
    if (!fits(buffers, length)) return -1;
    sockaddr_storage sender;
    msghdr message = messageOf(buffers, length);
    if (from != nullptr) {
      message.msg_name = &sender;
      message.msg_namelen = sizeof sender;
    }
    const ssize_t done = ::recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC);
    if (done < 0 || from == nullptr) return done;
    if (message.msg_namelen == 0 && m_family == UNIX) {  // the sender has no name
      sender.ss_family = AF_UNIX;
      message.msg_namelen = sizeof sender.ss_family;
    }
    from->assign(reinterpret_cast<sockaddr*>(&sender), message.msg_namelen);
    return done;
  });
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
