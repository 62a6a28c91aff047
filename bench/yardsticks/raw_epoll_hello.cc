// Yardstick: HTTP hello by hand on epoll, one thread. It looks for the end of each head and for nothing else: no method, no
// fields, no limits. So it is no server, but what the kernel charges for the two calls; what a server takes above it is its own
// work.
//
//   raw_epoll_hello
//
// Edge-triggered, recv/send, as raw_epoll_echo --et. Prints `listening on 127.0.0.1:PORT` and exits with 0 on SIGINT or SIGTERM.
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support/loopback.h"

namespace {

using bench::die;

constexpr std::string_view kAnswer =
    "HTTP/1.1 200 OK\r\nserver: raw\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\ncontent-type: text/plain\r\ncontent-length: "
    "6\r\n\r\n"
    "hello\n";

struct Connection {
  uint32_t seen = 0;   ///< bits of kProveDrained that events have told of; they stay
  std::string head;    ///< a part of a head; mostly empty
  std::string unsent;  ///< while there is some, nothing more is received
};

class HelloServer {
 public:
  HelloServer();
  [[noreturn]] void run();

 private:
  static constexpr uint32_t kProveDrained = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI;
  static constexpr uint32_t kEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET;

  void acceptAll();
  void serve(int fd, uint32_t events);
  bool answer(int fd, std::string_view received);
  bool send(int fd, std::string_view bytes);
  void watch(int fd, uint32_t events);
  void drop(int fd);

  int m_listener;
  int m_epoll;
  std::array<char, 4096> m_buffer;
  std::string m_answers;                  ///< of requests that came together
  std::vector<Connection> m_connections;  ///< by descriptor
};

HelloServer::HelloServer() : m_listener(bench::listenOn(0, SOCK_NONBLOCK)), m_epoll(epoll_create1(EPOLL_CLOEXEC)) {
  if (m_epoll < 0) die("epoll_create1");
  watch(m_listener, EPOLLIN);
}

void HelloServer::run() {
  std::array<epoll_event, 256> events;
  for (;;) {
    const int count = epoll_wait(m_epoll, events.data(), static_cast<int>(events.size()), -1);
    if (count < 0 && errno != EINTR) die("epoll_wait");
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd == m_listener) {
        acceptAll();
      } else {
        serve(events[i].data.fd, events[i].events);
      }
    }
  }
}

void HelloServer::acceptAll() {
  for (;;) {
    const int fd = accept4(m_listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EAGAIN) return;
      if (errno == ECONNABORTED || errno == EINTR) continue;
      die("accept4");
    }
    if (m_connections.size() <= static_cast<size_t>(fd)) m_connections.resize(fd + 1);
    watch(fd, kEvents);
  }
}

void HelloServer::serve(int fd, uint32_t events) {
  Connection& connection = m_connections[fd];
  connection.seen |= events & kProveDrained;
  if (!connection.unsent.empty() && !send(fd, std::string(std::move(connection.unsent)))) return;
  for (;;) {
    const ssize_t size = recv(fd, m_buffer.data(), m_buffer.size(), 0);
    if (size <= 0) {
      if (size == 0 || errno != EAGAIN) drop(fd);
      return;
    }
    if (!answer(fd, {m_buffer.data(), static_cast<size_t>(size)})) return;
    if (static_cast<size_t>(size) < m_buffer.size() && connection.seen == 0) return;
  }
}

/// Answers each head that ends in `received`. False: the socket is full or gone.
bool HelloServer::answer(int fd, std::string_view received) {
  static constexpr std::string_view kEnd = "\r\n\r\n";
  std::string& head = m_connections[fd].head;
  if (head.empty() && received.find(kEnd) == received.size() - kEnd.size()) return send(fd, kAnswer);  // one, and all of it
  head += received;
  m_answers.clear();
  size_t begin = 0;
  for (size_t end = 0; (end = head.find(kEnd, begin)) != std::string::npos; begin = end + kEnd.size()) m_answers += kAnswer;
  head.erase(0, begin);
  return m_answers.empty() || send(fd, m_answers);
}

bool HelloServer::send(int fd, std::string_view bytes) {
  const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(bytes.size())) return true;
  if (sent < 0 && errno != EAGAIN) {
    drop(fd);
  } else {
    m_connections[fd].unsent = bytes.substr(sent < 0 ? 0 : sent);
  }
  return false;
}

void HelloServer::watch(int fd, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(m_epoll, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll_ctl");
}

void HelloServer::drop(int fd) {
  m_connections[fd] = {};
  close(fd);
}

}  // namespace

int main() {
  std::signal(SIGPIPE, SIG_IGN);
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int) { _exit(0); });
  bench::raiseFileLimit();
  HelloServer().run();
}
