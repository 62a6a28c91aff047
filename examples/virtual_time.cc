// Tests that take no time: a client that retries for an hour, and a timer to which the test advances time by hand. With a test
// framework it looks the same; here main() checks.
#include "sylar/testing/virtual_time.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "sylar/iomanager.h"

namespace {

using namespace std::chrono_literals;

void check(bool holds, const char* what) {
  std::printf("%s: %s\n", what, holds ? "yes" : "NO");
  if (!holds) std::exit(1);
}

// [code]
/// Retries, in ordinary blocking code that knows nothing of virtual time: 1 s, 2 s, 4 s ... between the attempts, 1 h in all.
template <class Attempt>
bool retry(Attempt attempt) {
  unsigned pause = 1;
  for (unsigned waited = 0; waited < 3600; waited += pause, pause *= 2) {
    if (attempt()) return true;
    sleep(pause);
  }
  return false;
}
// [code]

// [run]
void givesUpAfterAnHour() {
  int attempts = 0;
  sylar::VirtualTime time;
  time.run([&attempts] { check(!retry([&attempts] { return ++attempts > 1000; }), "it gives up"); });
  check(time.elapsed() == 4095s, "after 1 + 2 + 4 + ... + 2048 s");
  check(attempts == 12, "and twelve attempts");
}
// [run]

// [hand]
void firesWhenItIsDue() {
  sylar::VirtualTime time(sylar::VirtualTime::kByHand);
  sylar::SchedulerOptions options;
  options.use_caller = false;
  options.clock = &time;
  sylar::IOManager iom(options);
  int fired = 0;
  iom.addTimer(60'000, [&fired] { ++fired; });
  time.advance(59s);  // returns when everything that is due by then is done
  check(fired == 0, "not after 59 s");
  time.advance(1s);
  check(fired == 1, "after 60 s");
}
// [hand]

}  // namespace

int main() {
  const auto start = std::chrono::steady_clock::now();
  givesUpAfterAnHour();
  firesWhenItIsDue();
  check(std::chrono::steady_clock::now() - start < 10s, "in less than 10 s of real time");
}
