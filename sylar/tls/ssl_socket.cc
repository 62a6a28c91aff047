#include "sylar/tls/ssl_socket.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <utility>

#include "sylar/fiber.h"
#include "sylar/net/socket_use.h"
#include "sylar/sched/park.h"
#include "sylar/tcp_server.h"
#include "sylar/tls/tls_connection.h"
#include "sylar/tls/tls_info.h"

namespace sylar {
namespace {

using std::chrono::milliseconds;

constexpr size_t kRecord = 16 * 1024;  // the most that a record holds

const Clock& clockHere() { return detail::mayPark() ? detail::waitClock() : steadyClock(); }

/// `ms` below 1 is no limit.
Deadline within(int64_t ms) { return ms <= 0 ? Deadline::never() : Deadline::after(milliseconds(ms), clockHere()); }

/// Returns what poll(2) takes. Rounded up, so that nothing ends early.
int msUntil(Deadline deadline) {
  if (deadline.isNever()) return -1;
  const int64_t left_ns = std::max<int64_t>(deadline.ns() - clockHere().nowNs(), 0);
  return static_cast<int>(std::min<int64_t>((left_ns + 999'999) / 1'000'000, INT_MAX));
}

/// Holds a mutex, unless it is not to be had by the deadline, or at once for a call that does not wait.
class Turn {
 public:
  Turn(Mutex& mutex, int flags, Deadline deadline)
      : m_mutex(mutex), m_holds((flags & MSG_DONTWAIT) != 0 ? mutex.try_lock() : mutex.lock(deadline)) {}
  ~Turn() {
    if (m_holds) m_mutex.unlock();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  explicit operator bool() const { return m_holds; }

 private:
  Mutex& m_mutex;
  const bool m_holds;
};

}  // namespace

struct SSLSocket::Impl {
  explicit Impl(TlsContext::ptr its_context) : context(std::move(its_context)) {}

  std::shared_ptr<detail::TlsConnection> current() const {
    const Lock held(lock);
    return connection;
  }
  /// Makes `next`, which may be null, the connection, and returns the one before.
  std::shared_ptr<detail::TlsConnection> replace(std::shared_ptr<detail::TlsConnection> next) {
    const Lock held(lock);
    connection.swap(next);
    return next;
  }
  void say(std::string text) {
    const Lock held(lock);
    error.swap(text);
  }

  TlsContext::ptr context;
  std::string host;
  Deadline handshake_until = Deadline::never();
  mutable Spinlock lock;
  std::shared_ptr<detail::TlsConnection> connection SYLAR_GUARDED_BY(lock);  // from the first call on it to the close
  std::string error SYLAR_GUARDED_BY(lock);
};

class SSLSocket::Accepted final : public SSLSocket {
 public:
  Accepted(const SSLSocket& listener, int fd, Address::ptr peer, std::unique_ptr<Impl> impl)
      : SSLSocket(listener, fd, std::move(peer), std::move(impl)) {}
};

SSLSocket::SSLSocket(int family, TlsContext::ptr context)
    : Socket(family, TCP), m_impl(std::make_unique<Impl>(std::move(context))) {}
SSLSocket::SSLSocket(const SSLSocket& listener, int fd, Address::ptr peer, std::unique_ptr<Impl> impl)
    : Socket(listener, fd, std::move(peer)), m_impl(std::move(impl)) {}
SSLSocket::~SSLSocket() { sayGoodbye(true); }

SSLSocket::ptr SSLSocket::CreateTCP(const Address::ptr& address) { return std::make_shared<SSLSocket>(address->getFamily()); }

Socket::ptr SSLSocket::makeAccepted(int fd, Address::ptr peer) {
  const TlsContext::ptr& context = m_impl->context;
  if (context == nullptr || !context->isServer()) {
    ::close(fd);
    fail(EINVAL);
    return nullptr;
  }
  auto impl = std::make_unique<Impl>(context);
  impl->handshake_until = Deadline::after(context->getOptions().handshake_timeout, clockHere());
  return std::make_shared<Accepted>(*this, fd, std::move(peer), std::move(impl));
}

void SSLSocket::setHost(std::string host) { m_impl->host = std::move(host); }

bool SSLSocket::loadCertificates(const std::string& cert_file, const std::string& key_file) {
  try {
    m_impl->context = TlsContext::Server({.certificates = {{cert_file, key_file}}});
    return true;
  } catch (const TlsError& error) {
    m_impl->say(error.what());
    return false;
  }
}

std::string SSLSocket::getTlsError() const {
  const Lock held(m_impl->lock);
  return m_impl->error;
}

// ---- Steps and waits. -------------------------------------------------------------------------------------------------------

/// Returns the connection, which is made for the first call on it, or null with errno.
std::shared_ptr<detail::TlsConnection> SSLSocket::connection() {
  if (auto present = m_impl->current()) return present;
  const Use use(*this, MSG_DONTWAIT);
  if (!use) return nullptr;
  auto made = detail::TlsConnection::make(*m_impl->context, use.fd(), m_impl->host);
  if (made == nullptr) {
    fail(ENOMEM);
    return nullptr;
  }
  std::shared_ptr<detail::TlsConnection> unused;  // another call may have been faster
  {
    const Lock held(m_impl->lock);
    if (m_impl->connection == nullptr) {
      m_impl->connection = made;
    } else {
      unused.swap(made);
      made = m_impl->connection;
    }
  }
  return made;
}

/// Returns false with errno: EAGAIN if `deadline` has passed.
bool SSLSocket::waitFor(short events, Deadline deadline) {
  const Use use(*this);
  if (!use) return false;
  pollfd one{use.fd(), events, 0};
  int ready;
  do {
    ready = ::poll(&one, 1, msUntil(deadline));
  } while (ready < 0 && errno == EINTR && detail::onThreadStack() && isValid());  // a thread's recv(2) goes on behind a handler
  if (ready > 0 && isValid()) return true;
  return fail(!isValid() ? EBADF : ready == 0 ? EAGAIN : errno);
}

/// Calls `call` until it has got on, and waits in between. Returns its result, which is above 0; 0 if there is no more to read; or
/// -1 with errno. `events` becomes what it has waited for last, or would have to.
template <class Call>
int SSLSocket::perform(detail::TlsConnection& connection, int flags, Deadline deadline, bool sends, Call call, short& events) {
  for (;;) {
    detail::TlsConnection::Step done;
    {
      const Use use(*this, MSG_DONTWAIT);
      if (!use) return -1;
      if (m_impl->current().get() != &connection) {  // closed, and perhaps connected anew
        fail(EBADF);
        return -1;
      }
      done = connection.step(sends, call);
    }
    holdBytes(connection.holdsBytes());
    switch (done.kind) {
      case SSL_ERROR_NONE: return result(done.result);
      case SSL_ERROR_ZERO_RETURN: return result(0);
      case SSL_ERROR_WANT_READ: events = POLLIN; break;
      case SSL_ERROR_WANT_WRITE: events = POLLOUT; break;
      case SSL_ERROR_SYSCALL: fail(done.error != 0 ? done.error : ECONNRESET); return -1;
      default:
        m_impl->say(connection.error());
        fail(EPROTO);
        return -1;
    }
    if (events == POLLIN && connection.readsEnded()) return result(0);
    if ((flags & MSG_DONTWAIT) != 0) {
      fail(EAGAIN);
      return -1;
    }
    if (!waitFor(events, deadline)) return -1;
  }
}

// ---- The handshake. ---------------------------------------------------------------------------------------------------------

bool SSLSocket::handshake(Deadline deadline) { return ready(0, deadline) != nullptr; }

/// Returns the connection behind its handshake, which is made if it has not been, or null with errno.
std::shared_ptr<detail::TlsConnection> SSLSocket::ready(int flags, Deadline deadline) {
  if (!isConnected()) {
    fail(isValid() ? ENOTCONN : EBADF);
    return nullptr;
  }
  const std::shared_ptr<detail::TlsConnection> mine = connection();
  if (mine == nullptr || mine->isReady()) return mine;
  const Deadline until = std::min(deadline, m_impl->handshake_until);
  const Turn turn(mine->shaking(), flags, until);
  if (!turn) fail(this_fiber::cancelled() ? ECANCELED : EAGAIN);
  short events = 0;
  const auto shake = [](SSL* ssl) { return ::SSL_do_handshake(ssl); };
  if (!turn || (!mine->isReady() && perform(*mine, flags, until, false, shake, events) <= 0)) {
    if (errno == EAGAIN && m_impl->handshake_until.ns() <= clockHere().nowNs()) fail(ETIMEDOUT);
    return nullptr;
  }
  mine->noteReady();
  return mine;
}

bool SSLSocket::connect(const Address::ptr addr, uint64_t timeout_ms) {
  if (m_impl->context == nullptr) {
    try {
      m_impl->context = TlsContext::Client();
    } catch (const TlsError& error) {
      m_impl->say(error.what());
      return fail(EPROTO);
    }
  }
  if (m_impl->context->isServer() || (m_impl->host.empty() && m_impl->context->getOptions().verify)) return fail(EINVAL);
  if (isConnected()) return fail(EISCONN);
  m_impl->replace(nullptr);
  if (!Socket::connect(addr, timeout_ms)) return false;
  const auto longest = m_impl->context->getOptions().handshake_timeout;
  m_impl->handshake_until =
      Deadline::after(std::min<milliseconds>(longest, milliseconds(std::min<uint64_t>(timeout_ms, INT_MAX))), clockHere());
  if (handshake()) return true;
  const int error = errno;
  close();
  fail(error == EAGAIN ? ETIMEDOUT : error);
  return false;
}

TlsInfo SSLSocket::info() const {
  TlsInfo info;
  const std::shared_ptr<detail::TlsConnection> mine = m_impl->current();
  if (mine == nullptr) return info;
  mine->look([&](const SSL* ssl) { info = detail::infoOf(ssl); });
  return info;
}

// ---- The end. ---------------------------------------------------------------------------------------------------------------

/// Says that this end sends no more, but not before a close that is a reset: the peer must not take what it has for the whole.
void SSLSocket::sayGoodbye(bool closes) {
  const std::shared_ptr<detail::TlsConnection> mine = m_impl->current();
  if (mine == nullptr) return;
  const Use use(*this, MSG_DONTWAIT);
  if (!use) return;
  linger how{};
  const bool resets = closes && getOption(SOL_SOCKET, SO_LINGER, how) && how.l_onoff != 0 && how.l_linger == 0;
  if (!resets) mine->sayGoodbye(closes);
}

bool SSLSocket::close() {
  const int before = errno;
  sayGoodbye(true);
  errno = before;
  const bool closed = Socket::close();
  if (closed) m_impl->replace(nullptr);
  return closed;
}

bool SSLSocket::shutdown(int how) {
  if (how != SHUT_RD) sayGoodbye(false);
  if (how != SHUT_WR) {
    if (const auto mine = m_impl->current()) mine->endReads();
  }
  return Socket::shutdown(how);
}

// ---- Bytes. -----------------------------------------------------------------------------------------------------------------

/// The turn to send, which lasts until all was sent. Without it two senders would mix within a record.
class SSLSocket::Sending {
 public:
  Sending(SSLSocket& socket, int flags) {
    const Deadline deadline = within(socket.getSendTimeout());
    m_connection = socket.ready(flags, deadline);
    if (m_connection == nullptr) return;
    m_turn.emplace(m_connection->sending(), flags, deadline);
    if (!*m_turn) socket.fail(this_fiber::cancelled() ? ECANCELED : EAGAIN);
  }
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;

  explicit operator bool() const { return m_turn && *m_turn; }
  detail::TlsConnection& connection() const { return *m_connection; }

 private:
  std::shared_ptr<detail::TlsConnection> m_connection;
  std::optional<Turn> m_turn;  // last: it ends first
};

int SSLSocket::sendPart(detail::TlsConnection& connection, const char* bytes, size_t size, int flags) {
  size_t sent = 0;
  while (sent < size) {
    const auto write = [bytes, size, sent](SSL* ssl) {
      return ::SSL_write(ssl, bytes + sent, static_cast<int>(std::min<size_t>(size - sent, INT_MAX)));
    };
    short events = 0;
    const int count = perform(connection, flags, within(getSendTimeout()), true, write, events);
    if (count <= 0) {
      // A part of a record may be on its way, or of the peer's handshake, without which OpenSSL does not send.
      const bool can_go_on = (flags & MSG_DONTWAIT) != 0 && errno == EAGAIN && events == POLLOUT;
      if (!can_go_on && !connection.isBroken() && !connection.hasSaidGoodbye()) {
        connection.breakOff();
        if ((flags & MSG_DONTWAIT) != 0) fail(EPROTO);
      }
      return sent > 0 ? static_cast<int>(sent) : -1;
    }
    sent += static_cast<size_t>(count);
    if ((flags & MSG_DONTWAIT) != 0) break;
  }
  return static_cast<int>(sent);
}

int SSLSocket::send(const void* buffer, size_t length, int flags) {
  const Sending sending(*this, flags);
  if (!sending) return -1;
  return sendPart(sending.connection(), static_cast<const char*>(buffer), std::min<size_t>(length, INT_MAX - kRecord), flags);
}

/// Small buffers are sent together, in one record.
int SSLSocket::send(const iovec* buffers, size_t length, int flags) {
  const Sending sending(*this, flags);
  if (!sending) return -1;
  size_t sent = 0;
  const auto go_on = [&](const char* bytes, size_t size) {
    const int count = sendPart(sending.connection(), bytes, size, flags);
    if (count > 0) sent += static_cast<size_t>(count);
    return count == static_cast<int>(size);
  };
  std::string together;
  for (size_t i = 0; i <= length; ++i) {
    const auto* const bytes = i < length ? static_cast<const char*>(buffers[i].iov_base) : nullptr;
    const size_t size = i < length ? buffers[i].iov_len : 0;
    if (i < length && together.size() + size <= kRecord) {
      together.append(bytes, size);
      continue;
    }
    if (!together.empty() && !go_on(together.data(), together.size())) break;
    together.clear();
    if (size > 0 && size <= kRecord) together.assign(bytes, size);
    if (size > kRecord && !go_on(bytes, size)) break;
  }
  return sent > 0 || length == 0 ? static_cast<int>(sent) : -1;
}

int SSLSocket::sendTo(const void* buffer, size_t length, const Address::ptr /*to*/, int flags) {
  return send(buffer, length, flags);
}
int SSLSocket::sendTo(const iovec* buffers, size_t length, const Address::ptr /*to*/, int flags) {
  return send(buffers, length, flags);
}

int SSLSocket::recv(void* buffer, size_t length, int flags) {
  const Deadline deadline = within(getRecvTimeout());
  const std::shared_ptr<detail::TlsConnection> mine = ready(flags, deadline);
  if (mine == nullptr) return -1;
  if (length == 0) return 0;
  const auto most = static_cast<int>(std::min<size_t>(length, INT_MAX));
  const auto read = [=](SSL* ssl) {
    return (flags & MSG_PEEK) != 0 ? ::SSL_peek(ssl, buffer, most) : ::SSL_read(ssl, buffer, most);
  };
  short events = 0;
  return perform(*mine, flags, deadline, false, read, events);
}

/// Fills the first that has room, as recv(2) may.
int SSLSocket::recv(iovec* buffers, size_t length, int flags) {
  for (size_t i = 0; i < length; ++i) {
    if (buffers[i].iov_len > 0) return recv(buffers[i].iov_base, buffers[i].iov_len, flags);
  }
  return recv(static_cast<void*>(nullptr), 0, flags);
}
int SSLSocket::recvFrom(void* buffer, size_t length, Address::ptr /*from*/, int flags) { return recv(buffer, length, flags); }
int SSLSocket::recvFrom(iovec* buffers, size_t length, Address::ptr /*from*/, int flags) { return recv(buffers, length, flags); }

std::ostream& SSLSocket::dump(std::ostream& os) const {
  const TlsInfo agreed = info();
  return Socket::dump(os) << "[TLS version=" << agreed.version << " cipher=" << agreed.cipher << "]";
}

// ---- Servers. ---------------------------------------------------------------------------------------------------------------

void serveTls(TcpServer& server, TlsContext::ptr context) {
  server.setListenerMaker([context = std::move(context)](const Address::ptr& addr) {
    return std::make_shared<SSLSocket>(addr->getFamily(), context);
  });
}

}  // namespace sylar
