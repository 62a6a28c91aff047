// The server under test: the echo server that a user of the library writes. Plain blocking calls, one fiber a connection.
//
//   fiber_echo [--port N] [--buffer 4096|512|64] [--workers 1] [--spin-us 0] [--trim-ms 0] [--engine epoll|uring]
//              [--identity own|worker] [--tell 1] [--deep 1]
//
// --buffer  of a connection, on its fiber's stack
// --spin-us how long an idle worker polls before it sleeps
// --trim-ms how long a connection waits before the unused part of its stack is given back; 0: it is kept
// --engine  what makes the calls of its fibers (setIOEngine); auto if it is not given
// --identity
//           as which thread a connection runs (SchedulerOptions::identity); own if it is not given
// --deep 1  each request touches 32 KiB of the stack, as a call into a large library does, and the buffer has 64 bytes
// --tell 1  instead of echoing, each connection tells the id of the thread that serves it, and waits for its end
//
// Prints `listening on 127.0.0.1:PORT` and exits with 0 on SIGINT or SIGTERM.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "bench/support/loopback.h"
#include "sylar/iomanager.h"
#include "sylar/util.h"

namespace {

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

/// Touches 32 KiB of stack.
[[gnu::noinline]] void goDeep() {
  volatile char frames[32 * 1024];
  for (size_t i = 0; i < sizeof frames; i += 1024) frames[i] = 1;
}

void echoDeep(int fd) {
  char buffer[64];
  for (;;) {
    const ssize_t size = read(fd, buffer, sizeof buffer);
    goDeep();
    if (size <= 0 || !writeAll(fd, buffer, size)) break;
  }
  close(fd);
}

void tell(int fd) {
  char line[16];
  if (writeAll(fd, line, std::snprintf(line, sizeof line, "%d\n", sylar::GetThreadId()))) {
    while (read(fd, line, sizeof line) > 0) {
    }
  }
  close(fd);
}

void serve(uint16_t port, void (*handler)(int)) {
  const int listener = bench::listenOn(port, 0);
  for (;;) {
    const int fd = accept(listener, nullptr, nullptr);
    if (fd < 0) bench::die("accept");
    sylar::IOManager::GetThis()->place([fd, handler] { handler(fd); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  uint16_t port = 0;
  size_t workers = 1;
  std::chrono::microseconds spin{0};
  std::chrono::milliseconds trim_after{0};
  void (*handler)(int) = echo<4096>;
  sylar::FiberIdentity identity = sylar::FiberIdentity::kOwn;
  bool good = argc % 2 == 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view value = argv[i + 1];
    if (name == "--port") {
      port = static_cast<uint16_t>(std::atoi(argv[i + 1]));
    } else if (name == "--workers") {
      workers = std::strtoul(argv[i + 1], nullptr, 10);
    } else if (name == "--spin-us") {
      spin = std::chrono::microseconds(std::strtoul(argv[i + 1], nullptr, 10));
    } else if (name == "--trim-ms") {
      trim_after = std::chrono::milliseconds(std::strtoul(argv[i + 1], nullptr, 10));
    } else if (name == "--engine" && (value == "epoll" || value == "uring")) {
      sylar::setIOEngine(value == "epoll" ? sylar::IOEngine::kEpoll : sylar::IOEngine::kUring);
    } else if (name == "--identity" && (value == "own" || value == "worker")) {
      identity = value == "own" ? sylar::FiberIdentity::kOwn : sylar::FiberIdentity::kWorker;
    } else if (name == "--deep" && value == "1") {
      handler = echoDeep;
    } else if (name == "--tell" && value == "1") {
      handler = tell;
    } else if (name == "--buffer" && value == "512") {
      handler = echo<512>;
    } else if (name == "--buffer" && value == "64") {
      handler = echo<64>;
    } else if (name != "--buffer" || value != "4096") {
      good = false;
    }
  }
  if (!good) {
    std::fprintf(stderr,
                 "usage: fiber_echo [--port N] [--buffer 4096|512|64] [--workers 1] [--spin-us 0] [--trim-ms 0] [--engine "
                 "epoll|uring] [--identity own|worker] [--tell 1] [--deep 1]\n");
    return 2;
  }

  std::signal(SIGPIPE, SIG_IGN);
  bench::raiseFileLimit();
  const sigset_t ending = bench::blockEnding();

  sylar::IOManager iom(
      {.threads = workers, .use_caller = false, .name = "echo", .spin = spin, .trim_after = trim_after, .identity = identity});
  iom.schedule([port, handler] { serve(port, handler); });
  bench::endAt(ending);
}
