#include "sylar/tls/tls_connection.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/clock.h"
#include "sylar/sched/park.h"
#include "sylar/sched/worker.h"
#include "sylar/tls/tls_errors.h"

namespace sylar::detail {
namespace {

/// A peer may ask for new keys without end, each of which costs work. Source: RFC 8446, 4.6.3.
constexpr uint32_t kKeyUpdatesAMinute = 16;
constexpr int64_t kMinuteNs = 60'000'000'000;

/// Tells the server which host is meant, and whose certificate it has to show.
bool namePeer(SSL* ssl, const std::string& host) {
  in6_addr any;
  const bool is_address = ::inet_pton(AF_INET, host.c_str(), &any) == 1 || ::inet_pton(AF_INET6, host.c_str(), &any) == 1;
  if (is_address) return ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl), host.c_str()) == 1;
  ::SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return ::SSL_set1_host(ssl, host.c_str()) == 1 && ::SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
}

/// Locks where that cannot wait for a fiber of the same worker. Elsewhere only if it is free.
bool lockIfPossible(Mutex& mutex) {
  if (!mayPark() && Worker::current() != nullptr) return mutex.try_lock();
  mutex.lock();
  return true;
}

}  // namespace

std::shared_ptr<TlsConnection> TlsConnection::make(const TlsContext& context, int fd, const std::string& host) {
  const std::shared_ptr<TlsConnection> made(new TlsConnection);
  made->m_wire.fd = fd;
  made->m_process = static_cast<pid_t>(sys::call(SYS_getpid));
  made->m_is_client = !context.isServer();
  bool is_open = false;
  callTls([&] {
    ::ERR_clear_error();
    is_open = made->open(context, host);
    ::ERR_clear_error();
  });
  return is_open ? made : nullptr;
}

bool TlsConnection::open(const TlsContext& context, const std::string& host) {
  m_session = TlsContextControl::makeSession(context);
  SSL* const ssl = m_session.ssl.get();
  BIO* const bio = ssl == nullptr ? nullptr : makeSocketBio(m_wire);
  if (bio == nullptr) return false;
  ::SSL_set_bio(ssl, bio, bio);
  ::SSL_set_msg_callback(ssl, &TlsConnection::noteMessage);
  SSL_set_msg_callback_arg(ssl, this);
  m_is_client ? ::SSL_set_connect_state(ssl) : ::SSL_set_accept_state(ssl);
  return !m_is_client || host.empty() || namePeer(ssl, host);
}

TlsConnection::~TlsConnection() {
  callTls([this] { m_session.ssl = nullptr; });
}

void TlsConnection::begin() {
  ::ERR_clear_error();
  errno = 0;
}

void TlsConnection::end(Step& step) {
  SSL* const ssl = m_session.ssl.get();
  step.error = errno;
  step.kind = ::SSL_get_error(ssl, step.result);
  m_holds_bytes.store(::SSL_has_pending(ssl) == 1, std::memory_order_relaxed);
  if (m_key_updates > kKeyUpdatesAMinute) step.kind = SSL_ERROR_SSL;
  if (step.kind != SSL_ERROR_SSL && step.kind != SSL_ERROR_SYSCALL) return;
  breakOff();
  std::string errors = m_key_updates > kKeyUpdatesAMinute ? "too many key updates" : takeTlsErrors();
  if (const long verdict = ::SSL_get_verify_result(ssl); verdict != X509_V_OK)
    (errors += ": ") += ::X509_verify_cert_error_string(verdict);
  ::ERR_clear_error();
  const Lock lock(m_error_lock);
  m_error.swap(errors);
}

std::string TlsConnection::error() const {
  const Lock lock(m_error_lock);
  return m_error;
}

/// Counts the key updates that come. Source: SSL_set_msg_callback(3).
void TlsConnection::noteMessage(int written, int /*version*/, int type, const void* bytes, size_t size, SSL* /*ssl*/, void* me) {
  const bool is_handshake = written == 0 && type == SSL3_RT_HANDSHAKE && size > 0;
  if (!is_handshake || *static_cast<const unsigned char*>(bytes) != SSL3_MT_KEY_UPDATE) return;
  auto& mine = *static_cast<TlsConnection*>(me);
  const int64_t now = steadyClock().nowNs();
  if (now - mine.m_minute_ns > kMinuteNs) {
    mine.m_minute_ns = now;
    mine.m_key_updates = 0;
  }
  ++mine.m_key_updates;
}

/// A server sends tickets that no call may have read yet. A close over them would be a reset, and lose what was sent.
void TlsConnection::takeTickets() {
  constexpr int kMost = 8;
  SSL* const ssl = m_session.ssl.get();
  char byte;
  int waiting = 1;
  for (int i = 0; i < kMost && waiting > 0; ++i) {
    const int got = ::SSL_peek(ssl, &byte, 1);
    if (got > 0 || ::SSL_get_error(ssl, got) != SSL_ERROR_WANT_READ || ::ioctl(m_wire.fd, FIONREAD, &waiting) != 0) return;
  }
}

void TlsConnection::sayGoodbye(bool closes) {
  if (!isReady() || isBroken() || hasSaidGoodbye() || m_process != static_cast<pid_t>(sys::call(SYS_getpid))) return;
  if (!lockIfPossible(m_mutex)) return;
  const std::unique_lock lock(m_mutex, std::adopt_lock);
  if (isBroken() || m_said_goodbye.exchange(true)) return;
  callTls([this, closes] {
    ::ERR_clear_error();
    if (closes && m_is_client) takeTickets();
    ::ERR_clear_error();
    ::SSL_shutdown(m_session.ssl.get());
    ::ERR_clear_error();
  });
}

}  // namespace sylar::detail
