#include "sylar/app/signals.h"

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace sylar::detail {
namespace {

sigset_t setOf(std::initializer_list<int> signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : signals) ::sigaddset(&set, signal);
  return set;
}

/// Returns SIGTERM or SIGINT if one comes within `patience`, else 0. Takes all that are pending by then with it.
int takeEndSignal(timespec patience) {
  const sigset_t set = setOf({SIGTERM, SIGINT});
  const int first = ::sigtimedwait(&set, nullptr, &patience);
  if (first < 0) return 0;
  constexpr timespec kNow{};
  while (::sigtimedwait(&set, nullptr, &kNow) > 0) continue;
  return first;
}

}  // namespace

void blockSignals() {
  const sigset_t set = setOf({SIGTERM, SIGINT, SIGHUP, SIGUSR2});
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int awaitSignal() {
  const sigset_t set = setOf({SIGTERM, SIGINT, SIGHUP, SIGUSR2});
  int signal = 0;
  ::sigwait(&set, &signal);  // if several are pending, takes the one with the lowest number
  const int end = takeEndSignal({});
  return (signal == SIGHUP || signal == SIGUSR2) && end != 0 ? end : signal;
}

bool endsBeforeASignal(const std::future<void>& ended) {
  constexpr timespec kMoment{0, 10'000'000};
  while (ended.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    if (takeEndSignal(kMoment) != 0) return false;
  }
  return true;
}

void releaseEndSignals() {
  const sigset_t set = setOf({SIGTERM, SIGINT});
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace sylar::detail
