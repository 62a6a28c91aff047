// What descriptors see of a storm: an echo over a loopback socket while very many timers fall due at once, on one worker.
//
//   storm [--timers 1000000]
//
// The client is a thread that asks as fast as it is answered. Prints one line of JSON: round trips before and during the storm,
// and the longest time in which the worker computed without looking at the socket (its CPU time between two answers, so that a
// machine's other work does not count).
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "bench/sleep/report.h"
#include "sylar/iomanager.h"
#include "sylar/timer_stats.h"

namespace {

using bench::die;
using bench::kMs;
using bench::Lateness;
using bench::now;

enum Phase { kBefore, kStorm, kOver };

struct Ends {
  int server;
  int client;
};

Ends connectLoopback() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  socklen_t length = sizeof address;
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, generic, length) != 0 || listen(listener, 1) != 0) die("listen");
  getsockname(listener, generic, &length);
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(client, generic, length) != 0) die("connect");
  const int server = accept(listener, nullptr, nullptr);
  if (server < 0) die("accept");
  close(listener);
  const int one = 1;
  for (const int fd : {server, client}) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return {server, client};
}

void run(uint64_t timers) {
  const Ends ends = connectLoopback();
  std::atomic<int> phase{kBefore};
  std::atomic<uint64_t> runs{0};
  clockid_t worker_clock = 0;
  std::atomic<bool> ready{false};
  int64_t storm_begun_ns = 0;
  int64_t storm_cpu_ns = 0;
  int64_t storm_over_ns = 0;

  sylar::IOManager iom(1, false, "storm");
  iom.schedule([&] {
    char byte;
    pthread_getcpuclockid(pthread_self(), &worker_clock);
    ready = true;
    while (read(ends.server, &byte, 1) == 1 && write(ends.server, &byte, 1) == 1) continue;
  });
  Lateness before;
  Lateness during;
  Lateness gaps;
  std::thread client([&] {
    char byte = 'x';
    while (phase != kOver) {
      const int64_t sent = now();
      const int64_t worker_cpu_ns = ready ? bench::readClock(worker_clock) : 0;
      if (write(ends.client, &byte, 1) != 1 || read(ends.client, &byte, 1) != 1) break;
      const int64_t trip = now() - sent;
      if (phase == kStorm && ready) gaps.add(bench::readClock(worker_clock) - worker_cpu_ns);
      (phase == kBefore ? before : during).add(trip);
    }
    shutdown(ends.client, SHUT_WR);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));

  iom.schedule([&] {
    const int64_t due = now() + 3'000 * kMs;
    for (uint64_t i = 0; i < timers; ++i) {
      const auto left_ms = static_cast<uint64_t>((due - now()) / kMs);
      iom.addTimer(left_ms, [&] {
        if (runs.fetch_add(1, std::memory_order_relaxed) == 0) {
          storm_begun_ns = now();
          storm_cpu_ns = bench::readClock(CLOCK_THREAD_CPUTIME_ID);
          phase = kStorm;
        }
        if (runs.load(std::memory_order_relaxed) == timers) {
          storm_cpu_ns = bench::readClock(CLOCK_THREAD_CPUTIME_ID) - storm_cpu_ns;
          storm_over_ns = now();
          phase = kOver;
        }
      });
    }
    if (now() >= due - kMs) bench::die("storm: too slow to arm that many before they are due");
  });
  client.join();
  iom.stop();
  close(ends.server);
  close(ends.client);
  const auto stats = iom.getIOTimerStats();
  std::printf(
      "{\"timers\": %llu, \"ran\": %llu, \"storm_ms\": %.1f, \"cpu_ns_per_timer\": %.0f, \"passes\": %llu, "
      "\"passes_cut\": %llu, \"gaps\": {%s}, \"before\": {%s}, \"during\": {%s}}\n",
      static_cast<unsigned long long>(timers), static_cast<unsigned long long>(runs.load()),
      static_cast<double>(storm_over_ns - storm_begun_ns) / 1e6, static_cast<double>(storm_cpu_ns) / static_cast<double>(timers),
      static_cast<unsigned long long>(stats.passes), static_cast<unsigned long long>(stats.passes_cut), gaps.json().c_str(),
      before.json().c_str(), during.json().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  run(argc == 3 && std::strcmp(argv[1], "--timers") == 0 ? std::strtoull(argv[2], nullptr, 10) : 1'000'000);
}
