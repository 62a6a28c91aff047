// A server of plain blocking calls: accept, read, write, close. Each connection is a fiber; Ctrl-C ends it in order.
//
//   echo_server [PORT] [WORKERS]      defaults: 8007, 2; port 0: any
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>

#include "sylar/iomanager.h"
#include "sylar/signal_wait.h"

std::mutex g_mutex;
std::set<int> g_connections;
bool g_ending = false;

void echo(int fd) {
  char buffer[4096];
  ssize_t n;
  while ((n = read(fd, buffer, sizeof buffer)) > 0 && write(fd, buffer, static_cast<size_t>(n)) == n) {
  }
  const std::lock_guard lock(g_mutex);
  g_connections.erase(fd);
  close(fd);
}

void serve(int listener) {
  for (;;) {
    const int fd = accept(listener, nullptr, nullptr);
    if (fd < 0 && errno == EBADF) return;  // closed by main
    if (fd < 0) {
      usleep(100'000);  // for instance too many open files; some connection will end
      continue;
    }
    const std::lock_guard lock(g_mutex);
    g_connections.insert(fd);
    if (g_ending) shutdown(fd, SHUT_RD);
    sylar::IOManager::GetThis()->place([fd] { echo(fd); });
  }
}

int listenOn(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // accepted sockets inherit it
  sockaddr_in address{AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {}};
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, SOMAXCONN) != 0) {
    std::perror("echo_server: bind");
    std::exit(1);
  }
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  std::printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return fd;
}

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  sylar::SignalWait end;  // takes SIGINT and SIGTERM; must be made before the workers
  const int listener = listenOn(static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8007));
  sylar::IOManager iom(argc > 2 ? static_cast<size_t>(std::atoi(argv[2])) : 2, false, "echo");
  iom.schedule([listener] { serve(listener); });
  end.wait();
  close(listener);
  const std::lock_guard lock(g_mutex);
  g_ending = true;
  for (const int fd : g_connections) shutdown(fd, SHUT_RD);  // data that has arrived is still answered
}
