// Unmodified OpenSSL with blocking sockets in many fibers.
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>

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

// HA-6
TEST(Openssl, SaysInFibersWhatItSaysOnAThread) { saysInFibersWhatItSaysOnAThread("nginx_tls", &client); }

}  // namespace
}  // namespace sylar::test
