#include "sylar/tls/ssl_socket.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <ostream>
#include <utility>

#include "sylar/hook/thread/identity.h"
#include "sylar/mutex.h"
#include "sylar/net/socket_use.h"
#include "sylar/sched/park.h"
#include "sylar/tcp_server.h"
#include "sylar/tls/socket_bio.h"
#include "sylar/tls/tls_context_control.h"
#include "sylar/tls/tls_errors.h"

namespace sylar {
namespace {

using std::chrono::milliseconds;

constexpr size_t kRecord = 16 * 1024;  // the most that a record holds

/// Calls `act`, which calls OpenSSL, as a thread. OpenSSL keeps errors for each, and its locks may suspend the fiber.
template <class Act>
void asThread(Act act) {
  if (detail::onThreadStack()) return act();
  try {
    detail::asBorrowedThread([&act] { act(); });
  } catch (const std::bad_alloc&) {  // there is no thread for it
    act();
  }
}

const Clock& clockHere() { return detail::mayPark() ? detail::waitClock() : steadyClock(); }

/// `ms` below 1 is no limit.
Deadline within(int64_t ms) { return ms <= 0 ? Deadline::never() : Deadline::after(milliseconds(ms), clockHere()); }

/// Returns what poll(2) takes. Rounded up, so that nothing ends early.
int msUntil(Deadline deadline) {
  if (deadline.isNever()) return -1;
  const int64_t left_ns = std::max<int64_t>(deadline.ns() - clockHere().nowNs(), 0);
  return static_cast<int>(std::min<int64_t>((left_ns + 999'999) / 1'000'000, INT_MAX));
}

std::string subjectOf(const SSL* ssl) {
  X509* const certificate = ::SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr) return "";
  const std::unique_ptr<BIO, decltype(&::BIO_free)> text(::BIO_new(::BIO_s_mem()), &::BIO_free);
  if (text == nullptr || ::X509_NAME_print_ex(text.get(), ::X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) < 0)
    return "";
  char* bytes = nullptr;
  const long size = ::BIO_get_mem_data(text.get(), &bytes);
  return {bytes, static_cast<size_t>(size)};
}

std::string orEmpty(const char* text) { return text != nullptr ? text : ""; }

/// A peer may ask for new keys without end, each of which costs work. Source: RFC 8446, 4.6.3.
constexpr uint32_t kKeyUpdatesAMinute = 16;
constexpr int64_t kMinuteNs = 60'000'000'000;

}  // namespace

/// What one call into OpenSSL has come to.
struct SSLSocket::Step {
  int result = -1;
  int kind = SSL_ERROR_SSL;  // as SSL_get_error(3) has it
  int error = 0;             // errno, if the kernel refused something
};

namespace {

/// One connection, for OpenSSL.
struct Session {
  detail::SocketWire wire;
  detail::TlsSession made;
  uint32_t key_updates = 0;
  int64_t counted_since_ns = 0;

  /// Counts the key updates that come. Source: SSL_set_msg_callback(3).
  static void look(int written, int /*version*/, int type, const void* bytes, size_t size, SSL* /*ssl*/, void* session) {
    const bool is_update =
        written == 0 && type == SSL3_RT_HANDSHAKE && size > 0 && *static_cast<const unsigned char*>(bytes) == SSL3_MT_KEY_UPDATE;
    if (is_update) static_cast<Session*>(session)->noteKeyUpdate();
  }
  void noteKeyUpdate() {
    const int64_t now = steadyClock().nowNs();
    if (now - counted_since_ns > kMinuteNs) {
      counted_since_ns = now;
      key_updates = 0;
    }
    ++key_updates;
  }
  SSL* ssl() const { return made.ssl.get(); }
};

}  // namespace

struct SSLSocket::Impl {
  explicit Impl(TlsContext::ptr its_context) : context(std::move(its_context)) {}
  ~Impl() {
    asThread([this] { session = nullptr; });
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void say(std::string text) {
    const Lock lock(error_lock);
    error.swap(text);
  }

  TlsContext::ptr context;
  std::string host;
  Mutex mutex;                         // one call into OpenSSL at a time; never held over a wait for the peer
  std::unique_ptr<Session> session;    // under the mutex
  std::atomic<bool> is_ready{false};   // the handshake was made
  std::atomic<bool> is_broken{false};  // OpenSSL must not go on with the session
  Deadline handshake_until = Deadline::never();
  Spinlock error_lock;
  std::string error SYLAR_GUARDED_BY(error_lock);
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
SSLSocket::~SSLSocket() { sayGoodbye(); }

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
  const Lock lock(m_impl->error_lock);
  return m_impl->error;
}

// ---- One step. --------------------------------------------------------------------------------------------------------------

/// Makes the session, if there is none. Returns false with errno. Under the lock.
bool SSLSocket::begin() {
  std::unique_ptr<Session>& session = m_impl->session;
  if (session != nullptr) return true;
  const TlsContext& context = *m_impl->context;
  auto made = std::make_unique<Session>();
  made->wire.fd = getSocket();
  bool is_whole = false;
  asThread([&] {
    ::ERR_clear_error();
    made->made = detail::TlsContextControl::makeSession(context);
    SSL* const ssl = made->ssl();
    BIO* const bio = ssl == nullptr ? nullptr : detail::makeSocketBio(made->wire);
    if (bio != nullptr) {
      ::SSL_set_bio(ssl, bio, bio);
      ::SSL_set_msg_callback(ssl, &Session::look);
      SSL_set_msg_callback_arg(ssl, made.get());
      context.isServer() ? ::SSL_set_accept_state(ssl) : ::SSL_set_connect_state(ssl);
      is_whole = context.isServer() || namePeer(ssl);
    }
    ::ERR_clear_error();
  });
  if (!is_whole) return fail(ENOMEM);
  session = std::move(made);
  return true;
}

/// Tells the server which host is meant, and whose certificate it has to show.
bool SSLSocket::namePeer(SSL* ssl) const {
  if (m_impl->host.empty()) return true;
  in6_addr any;
  const bool is_address =
      ::inet_pton(AF_INET, m_impl->host.c_str(), &any) == 1 || ::inet_pton(AF_INET6, m_impl->host.c_str(), &any) == 1;
  if (is_address) return ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl), m_impl->host.c_str()) == 1;
  ::SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return ::SSL_set1_host(ssl, m_impl->host.c_str()) == 1 && ::SSL_set_tlsext_host_name(ssl, m_impl->host.c_str()) == 1;
}

/// Makes one call of OpenSSL's, which does not wait. `call(ssl)` returns its result.
template <class Call>
SSLSocket::Step SSLSocket::step(Call call) {
  Step step;
  std::string errors;
  const Mutex::Lock lock(m_impl->mutex);
  if (!begin()) return {.kind = SSL_ERROR_SYSCALL, .error = errno};
  asThread([&] {
    SSL* const ssl = m_impl->session->ssl();
    ::ERR_clear_error();
    errno = 0;
    step.result = call(ssl);
    step.error = errno;
    step.kind = ::SSL_get_error(ssl, step.result);
    if (step.kind == SSL_ERROR_SSL) {
      errors = detail::takeTlsErrors();
      if (const long verdict = ::SSL_get_verify_result(ssl); verdict != X509_V_OK)
        (errors += ": ") += ::X509_verify_cert_error_string(verdict);
    }
    ::ERR_clear_error();
  });
  if (m_impl->session->key_updates > kKeyUpdatesAMinute) {
    step.kind = SSL_ERROR_SSL;
    errors = "too many key updates";
  }
  if (step.kind == SSL_ERROR_SSL) {
    m_impl->is_broken = true;
    m_impl->say(std::move(errors));
  }
  return step;
}

/// Returns false with errno: EAGAIN if `deadline` has passed.
bool SSLSocket::waitFor(short events, Deadline deadline) {
  const Use use(*this);
  if (!use) return false;
  pollfd one{use.fd(), events, 0};
  const int ready = ::poll(&one, 1, msUntil(deadline));
  if (ready > 0 && isValid()) return true;
  return fail(!isValid() ? EBADF : ready == 0 ? EAGAIN : errno);
}

/// Calls `call` until it has got on, and waits in between. Returns its result, which is above 0; 0 if the peer has said that it
/// ends; or -1 with errno.
template <class Call>
int SSLSocket::perform(int flags, Deadline deadline, Call call) {
  for (;;) {
    Step done;
    {
      const Use use(*this, MSG_DONTWAIT);
      if (!use) return -1;
      done = m_impl->is_broken.load(std::memory_order_relaxed) ? Step{} : step(call);
    }
    short events = 0;
    switch (done.kind) {
      case SSL_ERROR_NONE: return result(done.result);
      case SSL_ERROR_ZERO_RETURN: return result(0);
      case SSL_ERROR_WANT_READ: events = POLLIN; break;
      case SSL_ERROR_WANT_WRITE: events = POLLOUT; break;
      case SSL_ERROR_SYSCALL:
        m_impl->is_broken = true;
        fail(done.error != 0 ? done.error : ECONNRESET);
        return -1;
      default: fail(EPROTO); return -1;
    }
    if ((flags & MSG_DONTWAIT) != 0) {
      fail(EAGAIN);
      return -1;
    }
    if (!waitFor(events, deadline)) return -1;
  }
}

// ---- The handshake. ---------------------------------------------------------------------------------------------------------

bool SSLSocket::handshake(Deadline deadline) { return isReady(0, deadline); }

/// Makes the handshake, if it has not been made.
bool SSLSocket::isReady(int flags, Deadline deadline) {
  if (m_impl->is_ready.load(std::memory_order_acquire)) return true;
  if (!isConnected()) return fail(isValid() ? ENOTCONN : EBADF);
  if (perform(flags, std::min(deadline, m_impl->handshake_until), [](SSL* ssl) { return ::SSL_do_handshake(ssl); }) <= 0) {
    if (errno == EAGAIN && m_impl->handshake_until.ns() <= clockHere().nowNs()) fail(ETIMEDOUT);
    return false;
  }
  m_impl->is_ready.store(true, std::memory_order_release);
  return true;
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
  {
    const Mutex::Lock lock(m_impl->mutex);
    m_impl->is_ready = m_impl->is_broken = false;
    asThread([this] { m_impl->session = nullptr; });
  }
  if (!Socket::connect(addr, timeout_ms)) return false;
  const auto longest = m_impl->context->getOptions().handshake_timeout;
  m_impl->handshake_until =
      Deadline::after(std::min<milliseconds>(longest, milliseconds(std::min<uint64_t>(timeout_ms, INT_MAX))), clockHere());
  if (handshake()) return true;
  const int error = errno;
  Socket::close();
  fail(error == EAGAIN ? ETIMEDOUT : error);
  return false;
}

TlsInfo SSLSocket::info() const {
  TlsInfo info;
  const Mutex::Lock lock(m_impl->mutex);
  if (!m_impl->is_ready) return info;
  asThread([&] {
    const SSL* const ssl = m_impl->session->ssl();
    info.version = ::SSL_get_version(ssl);
    info.cipher = orEmpty(::SSL_get_cipher_name(ssl));
    info.server_name = orEmpty(::SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name));
    info.peer = subjectOf(ssl);
    info.resumed = ::SSL_session_reused(ssl) == 1;
    const unsigned char* alpn = nullptr;
    unsigned size = 0;
    ::SSL_get0_alpn_selected(ssl, &alpn, &size);
    if (size > 0) info.alpn.assign(alpn, alpn + size);
    ::ERR_clear_error();
  });
  return info;
}

// ---- The end. ---------------------------------------------------------------------------------------------------------------

/// Says that this end sends no more, if that needs no wait.
void SSLSocket::sayGoodbye() {
  if (!m_impl->is_ready || m_impl->is_broken) return;
  const Use use(*this, MSG_DONTWAIT);
  if (!use || !m_impl->mutex.try_lock()) return;
  const std::unique_lock lock(m_impl->mutex, std::adopt_lock);
  asThread([this] {
    ::ERR_clear_error();
    ::SSL_shutdown(m_impl->session->ssl());
    ::ERR_clear_error();
  });
}

bool SSLSocket::close() {
  const int before = errno;
  sayGoodbye();
  errno = before;
  return Socket::close();
}

bool SSLSocket::shutdown(int how) {
  if (how != SHUT_RD) sayGoodbye();
  return Socket::shutdown(how);
}

// ---- Bytes. -----------------------------------------------------------------------------------------------------------------

int SSLSocket::send(const void* buffer, size_t length, int flags) {
  length = std::min<size_t>(length, INT_MAX - kRecord);
  if (!isReady(flags, within(getSendTimeout()))) return -1;
  size_t sent = 0;
  while (sent < length) {
    const auto* const bytes = static_cast<const char*>(buffer) + sent;
    const int count = perform(flags, within(getSendTimeout()), [=](SSL* ssl) {
      return ::SSL_write(ssl, bytes, static_cast<int>(std::min<size_t>(length - sent, INT_MAX)));
    });
    if (count <= 0) {
      if ((flags & MSG_DONTWAIT) == 0) m_impl->is_broken = true;  // a part of a record may be under way
      return sent > 0 ? static_cast<int>(sent) : -1;
    }
    sent += static_cast<size_t>(count);
    if ((flags & MSG_DONTWAIT) != 0) break;
  }
  return static_cast<int>(sent);
}

/// What is small is sent together, in one record.
int SSLSocket::send(const iovec* buffers, size_t length, int flags) {
  size_t sent = 0;
  const auto go_on = [&](const char* bytes, size_t size) {
    const int count = send(bytes, size, flags);
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
  if (!isReady(flags, deadline)) return -1;
  const auto most = static_cast<int>(std::min<size_t>(length, INT_MAX));
  return perform(flags, deadline, [=](SSL* ssl) {
    return (flags & MSG_PEEK) != 0 ? ::SSL_peek(ssl, buffer, most) : ::SSL_read(ssl, buffer, most);
  });
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
