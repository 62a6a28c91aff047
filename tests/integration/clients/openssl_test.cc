// Unmodified OpenSSL with blocking sockets in many fibers.
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>

#include "sylar/iomanager.h"
#include "sylar/threads_are_fibers.h"
#include "tests/integration/clients/fleet.h"

namespace sylar::test {
namespace {

struct Free {
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  void operator()(SSL* tls) const { ::SSL_free(tls); }
  void operator()(addrinfo* addresses) const { ::freeaddrinfo(addresses); }
};
using Context = std::unique_ptr<SSL_CTX, Free>;

/// What ended a conversation. It was the server if the call before gave 0.
std::string endOf(SSL* tls, int result) {
  if (result == 0) return "the end";
  const std::string error = std::strerror(errno);
  return ::SSL_get_error(tls, result) == SSL_ERROR_SYSCALL ? error : "a fault of TLS";
}

/// Asks for a path over a connection of its own. Returns the answer without its head, and what ended it.
std::string get(const Context& context, const char* host, int port, const std::string& path) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host, std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return line(::gai_strerror(error));
  const std::unique_ptr<addrinfo, Free> addresses(found);
  const int fd = ::socket(found->ai_family, found->ai_socktype, found->ai_protocol);
  std::string answer;
  std::string end;
  if (::connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
    end = std::strerror(errno);
  } else {
    const std::unique_ptr<SSL, Free> tls(::SSL_new(context.get()));
    ::SSL_set_fd(tls.get(), fd);
    int result = ::SSL_connect(tls.get());
    if (result == 1) {
      const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
      result = ::SSL_write(tls.get(), request.data(), static_cast<int>(request.size()));
      EXPECT_EQ(result, static_cast<int>(request.size()));
      char bytes[5000];
      while ((result = ::SSL_read(tls.get(), bytes, sizeof bytes)) > 0) answer.append(bytes, static_cast<size_t>(result));
    }
    end = endOf(tls.get(), result);
    ::ERR_clear_error();
  }
  ::close(fd);
  return line(answer.substr(std::min(answer.size(), answer.find("\r\n\r\n")))) + line(end);
}

std::string client(Server& server) {
  const Context context(::SSL_CTX_new(::TLS_client_method()));
  std::string said = get(context, Server::kName, server.port(), "/large");
  said += get(context, Server::kName, server.port(), "/slow");
  server.stalls();
  said += get(context, Server::kAddress, server.port(), "/large");
  server.dies();
  said += get(context, Server::kAddress, server.port(), "/large");
  server.isGone();
  said += get(context, Server::kAddress, server.port(), "/large");
  server.returns();
  said += get(context, Server::kAddress, server.port(), "/large");
  return said;
}

/// The two ends of a connection.
struct Pair {
  Pair() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0); }
  ~Pair() {
    for (const int fd : fds) ::close(fd);
  }
  int fds[2];
};

Context serverContext() {
  Context context(::SSL_CTX_new(::TLS_server_method()));
  const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(::EVP_EC_gen(SN_X9_62_prime256v1), &::EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&::X509_free)> certificate(::X509_new(), &::X509_free);
  ::X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  ::X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  ::X509_set_pubkey(certificate.get(), key.get());
  ::X509_sign(certificate.get(), key.get(), ::EVP_sha256());
  ::SSL_CTX_use_certificate(context.get(), certificate.get());
  ::SSL_CTX_use_PrivateKey(context.get(), key.get());
  return context;
}

// SchedulerOptions::identity: the queue of errors is the fiber's. Where it is the worker's, a clean end is told as a fault, because
// another connection spoke no TLS.
TEST(Openssl, ACleanEndIsToldBesideAClientThatSpeaksNoTls) {
  if (!ThreadsAreFibers::supported()) GTEST_SKIP() << "fibers run as their worker in this build";
  const Context server = serverContext();
  const Context client(::SSL_CTX_new(::TLS_client_method()));
  for (const size_t workers : {1, 2}) {
    Pair good, bad;
    std::atomic<bool> failed{false}, reads{false};
    IOManager iom({.threads = workers, .use_caller = false, .name = "own", .identity = FiberIdentity::kOwn});
    iom.schedule([&] {
      const std::unique_ptr<SSL, Free> tls(::SSL_new(server.get()));
      ::SSL_set_fd(tls.get(), good.fds[0]);
      EXPECT_EQ(::SSL_accept(tls.get()), 1);
      ::ERR_clear_error();
      reads = true;
      char byte;
      const int result = ::SSL_read(tls.get(), &byte, 1);
      EXPECT_EQ(result, 0);
      EXPECT_EQ(::SSL_get_error(tls.get(), result), SSL_ERROR_ZERO_RETURN) << workers;
    });
    iom.schedule([&] {
      const std::unique_ptr<SSL, Free> tls(::SSL_new(client.get()));
      ::SSL_set_fd(tls.get(), good.fds[1]);
      EXPECT_EQ(::SSL_connect(tls.get()), 1);
      while (!failed) ::usleep(100);
      ::SSL_shutdown(tls.get());
    });
    iom.schedule([&] {
      while (!reads) ::usleep(100);
      EXPECT_EQ(::write(bad.fds[1], "GET / HTTP/1.1\r\n\r\n", 18), 18);
      const std::unique_ptr<SSL, Free> tls(::SSL_new(server.get()));
      ::SSL_set_fd(tls.get(), bad.fds[0]);
      EXPECT_NE(::SSL_accept(tls.get()), 1);  // leaves its errors in the queue, as many servers do
      failed = true;
      EXPECT_NE(::ERR_peek_error(), 0u);
    });
    iom.stop();
  }
}

// HA-6
TEST(Openssl, SaysInFibersWhatItSaysOnAThread) { saysInFibersWhatItSaysOnAThread("nginx_tls", &client); }

}  // namespace
}  // namespace sylar::test
