// pause, sigsuspend, sigwait and similar calls: a fiber waits for a signal of its thread. Source: pause(2), sigsuspend(2),
// sigpause(3), sigwait(3), sigwaitinfo(2).
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sylar/check.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/sent_signals.h"
#include "sylar/hook/fd/descriptor_wait.h"
#include "sylar/hook/fd/poll.h"

namespace sylar::detail {
namespace {

/// Waits until a handler has run, under the thread's mask or `mask`. Returns -1 with errno, which is EINTR then.
int awaitHandler(const sigset_t* mask) {
  CallWait call(EndedBy::kAwaited, mask);
  while (pollAs(call, nullptr, 0, kNever, mask) == 0) continue;
  return -1;
}

/// Returns all signals but those of `set`, which the kernel has read.
sigset_t othersThan(const sigset_t& set) {
  sigset_t others;
  ::sigfillset(&others);
  for (int signal = 1; signal < NSIG; ++signal) {
    if (::sigismember(&set, signal) == 1) ::sigdelset(&others, signal);
  }
  return others;
}

/// Takes a signal of `set`, which the thread blocks. Returns its number or -errno; -EAGAIN if there was none in time.
int take(EpollEngine& engine, CallWait& call, const sigset_t* set, siginfo_t* info, int64_t timeout_ns) {
  SYLAR_DCHECK(timeout_ns != 0 && mayPark());
  constexpr timespec kNoTime{};
  engine.chargeCall();
  yieldIfBudgetIsSpent(engine);
  const auto look = [=] {
    const long taken = attempt::keepingErrno([=] { return real::sigtimedwait(set, info, &kNoTime); });
    return taken == -EAGAIN ? 0 : static_cast<int>(taken);
  };
  if (const int taken = look()) return taken;
  const auto [error, until] = untilReady(timeout_ns);
  if (error != 0) return -error;
  const sigset_t others = othersThan(*set);
  DescriptorWait wait(nullptr, 0, engine, call);
  wait.lookAlsoFor(&others);
  const int taken = wait.run(until, [&] {
    const int sent = takeSent(*set, info);
    return sent != 0 ? sent : look();
  });
  if (taken == DescriptorWait::kPassOn) {
    timespec left;
    return static_cast<int>(
        attempt::keepingErrno([&, end = until] { return real::sigtimedwait(set, info, timeLeft(end, left)); }));
  }
  return taken == 0 ? -EAGAIN : taken;
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int pause() {
  countCall(Hook::pause);
  return hookEngine() == nullptr ? real::pause() : awaitHandler(nullptr);
}

int sigsuspend(const sigset_t* mask) {
  countCall(Hook::sigsuspend);
  return hookEngine() == nullptr ? real::sigsuspend(mask) : awaitHandler(mask);
}
int __sigsuspend(const sigset_t* mask) { return sigsuspend(mask); }

int __xpg_sigpause(int signal) {
  sigset_t mask;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return ::sigdelset(&mask, signal) == 0 ? sigsuspend(&mask) : -1;
}

int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* timeout) {
  countCall(Hook::sigtimedwait);
  EpollEngine* const engine = hookEngine();
  timespec time{};
  const bool is_timeout = engine == nullptr || timeout == nullptr || probe::duration(timeout, &time) == 0;
  const int64_t timeout_ns = timeoutNs(timeout == nullptr ? nullptr : &time);
  if (engine != nullptr && timeout_ns == 0) chargePoll(*engine);
  if (engine == nullptr || timeout_ns == 0 || !is_timeout) {
    const int taken = real::sigtimedwait(set, info, timeout);
    if (engine == nullptr || taken >= 0 || errno != EAGAIN) return taken;
    const int sent = takeSent(*set, info);
    return sent != 0 ? sent : -1;
  }
  CallWait call(EndedBy::kAny);
  return static_cast<int>(IoCall::result(take(*engine, call, set, info, timeout_ns)));
}

int sigwaitinfo(const sigset_t* set, siginfo_t* info) { return sigtimedwait(set, info, nullptr); }

/// Unlike the others it returns the error number, and no handler ends it.
int sigwait(const sigset_t* set, int* signal) {
  countCall(Hook::sigwait);
  EpollEngine* const engine = hookEngine();
  if (engine == nullptr) return real::sigwait(set, signal);
  CallWait call(EndedBy::kCancel);
  call.begin();
  const int taken = take(*engine, call, set, nullptr, kNever);
  if (taken < 0) return -taken;
  *signal = taken;
  return 0;
}

}  // extern "C"
