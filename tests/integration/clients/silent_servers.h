// Servers that take connections and are silent at a certain place: before the first, before they answer, after a greeting.
#pragma once

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/hook/support.h"
#include "tests/sched/gate.h"

namespace sylar::test {

/// An object of a library in C.
template <class Object, void (*destroy)(Object*)>
using Owned = std::unique_ptr<Object, std::integral_constant<void (*)(Object*), destroy>>;

/// The kernel makes connections to it, and nobody reads from them.
class Silent {
 public:
  explicit Silent(int backlog = SOMAXCONN) : m_fd(libcCalls().socket(AF_INET, SOCK_STREAM, 0)) {
    const sockaddr_in address = loopback();
    EXPECT_EQ(::bind(m_fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(m_fd, backlog), 0);
  }
  ~Silent() { libcCalls().close(m_fd); }
  Silent(const Silent&) = delete;
  Silent& operator=(const Silent&) = delete;

  int fd() const { return m_fd; }
  int port() const { return ntohs(addressOf(m_fd).sin_port); }

 private:
  const int m_fd;
};

/// The kernel drops what asks for a connection to it.
class Full {
 public:
  Full() : m_listener(0) {
    const sockaddr_in address = addressOf(m_listener.fd());
    for (int i = 0; i < 4; ++i) {
      m_waiting.push_back(libcCalls().socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      (void)libcCalls().connect(m_waiting.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    }
  }
  ~Full() {
    for (const int fd : m_waiting) libcCalls().close(fd);
  }
  Full(const Full&) = delete;
  Full& operator=(const Full&) = delete;

  int port() const { return m_listener.port(); }

 private:
  Silent m_listener;
  std::vector<int> m_waiting;
};

/// Does `greet` with each connection, and is silent then, until the client goes.
class Greeting {
 public:
  using Greet = std::function<void(int fd)>;
  explicit Greeting(Greet greet) : m_greet(std::move(greet)), m_thread([this] { serve(); }) {}
  ~Greeting() {
    ::shutdown(m_listener.fd(), SHUT_RDWR);
    m_thread.join();
    for (const int fd : m_connections) ::close(fd);
  }
  Greeting(const Greeting&) = delete;
  Greeting& operator=(const Greeting&) = delete;

  int port() const { return m_listener.port(); }
  /// How many it has greeted.
  Gate& greeted() { return m_greeted; }

 private:
  void serve() {
    for (int fd; (fd = ::accept(m_listener.fd(), nullptr, nullptr)) >= 0;) {
      m_connections.push_back(fd);
      m_greet(fd);
      m_greeted.open();
    }
  }

  Silent m_listener;
  Gate m_greeted;
  const Greet m_greet;
  std::vector<int> m_connections;
  std::thread m_thread;
};

/// Lets anybody in, as PostgreSQL does: AuthenticationOk, ReadyForQuery.
inline void greetLikePostgres(int fd) {
  char startup[1024];
  EXPECT_GT(::read(fd, startup, sizeof startup), 0);
  constexpr char kWelcome[] = "R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
  EXPECT_EQ(::write(fd, kWelcome, sizeof kWelcome - 1), static_cast<ssize_t>(sizeof kWelcome - 1));
}

/// Makes the handshake of TLS, with a certificate of its own.
class TlsGreeter {
 public:
  TlsGreeter() : m_context(::SSL_CTX_new(::TLS_server_method()), ::SSL_CTX_free) {
    const Owned<EVP_PKEY, ::EVP_PKEY_free> key(::EVP_EC_gen("prime256v1"));
    const Owned<X509, ::X509_free> certificate(::X509_new());
    ::X509_gmtime_adj(::X509_getm_notBefore(certificate.get()), 0);
    ::X509_gmtime_adj(::X509_getm_notAfter(certificate.get()), 3600);
    ::X509_set_pubkey(certificate.get(), key.get());
    EXPECT_GT(::X509_sign(certificate.get(), key.get(), ::EVP_sha256()), 0);
    EXPECT_EQ(::SSL_CTX_use_certificate(m_context.get(), certificate.get()), 1);
    EXPECT_EQ(::SSL_CTX_use_PrivateKey(m_context.get(), key.get()), 1);
  }
  void operator()(int fd) const {
    const Owned<SSL, ::SSL_free> tls(::SSL_new(m_context.get()));
    ::SSL_set_fd(tls.get(), fd);
    (void)::SSL_accept(tls.get());  // a client with little time may be gone
  }

 private:
  const std::shared_ptr<SSL_CTX> m_context;
};

}  // namespace sylar::test
