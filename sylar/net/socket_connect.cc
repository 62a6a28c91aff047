// How a socket comes by its address, its connections and its peer.
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <typeinfo>
#include <utility>

#include "sylar/hook.h"
#include "sylar/net/socket_control.h"
#include "sylar/net/socket_use.h"
#include "sylar/net/unix_path.h"
#include "sylar/socket.h"

namespace sylar {

/// The socket that accept() returns.
class Socket::Connection final : public Socket {
 public:
  Connection(const Socket& listener, int fd, Address::ptr peer) : Socket(listener, fd, std::move(peer)) {}
};

/// Returns true if the calls of `socket` are those here. A derived class may have its own, which encrypt for example.
bool SocketControl::isPlain(const Socket& socket) {
  return typeid(socket) == typeid(Socket::Connection) || typeid(socket) == typeid(Socket);
}

int Socket::awaitWritable(int timeout_ms) const {
  const Use use(*this);
  if (!use) return -1;
  pollfd one{use.fd(), POLLOUT, 0};
  const int ready = ::poll(&one, 1, timeout_ms);
  if (ready >= 0 && isValid()) return ready;
  fail(isValid() ? errno : EBADF);
  return -1;
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
    return makeAccepted(fd, Address::Create(reinterpret_cast<sockaddr*>(&peer), size));
  } catch (...) {
    ::close(fd);
    throw;
  }
}

Socket::ptr Socket::makeAccepted(int fd, Address::ptr peer) { return std::make_shared<Connection>(*this, fd, std::move(peer)); }

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

}  // namespace sylar
