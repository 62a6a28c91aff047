// Very many that sleep again and again, on one thread.
//
//   sleepers fibers|raw [--count 10000] [--ms 10] [--seconds 3]
//
// fibers: a fiber each, in usleep(). raw: the yardstick, a ring of deadlines and epoll_pwait2; nobody can do with less.
// Prints one line of JSON: wake-ups of those that were possible, lateness, and how much of a core it took.
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>
#include <vector>

#include "bench/sleep/report.h"
#include "sylar/iomanager.h"

namespace {

using bench::die;
using bench::kMs;
using bench::now;

struct Options {
  size_t count = 10'000;
  int64_t ms = 10;
  int64_t seconds = 3;
};

void print(std::string_view kind, const Options& options, bench::Lateness& late, int64_t cpu_ns) {
  const double possible = static_cast<double>(options.count) * static_cast<double>(options.seconds * 1'000 / options.ms);
  std::printf("{\"kind\": \"%s\", \"achieved\": %.4f, \"cpu\": %.4f, \"cpu_ns_per_wake\": %.0f, %s}\n", kind.data(),
              static_cast<double>(late.count()) / possible,
              static_cast<double>(cpu_ns) / 1e9 / static_cast<double>(options.seconds),
              static_cast<double>(cpu_ns) / static_cast<double>(late.count()), late.json().c_str());
}

int64_t cpuNs() { return bench::readClock(CLOCK_PROCESS_CPUTIME_ID); }

void runFibers(const Options& options) {
  const int64_t length_ns = options.ms * kMs;
  const int64_t begin_ns = now() + 1'000 * kMs;  // until then all of them have begun, one after the other over a period
  const int64_t end_ns = begin_ns + options.seconds * 1'000 * kMs;
  bench::Lateness late;  // of all fibers: one worker
  sylar::IOManager iom(1, false, "sleep");
  for (size_t i = 0; i < options.count; ++i) {
    iom.schedule([&, i] {
      const int64_t mine_ns = begin_ns - length_ns + static_cast<int64_t>(i) * length_ns / static_cast<int64_t>(options.count);
      usleep(static_cast<useconds_t>(std::max<int64_t>(mine_ns - now(), 0) / 1'000));
      for (int64_t woke_ns = now(); woke_ns < end_ns;) {
        const int64_t due_ns = woke_ns + length_ns;
        usleep(static_cast<useconds_t>(options.ms * 1'000));
        woke_ns = now();
        if (woke_ns >= begin_ns && woke_ns < end_ns) late.add(woke_ns - due_ns);
      }
    });
  }
  usleep(static_cast<useconds_t>((begin_ns - now()) / 1'000));
  const int64_t cpu_begin_ns = cpuNs();
  usleep(static_cast<useconds_t>((end_ns - now()) / 1'000));
  const int64_t cpu_ns = cpuNs() - cpu_begin_ns;
  iom.stop();
  print("fibers", options, late, cpu_ns);
}

void runRaw(const Options& options) {
  prctl(PR_SET_TIMERSLACK, 1);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) die("epoll_create1");
  const int64_t length_ns = options.ms * kMs;
  const int64_t begin_ns = now();
  const int64_t end_ns = begin_ns + options.seconds * 1'000 * kMs;
  const int64_t cpu_begin_ns = cpuNs();
  std::vector<int64_t> due(options.count);  // all sleep equally long, so the first in is the first out
  for (size_t i = 0; i < options.count; ++i) {
    due[i] = begin_ns + static_cast<int64_t>(i) * length_ns / static_cast<int64_t>(options.count);
  }
  bench::Lateness late;
  size_t first = 0;
  for (int64_t at = begin_ns; at < end_ns; at = now()) {
    if (const int64_t wait_ns = due[first] - at; wait_ns > 0) {
      const timespec wait = {wait_ns / 1'000'000'000, wait_ns % 1'000'000'000};
      epoll_event event;
      syscall(SYS_epoll_pwait2, epoll, &event, 1, &wait, nullptr, 0);
      continue;
    }
    late.add(at - due[first]);
    due[first] = at + length_ns;
    first = (first + 1) % options.count;
  }
  print("raw", options, late, cpuNs() - cpu_begin_ns);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  bool good = argc % 2 == 0;
  const std::string_view kind = argc > 1 ? argv[1] : "";
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const int64_t value = std::atoll(argv[i + 1]);
    if (value < 1) good = false;
    if (name == "--count") {
      options.count = static_cast<size_t>(value);
    } else if (name == "--ms") {
      options.ms = value;
    } else if (name == "--seconds") {
      options.seconds = value;
    } else {
      good = false;
    }
  }
  if (!good || (kind != "fibers" && kind != "raw")) {
    std::fprintf(stderr, "usage: sleepers fibers|raw [--count 10000] [--ms 10] [--seconds 3]\n");
    return 2;
  }
  kind == "raw" ? runRaw(options) : runFibers(options);
}
