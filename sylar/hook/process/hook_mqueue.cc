// The message queues of POSIX, which are descriptors on Linux. The attempt is the timed call with a time that has passed. Source:
// mq_receive(3), mq_send(3), mq_overview(7).
#include <mqueue.h>
#include <unistd.h>

#include <cerrno>

#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/lock/lock_wait.h"

namespace sylar::detail {
namespace {

bool scopeHasPassed() {
  const Deadline scope = withinScope(Deadline::never());
  return !scope.isNever() && scope.ns() <= waitClock().nowNs();
}

/// Makes attempts until one need not wait. Returns what it gives, or -ETIMEDOUT.
template <class Attempt>
long untilReady(IoCall& call, const LockTime& until, Attempt attempt) {
  for (;;) {
    call.limit(until.deadline(true), ETIMEDOUT);
    const long result = call.run(attempt);
    if (result != -ETIMEDOUT || until.hasPassed(true) || scopeHasPassed()) return result;
    call.beginNextMessage();  // the clock was set back
  }
}

/// Receives or sends by `move(queue, time)`, which does what libc's timed call does. `time` may be null.
template <class Move>
long onQueue(Hook hook, mqd_t queue, Direction direction, const timespec* time, Move move) {
  countCall(hook);
  IoCall call(queue, direction);
  timespec own{};
  if (!call.parks() || (time != nullptr && !probe::copyIn(&own, time, sizeof own))) return move(queue, time);
  const LockTime until(CLOCK_REALTIME, time != nullptr ? &own : nullptr);
  if (!until.isValid() || own.tv_sec < 0) return move(queue, time);  // which the kernel refuses
  static constexpr timespec kPassed{};
  const long result = untilReady(call, until, [&]() -> long {
    long moved;
    do moved = attempt::keepingErrno([&] { return move(call.fd(), &kPassed); });
    while (moved == -EINTR);  // by a handler for which it has not waited
    return moved == -ETIMEDOUT ? -EAGAIN : moved;
  });
  return call.mustUseLibc(result) ? move(call.fd(), time) : IoCall::result(result);
}

ssize_t receive(mqd_t queue, char* to, size_t size, unsigned* priority, const timespec* time) {
  return onQueue(Hook::mq_timedreceive, queue, Direction::kRead, time,
                 [=](mqd_t from, const timespec* until) { return real::mq_timedreceive(from, to, size, priority, until); });
}

int send(mqd_t queue, const char* from, size_t size, unsigned priority, const timespec* time) {
  return static_cast<int>(onQueue(Hook::mq_timedsend, queue, Direction::kWrite, time, [=](mqd_t to, const timespec* until) {
    return real::mq_timedsend(to, from, size, priority, until);
  }));
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

ssize_t mq_timedreceive(mqd_t queue, char* to, size_t size, unsigned* priority, const timespec* time) {
  return receive(queue, to, size, priority, time);
}
ssize_t mq_receive(mqd_t queue, char* to, size_t size, unsigned* priority) { return receive(queue, to, size, priority, nullptr); }
int mq_timedsend(mqd_t queue, const char* from, size_t size, unsigned priority, const timespec* time) {
  return send(queue, from, size, priority, time);
}
int mq_send(mqd_t queue, const char* from, size_t size, unsigned priority) { return send(queue, from, size, priority, nullptr); }

/// Closes the descriptor, for which others may wait.
int mq_close(mqd_t queue) noexcept { return ::close(queue); }

}  // extern "C"
