#include "sylar/signal_wait.h"

#include <fmt/format.h>

#include <stdexcept>

#include "sylar/check.h"

namespace sylar {

SignalWait::SignalWait(std::initializer_list<int> signals) {
  ::sigemptyset(&m_signals);
  for (const int signal : signals) {
    if (::sigaddset(&m_signals, signal) != 0)
      throw std::invalid_argument(fmt::format("sylar::SignalWait: {} is no signal", signal));
  }
  SYLAR_CHECK_EQ(::pthread_sigmask(SIG_BLOCK, &m_signals, &m_before), 0);
}

SignalWait::~SignalWait() { ::pthread_sigmask(SIG_SETMASK, &m_before, nullptr); }

int SignalWait::wait() {
  int signal = 0;
  SYLAR_CHECK_EQ(::sigwait(&m_signals, &signal), 0);
  return signal;
}

}  // namespace sylar
