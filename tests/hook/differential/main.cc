// Compares the hooks with libc on plans made from seeds, until a number of plans or of seconds is through, or a plan differs.
//
//   hook_differential [--seed N] [--plans N] [--seconds N] [--steps N] [--replay SEED] [--engine auto|epoll|uring]
//
// A replay also tells what libc gave.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "tests/hook/differential/compare.h"

namespace {

using namespace sylar::test::differential;  // NOLINT: this is its program

struct Options {
  uint64_t seed = 1;
  uint64_t plans = UINT64_MAX;
  int64_t seconds = INT64_MAX;
  int steps = 40;
  bool tells = false;
};

bool parse(int count, char** words, Options& options) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = words[i];
    const uint64_t value = std::strtoull(words[i + 1], nullptr, 10);
    if (name == "--seed") {
      options.seed = value;
    } else if (name == "--plans") {
      options.plans = value;
    } else if (name == "--seconds") {
      options.seconds = static_cast<int64_t>(value);
    } else if (name == "--steps") {
      options.steps = static_cast<int>(value);
    } else if (name == "--engine") {
      const std::string engine = words[i + 1];
      sylar::setIOEngine(engine == "epoll"   ? sylar::IOEngine::kEpoll
                         : engine == "uring" ? sylar::IOEngine::kUring
                                             : sylar::IOEngine::kAuto);
    } else if (name == "--replay") {
      options.seed = value;
      options.plans = 1;
      options.tells = true;
    } else {
      return false;
    }
  }
  return count % 2 == 1;
}

}  // namespace

int main(int count, char** words) {
  Options options;
  if (!parse(count, words, options)) {
    std::fputs(
        "usage: hook_differential [--seed N] [--plans N] [--seconds N] [--steps N] [--replay SEED] [--engine auto|epoll|uring]\n",
        stderr);
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  struct sigaction interrupts {};  // without SA_RESTART
  interrupts.sa_handler = [](int) {};
  ::sigaction(SIGUSR1, &interrupts, nullptr);
  sylar::setConnectTimeout(std::chrono::milliseconds(0));  // libc has none
  Comparison comparison;
  const auto begun = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begun).count();
  };
  uint64_t plans = 0;
  for (; plans < options.plans && seconds() < options.seconds; ++plans) {
    const uint64_t seed = options.seed + plans;
    if (options.tells) std::fputs(comparison.tell(planOf(seed, options.steps)).c_str(), stdout);
    auto found = comparison.compare(planOf(seed, options.steps));
    if (!found) continue;
    std::printf("the hooks differ from libc after %lld s, seed %llu, --steps %d\n", static_cast<long long>(seconds()),
                static_cast<unsigned long long>(seed), options.steps);
    std::fputs(describe(*found).c_str(), stdout);
    std::fflush(stdout);
    std::printf("made small:\n%s", describe(comparison.shrink(*found)).c_str());
    return 1;
  }
  std::printf("%llu plans, %llu steps, %llu plans dropped because libc gave this and that: no difference\n",
              static_cast<unsigned long long>(plans), static_cast<unsigned long long>(comparison.steps()),
              static_cast<unsigned long long>(comparison.dropped()));
  return plans > 0 && comparison.dropped() * 2 > plans ? 1 : 0;  // a comparison that drops most of its plans proves nothing
}
