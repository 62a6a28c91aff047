// An echo server whose reads have a timeout, or none: what SO_RCVTIMEO costs.
//
//   timeout_echo [--timeout SECONDS]      0, the default: none
//   timeout_echo --count-allocations      echoes to itself instead, and prints what 100 000 reads with a timeout allocate
//
// Prints `listening on 127.0.0.1:PORT` and exits with 0 on SIGINT or SIGTERM.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <new>
#include <string_view>

#include "bench/sleep/report.h"
#include "bench/support/loopback.h"
#include "sylar/iomanager.h"

namespace {

std::atomic<uint64_t> g_allocations{0};

void* allocate(std::size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using bench::die;

void setTimeout(int fd, time_t seconds) {
  const timeval timeout = {seconds, 0};
  if (seconds > 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) != 0) die("setsockopt");
}

void echo(int fd) {
  char buffer[4096];
  for (;;) {
    const ssize_t size = read(fd, buffer, sizeof buffer);
    if (size <= 0 || write(fd, buffer, static_cast<size_t>(size)) != size) break;
  }
  close(fd);
}

[[noreturn]] void serve(time_t timeout) {
  const sigset_t ending = bench::blockEnding();
  sylar::IOManager iom(1, false, "echo");
  iom.schedule([timeout] {
    const int listener = bench::listenOn(0, 0);
    for (;;) {
      const int fd = accept(listener, nullptr, nullptr);
      if (fd < 0) die("accept");
      setTimeout(fd, timeout);
      sylar::IOManager::GetThis()->place([fd] { echo(fd); });
    }
  });
  bench::endAt(ending);
}

/// Two fibers; each read of both parks.
int countAllocations() {
  constexpr int kReads = 100'000;
  constexpr int kWarmUp = 1'000;
  int ends[2];
  uint64_t allocations = 0;
  sylar::WorkerStats before;
  sylar::WorkerStats after;
  {
    sylar::IOManager iom(1, false, "count");
    iom.schedule([&] {
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) die("socketpair");
      for (const int fd : ends) setTimeout(fd, 5);
      iom.schedule([&] { echo(ends[0]); });
      char byte = 'x';
      for (int i = 0; i < kWarmUp + kReads / 2; ++i) {
        if (i == kWarmUp) {
          before = iom.getWorkerStats();
          allocations = g_allocations;
        }
        if (write(ends[1], &byte, 1) != 1 || read(ends[1], &byte, 1) != 1) die("echo");
      }
      allocations = g_allocations - allocations;
      after = iom.getWorkerStats();
      close(ends[1]);
    });
  }
  std::printf("{\"reads\": %d, \"armed\": %llu, \"pushed\": %llu, \"relinked\": %llu, \"allocations\": %llu}\n", kReads,
              static_cast<unsigned long long>(after.timeouts_armed - before.timeouts_armed),
              static_cast<unsigned long long>(after.timeouts_pushed - before.timeouts_pushed),
              static_cast<unsigned long long>(after.timeouts_relinked - before.timeouts_relinked),
              static_cast<unsigned long long>(allocations));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  bench::raiseFileLimit();
  if (argc == 2 && std::string_view(argv[1]) == "--count-allocations") return countAllocations();
  if (argc == 1) serve(0);
  if (argc == 3 && std::string_view(argv[1]) == "--timeout") serve(std::atoi(argv[2]));
  std::fprintf(stderr, "usage: timeout_echo [--timeout SECONDS | --count-allocations]\n");
  return 2;
}
