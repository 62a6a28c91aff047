// connect and accept. Source: connect(2), accept(2).
#include <atomic>
#include <chrono>

#include "sylar/base/sys.h"
#include "sylar/hook/hook.h"
#include "sylar/hook/real.h"
#include "sylar/hook/wait_loop.h"

namespace sylar {
namespace {

constinit std::atomic<int64_t> g_connect_timeout_ns{5'000'000'000};

/// The entry of a descriptor that accept() made, however it was called.
int accepted(Entry* listener, int fd, int flags) {
  if (fd < 0) return fd;
  // Of a listener that we do not know everything about, the new socket inherits what we do not know.
  const bool known = listener != nullptr && listener->isPrivate();
  FdTable::opened(fd, listener != nullptr ? listener->kind() : FdKind::kUnknown, known, (flags & SOCK_NONBLOCK) != 0);
  for (const Direction direction : {Direction::kRead, Direction::kWrite}) {
    // TCP hands its timeouts on, AF_UNIX does not: the new socket itself knows.
    if (!known || listener->timeoutNs(direction) == 0) continue;
    if (Entry* entry = FdTable::find(fd)) entry->setTimeoutNs(direction, attempt::timeoutNs(fd, direction));
  }
  return fd;
}

int acceptHooked(int fd, sockaddr* address, socklen_t* size, int flags) {
  IoCall call(fd, Direction::kRead);
  Entry* const listener = FdTable::find(fd);
  if (!call.parks() || call.kind() == FdKind::kOther || call.kind() == FdKind::kPipe) {
    return accepted(listener, real::accept4(fd, address, size, flags), flags);
  }
  return accepted(
      listener,
      static_cast<int>(IoCall::result(call.run([&] { return attempt::accept(call.entry(), fd, address, size, flags); }))), flags);
}

}  // namespace

void setConnectTimeout(std::chrono::milliseconds timeout) {
  g_connect_timeout_ns.store(timeout.count() <= 0 ? 0 : msToNs(static_cast<uint64_t>(timeout.count())),
                             std::memory_order_relaxed);
}

}  // namespace sylar

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int connect(int fd, const sockaddr* address, socklen_t size) {
  IoCall call(fd, Direction::kWrite);
  if (!call.parks()) return real::connect(fd, address, size);
  const int64_t timeout_ns = g_connect_timeout_ns.load(std::memory_order_relaxed);
  if (timeout_ns > 0) call.limit(Deadline::after(std::chrono::nanoseconds(timeout_ns), waitClock()), ETIMEDOUT);
  call.setTimeoutError(EINPROGRESS);
  // Finished by a second connect, not by SO_ERROR: only so the socket leaves its "connecting" state as after a blocking call.
  long answer = 0;
  bool begun = false;
  const long result = call.run([&]() -> long {
    answer = attempt::connect(fd, address, size);
    if (answer == -EAGAIN) {  // an AF_UNIX listener with a full backlog, which never reports room
      call.setTimeoutError(EAGAIN);
      call.askAgainLater();
    }
    if (answer == -EISCONN && begun) return 0;
    if (answer != -EINPROGRESS && answer != -EALREADY) return answer;
    begun = true;
    return -EAGAIN;
  });
  return static_cast<int>(IoCall::result(call.passesOn() ? answer : result));
}

int __connect(int fd, const sockaddr* address, socklen_t size) { return connect(fd, address, size); }

int accept(int fd, sockaddr* address, socklen_t* size) { return acceptHooked(fd, address, size, 0); }
int accept4(int fd, sockaddr* address, socklen_t* size, int flags) { return acceptHooked(fd, address, size, flags); }

}  // extern "C"
