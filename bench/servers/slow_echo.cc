// An echo server of which some requests are slow, as a user writes it: it sleeps, or computes, where a message asks for that.
//
//   slow_echo
//
// Prints `listening on 127.0.0.1:PORT` and exits with 0 on SIGINT or SIGTERM.
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>

#include "bench/support/loopback.h"
#include "bench/support/slow.h"
#include "sylar/iomanager.h"

namespace {

int64_t cpuNs() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

void compute() {
  const int64_t end_ns = cpuNs() + bench::kSlowMs * 1'000'000LL;
  while (cpuNs() < end_ns) {
  }
}

void echo(int fd) {
  char buffer[4096];
  for (;;) {
    const ssize_t size = read(fd, buffer, sizeof buffer);
    if (size <= 0) break;
    if (buffer[size - 1] == static_cast<char>(bench::Slow::kSleep)) usleep(bench::kSlowMs * 1000);
    if (buffer[size - 1] == static_cast<char>(bench::Slow::kCompute)) compute();
    if (write(fd, buffer, size) != size) break;
  }
  close(fd);
}

void serve() {
  const int listener = bench::listenOn(0, 0);
  for (;;) {
    const int fd = accept(listener, nullptr, nullptr);
    if (fd < 0) bench::die("accept");
    sylar::IOManager::GetThis()->place([fd] { echo(fd); });
  }
}

}  // namespace

int main() {
  std::signal(SIGPIPE, SIG_IGN);
  bench::raiseFileLimit();
  const sigset_t ending = bench::blockEnding();

  sylar::IOManager iom(1, false, "echo");
  iom.schedule(serve);
  bench::endAt(ending);
}
