// Yardstick: the echo server that one writes by hand on epoll. One thread, nothing allocated per request, nothing shared. Its CPU
// time per request is what the kernel charges for the work; what ours takes above it is the price of the library.
//
//   raw_epoll_echo [--et] [--port N] [--buffer BYTES]
//
// plain  Level-triggered, read/write, one read an event: the loop of the textbooks.
// --et   The tightest correct loop: edge-triggered, registered once for both directions, recv/send. A receive shorter than the
//        buffer has drained a TCP socket and saves the one that would say EAGAIN, unless the event told of an end, an error or
//        urgent data: from then on only EAGAIN counts.
//
// Prints `listening on 127.0.0.1:PORT` and exits with 0 on SIGINT or SIGTERM.
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/support/loopback.h"

namespace {

using bench::die;

struct Options {
  bool edge = false;
  uint16_t port = 0;
  size_t buffer_bytes = 4096;
};

struct Connection {
  uint32_t seen = 0;   ///< bits of kProveDrained that events have told of; they stay
  std::string unsent;  ///< while there is some, nothing more is received
};

class EchoServer {
 public:
  explicit EchoServer(const Options& options);
  [[noreturn]] void run();

 private:
  enum class Sent { kAll, kPart, kGone };

  static constexpr uint32_t kProveDrained = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI;
  static constexpr uint32_t kEdgeEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET;

  void acceptAll();
  void servePlain(int fd);
  void serveEdge(int fd, uint32_t events);
  Sent reply(int fd, size_t size);
  Sent sendUnsent(int fd);
  void watch(int op, int fd, uint32_t events);
  void drop(int fd);

  const bool m_edge;
  int m_listener;
  int m_epoll;
  std::vector<char> m_buffer;
  std::vector<Connection> m_connections;  ///< by descriptor
};

EchoServer::EchoServer(const Options& options) : m_edge(options.edge), m_buffer(options.buffer_bytes) {
  m_listener = bench::listenOn(options.port, SOCK_NONBLOCK);
  m_epoll = epoll_create1(EPOLL_CLOEXEC);
  if (m_epoll < 0) die("epoll_create1");
  watch(EPOLL_CTL_ADD, m_listener, EPOLLIN);
}

void EchoServer::run() {
  std::array<epoll_event, 256> events;
  for (;;) {
    const int count = epoll_wait(m_epoll, events.data(), static_cast<int>(events.size()), -1);
    if (count < 0 && errno != EINTR) die("epoll_wait");
    // A descriptor occurs once in a batch and is closed only at its own event, so no event can be about an earlier owner of a
    // number.
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == m_listener) {
        acceptAll();
      } else if (m_edge) {
        serveEdge(fd, events[i].events);
      } else {
        servePlain(fd);
      }
    }
  }
}

void EchoServer::acceptAll() {
  for (;;) {
    const int fd = accept4(m_listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EAGAIN) return;
      if (errno == ECONNABORTED || errno == EINTR) continue;
      die("accept4");
    }
    if (m_connections.size() <= static_cast<size_t>(fd)) m_connections.resize(fd + 1);
    watch(EPOLL_CTL_ADD, fd, m_edge ? kEdgeEvents : EPOLLIN);
  }
}

/// Watches one direction at a time, so an event needs no look at its bits.
void EchoServer::servePlain(int fd) {
  if (!m_connections[fd].unsent.empty()) {
    if (sendUnsent(fd) == Sent::kAll) watch(EPOLL_CTL_MOD, fd, EPOLLIN);
    return;
  }
  const ssize_t size = read(fd, m_buffer.data(), m_buffer.size());
  if (size <= 0) {
    if (size == 0 || errno != EAGAIN) drop(fd);
    return;
  }
  if (reply(fd, size) == Sent::kPart) watch(EPOLL_CTL_MOD, fd, EPOLLOUT);
}

/// An edge comes once: this returns only when the socket is drained, or full, or gone.
void EchoServer::serveEdge(int fd, uint32_t events) {
  Connection& connection = m_connections[fd];
  connection.seen |= events & kProveDrained;
  if (!connection.unsent.empty() && sendUnsent(fd) != Sent::kAll) return;
  for (;;) {
    const ssize_t size = recv(fd, m_buffer.data(), m_buffer.size(), 0);
    if (size <= 0) {
      if (size == 0 || errno != EAGAIN) drop(fd);
      return;
    }
    if (reply(fd, size) != Sent::kAll) return;
    if (static_cast<size_t>(size) < m_buffer.size() && connection.seen == 0) return;
  }
}

EchoServer::Sent EchoServer::reply(int fd, size_t size) {
  const ssize_t sent = m_edge ? send(fd, m_buffer.data(), size, MSG_NOSIGNAL) : write(fd, m_buffer.data(), size);
  if (sent == static_cast<ssize_t>(size)) return Sent::kAll;
  if (sent < 0 && errno != EAGAIN) {
    drop(fd);
    return Sent::kGone;
  }
  m_connections[fd].unsent.assign(m_buffer.data() + (sent < 0 ? 0 : sent), m_buffer.data() + size);
  return Sent::kPart;
}

EchoServer::Sent EchoServer::sendUnsent(int fd) {
  std::string& unsent = m_connections[fd].unsent;
  while (!unsent.empty()) {
    const ssize_t sent = send(fd, unsent.data(), unsent.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EAGAIN) return Sent::kPart;
      drop(fd);
      return Sent::kGone;
    }
    unsent.erase(0, sent);
  }
  return Sent::kAll;
}

void EchoServer::watch(int op, int fd, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(m_epoll, op, fd, &event) != 0) die("epoll_ctl");
}

void EchoServer::drop(int fd) {
  m_connections[fd] = {};
  close(fd);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (std::strcmp(argv[i], "--et") == 0) {
      options.edge = true;
    } else if (has_value && std::strcmp(argv[i], "--port") == 0) {
      options.port = static_cast<uint16_t>(std::atoi(argv[++i]));
    } else if (has_value && std::strcmp(argv[i], "--buffer") == 0) {
      options.buffer_bytes = std::strtoul(argv[++i], nullptr, 10);
    } else {
      options.buffer_bytes = 0;
    }
  }
  if (options.buffer_bytes == 0) {
    std::fprintf(stderr, "usage: raw_epoll_echo [--et] [--port N] [--buffer BYTES]\n");
    std::exit(2);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  std::signal(SIGPIPE, SIG_IGN);
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int) { _exit(0); });
  bench::raiseFileLimit();
  EchoServer(options).run();
}
