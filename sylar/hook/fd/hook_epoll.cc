// epoll_wait and similar calls. They ask the kernel without waiting, and wait until the epoll descriptor is readable if there is no
// event. Source: epoll_wait(2).
#include <sys/epoll.h>

#include "sylar/base/sys.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/fd/descriptor_wait.h"

namespace sylar::detail {
namespace {

/// Returns the number of events that are there, or -errno. With no time to wait it lets no signal through.
int lookNow(int epoll, epoll_event* events, int most, const sigset_t* mask) {
  return static_cast<int>(attempt::keepingErrno([=] { return real::epoll_pwait(epoll, events, most, 0, mask); }));
}

/// Returns when `timeout_ns` from now or the fiber's DeadlineScope ends, but of the scope only what is still to come. The caller is
/// a loop that serves others, too, and not a call that could fail: libuv aborts the process at an error, gRPC forgets a call to
/// whose memory it goes on writing. So the loop is told once, by 0, that the time is up.
Deadline untilOnce(int64_t timeout_ns) {
  const auto [error, until] = untilReady(timeout_ns);
  return error == 0 ? until : Deadline::after(std::chrono::nanoseconds(timeout_ns), waitClock());
}

int waitInFiber(EpollEngine& engine, int epoll, epoll_event* events, int most, int64_t timeout_ns, const sigset_t* mask) {
  engine.chargeCall();
  yieldIfBudgetIsSpent(engine);
  int ready = lookNow(epoll, events, most, mask);
  if (ready == 0 && mask != nullptr) ready = letSignalsThrough(mask);
  if (ready != 0) return static_cast<int>(IoCall::result(ready));
  const Deadline until = untilOnce(timeout_ns);
  const pollfd readable{epoll, POLLIN, 0};
  CallWait call(EndedBy::kAny, mask);
  DescriptorWait wait(&readable, 1, engine, call);
  wait.stayWithFiles();
  wait.letThrough(mask);
  ready = wait.run(until, [&] { return lookNow(wait.number(), events, most, nullptr); });
  timespec left;
  if (ready == DescriptorWait::kPassOn) return real::epoll_pwait2(wait.number(), events, most, timeLeft(until, left), mask);
  return static_cast<int>(IoCall::result(ready));
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int epoll_pwait(int epoll, epoll_event* events, int most, int timeout_ms, const sigset_t* mask) {
  countCall(Hook::epoll_pwait);
  EpollEngine* const engine = hookEngine();
  if (engine != nullptr && timeout_ms == 0) chargePoll(*engine);
  if (engine == nullptr || timeout_ms == 0) return real::epoll_pwait(epoll, events, most, timeout_ms, mask);
  return waitInFiber(*engine, epoll, events, most, timeout_ms < 0 ? kNever : timeout_ms * 1'000'000LL, mask);
}

int epoll_wait(int epoll, epoll_event* events, int most, int timeout_ms) {
  if (hookEngine() == nullptr) return real::epoll_wait(epoll, events, most, timeout_ms);
  return epoll_pwait(epoll, events, most, timeout_ms, nullptr);
}

int epoll_pwait2(int epoll, epoll_event* events, int most, const timespec* timeout, const sigset_t* mask) {
  countCall(Hook::epoll_pwait2);
  EpollEngine* const engine = hookEngine();
  timespec time{};
  const bool is_timeout = engine == nullptr || timeout == nullptr || probe::duration(timeout, &time) == 0;
  const int64_t timeout_ns = timeoutNs(timeout == nullptr ? nullptr : &time);
  if (engine != nullptr && timeout_ns == 0) chargePoll(*engine);
  if (engine == nullptr || timeout_ns == 0 || !is_timeout) return real::epoll_pwait2(epoll, events, most, timeout, mask);
  return waitInFiber(*engine, epoll, events, most, timeout_ns, mask);
}

// It waits for nothing, but a loop may consist of it.
int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  countCall(Hook::epoll_ctl);
  if (EpollEngine* const engine = hookEngine()) chargePoll(*engine);
  return real::epoll_ctl(epoll, operation, fd, event);
}

}  // extern "C"
