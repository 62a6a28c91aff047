// For the tests of tls: ends of connections with certificates.
#pragma once

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "sylar/tls/ssl_socket.h"
#include "tests/net/support.h"
#include "tests/support/certificate.h"

namespace sylar::test {

/// Options of a server that shows `certificate`.
inline TlsOptions servedWith(const Certificate& certificate) {
  return {.certificates = {{certificate.path(), certificate.key()}}};
}
/// Options of a client that trusts the owner of `certificate` alone.
inline TlsOptions trusting(const Certificate& certificate) { return {.ca_file = certificate.path()}; }

inline Socket::ptr tlsListener(const TlsContext::ptr& context) {
  auto listener = std::make_shared<SSLSocket>(Socket::IPv4, context);
  EXPECT_TRUE(listener->bind(loopback())) << std::strerror(errno);
  EXPECT_TRUE(listener->listen());
  return listener;
}

inline SSLSocket::ptr tlsClient(const TlsOptions& options, const std::string& host = "server.test") {
  auto client = std::make_shared<SSLSocket>(Socket::IPv4, TlsContext::Client(options));
  client->setHost(host);
  return client;
}

/// The two ends of a connection whose handshake is made.
struct TlsEnds {
  SSLSocket::ptr client;
  SSLSocket::ptr server;
};

/// Makes both ends. `client` is null if it was refused; then errno and `error` say why.
inline TlsEnds tlsEnds(const TlsOptions& servers, const TlsOptions& clients, const std::string& host = "server.test",
                       std::string* error = nullptr) {
  const Socket::ptr listener = tlsListener(TlsContext::Server(servers));
  TlsEnds ends;
  ends.client = tlsClient(clients, host);
  Beside server([&] {
    ends.server = std::dynamic_pointer_cast<SSLSocket>(listener->accept());
    if (ends.server != nullptr) ends.server->handshake();
  });
  const bool connected = ends.client->connect(listener->getLocalAddress());
  const int why = errno;
  server.join();
  if (error != nullptr) *error = ends.client->getTlsError();
  if (!connected) ends.client = nullptr;
  errno = why;
  return ends;
}

}  // namespace sylar::test
