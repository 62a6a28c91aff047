// A server that ends in time. On Ctrl-C it stops accepting, closes idle connections and finishes pending answers, for at most two
// seconds. A request is a number, the milliseconds of work that it takes. The answer is "taken" at once, and the number when the
// work is done.
//
//   graceful_stop [PORT]      default: 8008; 0: any
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "sylar/iomanager.h"
#include "sylar/signal_wait.h"

using namespace std::chrono_literals;

// [serve]
void serve(int fd) {
  char line[512] = {};
  ssize_t n;
  while ((n = read(fd, line, sizeof line - 1)) > 0) {  // a cancel ends this wait at once ...
    const sylar::this_fiber::CancelShield shield;      // ... but not an answer, until the deadline
    if (write(fd, "taken ", 6) != 6) break;
    usleep(1000 * static_cast<useconds_t>(std::atoi(line)));
    if (write(fd, line, static_cast<size_t>(n)) != n) break;
  }
  close(fd);
}
// [serve]

int listenOn(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {}};
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, SOMAXCONN) != 0) {
    std::perror("graceful_stop: bind");
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
  const int listener = listenOn(static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8008));
  sylar::IOManager iom(2, false, "graceful");
  iom.schedule([&iom, listener] {
    for (int fd; (fd = accept(listener, nullptr, nullptr)) >= 0;) iom.place([fd] { serve(fd); });
  });
  end.wait();
  // [stop]
  close(listener);
  const sylar::StopResult result = iom.stop(sylar::Deadline::after(2s));
  for (const sylar::FiberInfo& left : result.abandoned) std::printf("left: fiber %lu, %s\n", left.id, left.waits_for.c_str());
  // [stop]
  std::puts(result.clean ? "ended" : "ended by force");
  return result.clean ? 0 : 1;
}
