// Yardstick: HTTP hello on Boost.Beast, callbacks on one thread, an object a connection.
//
//   beast_hello
//
// Prints `listening on 127.0.0.1:PORT` and exits with 0 on SIGINT or SIGTERM.
#include <unistd.h>

#include <csignal>
#include <memory>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "bench/support/loopback.h"

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using beast::error_code;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(tcp::socket socket) : m_socket(std::move(socket)) {}

  void receive() {
    m_request = {};
    http::async_read(m_socket, m_buffer, m_request, [self = shared_from_this()](error_code error, size_t) {
      if (!error) self->reply();
    });
  }

 private:
  void reply() {
    m_response = {http::status::ok, m_request.version()};
    m_response.set(http::field::content_type, "text/plain");
    m_response.body() = "hello\n";
    m_response.keep_alive(m_request.keep_alive());
    m_response.prepare_payload();
    http::async_write(m_socket, m_response, [self = shared_from_this()](error_code error, size_t) {
      if (!error && self->m_response.keep_alive()) self->receive();
    });
  }

  tcp::socket m_socket;
  beast::flat_buffer m_buffer;
  http::request<http::empty_body> m_request;
  http::response<http::string_body> m_response;
};

void acceptNext(tcp::acceptor& acceptor) {
  acceptor.async_accept([&acceptor](error_code error, tcp::socket socket) {
    if (!error) std::make_shared<Connection>(std::move(socket))->receive();
    acceptNext(acceptor);
  });
}

}  // namespace

int main() {
  std::signal(SIGPIPE, SIG_IGN);
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int) { _exit(0); });
  bench::raiseFileLimit();
  asio::io_context context(1);
  tcp::acceptor acceptor(context, tcp::v4(), bench::listenOn(0, SOCK_NONBLOCK));
  acceptNext(acceptor);
  context.run();
}
