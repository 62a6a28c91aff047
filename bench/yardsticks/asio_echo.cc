// Yardstick: echo on Boost.Asio, one thread.
//
//   asio_echo [--spawn] [--buffer BYTES]
//
// Without --spawn: callbacks, one object a connection. With it: a stackful coroutine a connection, plain code as ours.
//
// Prints `listening on 127.0.0.1:PORT` and exits with 0 on SIGINT or SIGTERM.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/spawn.hpp>
#include <boost/asio/write.hpp>

#include "bench/support/loopback.h"

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, size_t buffer_bytes) : m_socket(std::move(socket)), m_buffer(buffer_bytes) {}

  void receive() {
    m_socket.async_read_some(asio::buffer(m_buffer), [self = shared_from_this()](error_code error, size_t size) {
      if (!error) self->reply(size);
    });
  }

 private:
  void reply(size_t size) {
    asio::async_write(m_socket, asio::buffer(m_buffer.data(), size), [self = shared_from_this()](error_code error, size_t) {
      if (!error) self->receive();
    });
  }

  tcp::socket m_socket;
  std::vector<char> m_buffer;
};

void acceptNext(tcp::acceptor& acceptor, size_t buffer_bytes) {
  acceptor.async_accept([&acceptor, buffer_bytes](error_code error, tcp::socket socket) {
    if (!error) std::make_shared<Connection>(std::move(socket), buffer_bytes)->receive();
    acceptNext(acceptor, buffer_bytes);
  });
}

void echo(tcp::socket& socket, size_t buffer_bytes, const asio::yield_context& yield) {
  const auto buffer = static_cast<char*>(alloca(buffer_bytes));
  error_code error;
  for (;;) {
    const size_t size = socket.async_read_some(asio::buffer(buffer, buffer_bytes), yield[error]);
    if (error) return;
    asio::async_write(socket, asio::buffer(buffer, size), yield[error]);
    if (error) return;
  }
}

void acceptAll(asio::io_context& context, tcp::acceptor& acceptor, size_t buffer_bytes, const asio::yield_context& yield) {
  for (;;) {
    error_code error;
    auto socket = std::make_shared<tcp::socket>(context);
    acceptor.async_accept(*socket, yield[error]);
    if (error) continue;
    asio::spawn(context, [socket, buffer_bytes](const asio::yield_context& inner) { echo(*socket, buffer_bytes, inner); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool spawn = false;
  size_t buffer_bytes = 4096;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--spawn") == 0) {
      spawn = true;
    } else if (std::strcmp(argv[i], "--buffer") == 0 && i + 1 < argc) {
      buffer_bytes = std::strtoul(argv[++i], nullptr, 10);
    } else {
      buffer_bytes = 0;
    }
  }
  if (buffer_bytes == 0) {
    std::fprintf(stderr, "usage: asio_echo [--spawn] [--buffer BYTES]\n");
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int) { _exit(0); });
  bench::raiseFileLimit();

  asio::io_context context(1);
  tcp::acceptor acceptor(context, tcp::v4(), bench::listenOn(0, SOCK_NONBLOCK));
  if (spawn) {
    asio::spawn(context, [&](const asio::yield_context& yield) { acceptAll(context, acceptor, buffer_bytes, yield); });
  } else {
    acceptNext(acceptor, buffer_bytes);
  }
  context.run();
}
