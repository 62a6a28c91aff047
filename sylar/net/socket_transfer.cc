// The calls of a socket that move bytes.
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sylar/net/socket_control.h"
#include "sylar/net/socket_use.h"
#include "sylar/socket.h"

namespace sylar {
namespace {

/// The most bytes that the kernel transfers in one call.
constexpr size_t kMost = 0x7ffff000;

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

template <class Call>
int Socket::transfer(int flags, Call call) {
  const Use use(*this, flags);
  if (!use) return -1;
  if (m_connected.load(std::memory_order_relaxed)) return result(call(use.fd()));
  fail(ENOTCONN);
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
  if (!use || ::ioctl(use.fd(), FIONREAD, &bytes) != 0) return -1;
  return bytes + (socket.m_holds_bytes.load(std::memory_order_relaxed) ? 1 : 0);
}

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

ssize_t SocketControl::receiveIntoPool(Socket& socket, PooledBuffer& buffer, int flags) {
  if (isPlain(socket)) return socket.transfer(flags, [&](int fd) { return detail::receiveIntoPool(fd, buffer, flags); });
  char* const bytes = buffer.take();
  if (bytes == nullptr) {
    errno = ENOMEM;
    return -1;
  }
  const ssize_t n = socket.recv(bytes, PooledBuffer::kSize, flags);
  const int error = errno;
  if (n <= 0) buffer.giveBack();
  errno = error;
  return n;
}

ssize_t SocketControl::sendBatched(Socket& socket, const void* data, size_t size) {
  if (!isPlain(socket)) return socket.send(data, size, MSG_DONTWAIT);
  return socket.transfer(MSG_DONTWAIT, [=](int fd) { return detail::sendBatched(fd, data, std::min(size, kMost)); });
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

}  // namespace sylar
