// poll and ppoll. They ask the kernel without waiting, and wait if nothing is ready. Source: poll(2).
#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/sent_signals.h"
#include "sylar/hook/fd/descriptor_wait.h"
#include "sylar/hook/fd/poll.h"

namespace sylar::detail {
namespace {

/// Returns the kernel's present answer, or -errno.
int pollNow(pollfd* fds, nfds_t count, const sigset_t* mask) {
  constexpr timespec kNoTime{};
  const auto call = [=] { return mask == nullptr ? real::poll(fds, count, 0) : real::ppoll(fds, count, &kNoTime, mask); };
  const auto look = [=] { return static_cast<int>(attempt::keepingErrno(call)); };
  if (mask != nullptr) return Interruptible::lettingSignalsThrough(look);
  int ready;
  do {
    ready = look();
  } while (ready == -EINTR);  // whether a handler ends the call is Interruptible's affair
  return ready;
}

int pollInFiber(EpollEngine& engine, CallWait& call, pollfd* fds, nfds_t count, int64_t timeout_ns, const sigset_t* mask) {
  SYLAR_DCHECK(timeout_ns != 0 && mayPark());
  engine.chargeCall();
  yieldIfBudgetIsSpent(engine);
  // The first look also proves the array and the mask readable.
  if (const int ready = pollNow(fds, count, mask)) return static_cast<int>(IoCall::result(ready));
  const auto [error, until] = untilReady(timeout_ns);
  if (error != 0) return static_cast<int>(IoCall::result(-error));
  DescriptorWait wait(fds, count, engine, call);
  wait.stayWithFiles();
  wait.letThrough(mask);
  const int ready = wait.run(until, [=] { return pollNow(fds, count, nullptr); });
  if (ready == -EBADF) return wait.markClosed(fds);
  timespec left;
  if (ready == DescriptorWait::kPassOn) return real::ppoll(fds, count, timeLeft(until, left), mask);
  return static_cast<int>(IoCall::result(ready));
}

}  // namespace

int pollAs(CallWait& call, pollfd* fds, nfds_t count, int64_t timeout_ns, const sigset_t* mask) {
  EpollEngine* const engine = hookEngine();
  if (engine != nullptr && timeout_ns != 0) return pollInFiber(*engine, call, fds, count, timeout_ns, mask);
  if (engine != nullptr) chargePoll(*engine);
  const timespec timeout = attempt::toTimespec(timeout_ns);
  return real::ppoll(fds, count, timeout_ns == kNever ? nullptr : &timeout, mask);
}

}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

[[noreturn]] void __chk_fail();

int poll(pollfd* fds, nfds_t count, int timeout_ms) {
  countCall(Hook::poll);
  count = static_cast<unsigned>(count);  // as the kernel does
  EpollEngine* const engine = hookEngine();
  if (engine != nullptr && timeout_ms == 0) chargePoll(*engine);
  if (engine == nullptr || timeout_ms == 0) return real::poll(fds, count, timeout_ms);
  CallWait call(EndedBy::kAny);
  return pollInFiber(*engine, call, fds, count, timeout_ms < 0 ? kNever : timeout_ms * 1'000'000LL, nullptr);
}

int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  countCall(Hook::ppoll);
  count = static_cast<unsigned>(count);
  EpollEngine* const engine = hookEngine();
  timespec time{};
  const bool is_timeout = engine == nullptr || timeout == nullptr || probe::duration(timeout, &time) == 0;
  const int64_t timeout_ns = timeoutNs(timeout == nullptr ? nullptr : &time);
  if (engine != nullptr && timeout_ns == 0) chargePoll(*engine);
  if (engine == nullptr || timeout_ns == 0 || !is_timeout) {
    const int ready = real::ppoll(fds, count, timeout, mask);
    if (ready != 0 || engine == nullptr || mask == nullptr || !isSentThrough(*mask)) return ready;
    return static_cast<int>(IoCall::result(letSignalsThrough(mask)));
  }
  CallWait call(EndedBy::kAny, mask);
  return pollInFiber(*engine, call, fds, count, timeout_ns, mask);
}

int __poll(pollfd* fds, nfds_t count, int timeout_ms) { return poll(fds, count, timeout_ms); }

int __poll_chk(pollfd* fds, nfds_t count, int timeout_ms, size_t size_bytes) {
  if (size_bytes / sizeof *fds < count) __chk_fail();
  return poll(fds, count, timeout_ms);
}

int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask, size_t size_bytes) {
  if (size_bytes / sizeof *fds < count) __chk_fail();
  return ppoll(fds, count, timeout, mask);
}

}  // extern "C"
