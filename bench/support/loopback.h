// What every server of the benchmarks does before it serves.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace bench {

[[noreturn]] inline void die(const char* what) {
  std::perror(what);
  std::_Exit(1);
}

/// As many descriptors as the process may have.
inline void raiseFileLimit() {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

/// The signals that end a server, blocked from here on: before it has threads, so that only endAt() takes them.
inline sigset_t blockEnding() {
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGINT);
  sigaddset(&ending, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  return ending;
}

/// Waits for one of them and ends the process: there is nothing to save, the connections are those of a load generator.
[[noreturn]] inline void endAt(const sigset_t& ending) {
  int number = 0;
  sigwait(&ending, &number);
  std::_Exit(0);
}

/// Prints what the driver waits for.
inline void sayListening(uint16_t port) {
  std::printf("listening on 127.0.0.1:%d\n", port);
  std::fflush(stdout);
}

/// A listening socket on loopback, said to the driver. `flags`: SOCK_NONBLOCK or 0. Port 0: any.
inline int listenOn(uint16_t port, int flags) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
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
  sayListening(ntohs(address.sin_port));
  return fd;
}

}  // namespace bench
