// The server under test: the echo server that a user of the library writes. Plain blocking calls, one fiber a connection, one
// worker.
//
//   fiber_echo [--port N] [--buffer 4096|512]      the buffer of a connection, on its fiber's stack
//
// Prints `listening on 127.0.0.1:PORT` and exits with 0 on SIGINT or SIGTERM.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "sylar/io/iomanager.h"

namespace {

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::_Exit(1);
}

bool writeAll(int fd, const char* data, ssize_t size) {
  while (size > 0) {
    const ssize_t written = write(fd, data, size);
    if (written <= 0) return false;
    data += written;
    size -= written;
  }
  return true;
}

template <size_t kBufferBytes>
void echo(int fd) {
  char buffer[kBufferBytes];
  for (;;) {
    const ssize_t size = read(fd, buffer, sizeof buffer);
    if (size <= 0 || !writeAll(fd, buffer, size)) break;
  }
  close(fd);
}

int listenOn(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);  // accepted sockets inherit it
  sockaddr_in address = {};
  socklen_t length = sizeof address;
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0) die("bind");
  if (listen(fd, SOMAXCONN) != 0) die("listen");
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  std::printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return fd;
}

void serve(uint16_t port, void (*handler)(int)) {
  const int listener = listenOn(port);
  for (;;) {
    const int fd = accept(listener, nullptr, nullptr);
    if (fd < 0) die("accept");
    sylar::IOManager::GetThis()->place([fd, handler] { handler(fd); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  uint16_t port = 0;
  void (*handler)(int) = echo<4096>;
  bool good = argc % 2 == 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view value = argv[i + 1];
    if (name == "--port") {
      port = static_cast<uint16_t>(std::atoi(argv[i + 1]));
    } else if (name == "--buffer" && value == "512") {
      handler = echo<512>;
    } else if (name != "--buffer" || value != "4096") {
      good = false;
    }
  }
  if (!good) {
    std::fprintf(stderr, "usage: fiber_echo [--port N] [--buffer 4096|512]\n");
    return 2;
  }

  std::signal(SIGPIPE, SIG_IGN);
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  sigset_t ending;  // blocked before the worker starts, so that only sigwait takes them
  sigemptyset(&ending);
  sigaddset(&ending, SIGINT);
  sigaddset(&ending, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);

  sylar::IOManager iom(1, false, "echo");
  iom.schedule([port, handler] { serve(port, handler); });
  int number = 0;
  sigwait(&ending, &number);
  std::_Exit(0);  // nothing to save: the connections are those of a load generator
}
