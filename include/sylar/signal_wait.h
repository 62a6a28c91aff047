// A SignalWait waits for the signals that are to end a program.
//
//   int main() {
//     sylar::SignalWait end;       // made first, so that threads made later leave the signals to it
//     sylar::IOManager iom(2);
//     ...
//     end.wait();                  // until SIGINT or SIGTERM
//   }
//
// Choose Application instead for a service that also reloads its settings.
//
// Thread safety: belongs to the thread that made it.
#pragma once

#include <signal.h>

#include <initializer_list>

namespace sylar {

/// Waits for the signals that are to end a program.
class SignalWait {
 public:
  /// Blocks `signals` on the calling thread, and so on every thread that it makes from now on. Throws std::invalid_argument if
  /// one of them is no signal. Source: pthread_sigmask(3).
  explicit SignalWait(std::initializer_list<int> signals = {SIGINT, SIGTERM});
  /// Restores the calling thread's earlier mask. A signal that has come and was not waited for then has its usual effect.
  ~SignalWait();
  SignalWait(const SignalWait&) = delete;
  SignalWait& operator=(const SignalWait&) = delete;

  /// Returns the next of the signals, including one that came before the call. Blocks the thread, so it must not be called in a
  /// fiber. Source: sigwait(3).
  int wait();

 private:
  sigset_t m_signals;
  sigset_t m_before;
};

}  // namespace sylar
