// For tests of signal handlers: a handler that counts, and calls that wait until a signal or `finish` ends them.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <string>

#include "tests/hook/support.h"

namespace sylar::test {

inline std::atomic<int> g_handled{0};

/// Installs a handler of SIGUSR1 that counts, and takes it away again.
class CountingHandler {
 public:
  explicit CountingHandler(
      int flags, void (*handler)(int) = [](int) { g_handled.fetch_add(1); }) {
    struct sigaction action {};
    action.sa_flags = flags;
    action.sa_handler = handler;
    g_handled.store(0);
    EXPECT_EQ(::sigaction(SIGUSR1, &action, &m_before), 0);
  }
  ~CountingHandler() { ::sigaction(SIGUSR1, &m_before, nullptr); }
  CountingHandler(const CountingHandler&) = delete;
  CountingHandler& operator=(const CountingHandler&) = delete;

 private:
  struct sigaction m_before {};
};

/// Sets hook.eintr for a scope.
class EintrMode {
 public:
  explicit EintrMode(HookEintr mode) { setHookEintr(mode); }
  ~EintrMode() { setHookEintr(HookEintr::kRestart); }
  EintrMode(const EintrMode&) = delete;
  EintrMode& operator=(const EintrMode&) = delete;
};

/// How long the sleeps among the calls take.
inline int g_sleep_ms = 60'000;

/// A call that waits.
struct Waiting {
  std::function<long()> call;
  std::function<void()> finish;  ///< lets it succeed; none if it sleeps
};

struct WaitingCase {
  std::string name;
  bool never_restarted;
  std::function<Waiting()> make;
};
inline std::ostream& operator<<(std::ostream& out, const WaitingCase& one) { return out << one.name; }

std::vector<WaitingCase> waitingCases();

}  // namespace sylar::test
