// connect, accept, shutdown. Source: connect(2), accept(2), shutdown(2).
#include <poll.h>

#include <atomic>
#include <chrono>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/hook.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/wait_loop.h"
#include "sylar/hook/fd/connect.h"
#include "sylar/sync/blocking_pool.h"

namespace sylar::detail {
namespace {

constinit std::atomic<int64_t> g_connect_timeout_ns{5'000'000'000};

/// Notes a descriptor that accept() made, however it was called, and returns it.
int accepted(Entry* listener, int fd, int flags) {
  if (fd < 0) return fd;
  // From a listener about which we do not know everything, the new socket inherits properties that we do not know.
  const bool known = listener != nullptr && listener->isPrivate();
  FdTable::opened(fd, listener != nullptr ? listener->kind() : FdKind::kUnknown, known, (flags & SOCK_NONBLOCK) != 0);
  for (const Direction direction : {Direction::kRead, Direction::kWrite}) {
    // TCP hands its timeouts on and AF_UNIX does not, so the new socket is asked.
    if (!known || listener->timeoutNs(direction) == 0) continue;
    if (Entry* entry = FdTable::find(fd)) entry->setTimeoutNs(direction, attempt::timeoutNs(fd, direction));
  }
  return fd;
}

/// An accept on a helper thread. There is only one at a time for a listener.
struct SharedAccept {
  const int fd;
  const uint32_t generation;
  SharedAccept* next = nullptr;
};
struct SharedAccepts {
  OsMutex mutex;
  SharedAccept* first SYLAR_GUARDED_BY(mutex) = nullptr;
};
constinit SharedAccepts g_accepts;

bool begin(SharedAccept& mine) {
  Lock lock(g_accepts.mutex);
  for (const SharedAccept* one = g_accepts.first; one != nullptr; one = one->next) {
    if (one->fd == mine.fd && one->generation == mine.generation) return false;
  }
  SYLAR_DCHECK(mine.next == nullptr);
  mine.next = std::exchange(g_accepts.first, &mine);
  return true;
}

void end(SharedAccept& mine, Entry& listener) {
  {
    Lock lock(g_accepts.mutex);
    SharedAccept** at = &g_accepts.first;
    SYLAR_DCHECK(g_accepts.first != nullptr);  // `mine` is in it
    while (*at != &mine) at = &(*at)->next;
    *at = mine.next;
  }
  listener.wakeAll(Direction::kRead);  // rivals saw a connection and left it to us; there may be another
}

/// Accepts from a blocking listener that others may use as well, in another process or by a number that we do not see. The faster
/// one gets the connection and the accept of the other blocks, so ours is made on a helper thread.
long acceptShared(IoCall& call, sockaddr* address, socklen_t* size, int flags) {
  SharedAccept mine{call.fd(), Entry::generationOf(call.entry().life())};
  const long ready = call.run([&]() -> long {
    const int fd = call.fd();
    const bool listens = probe::socketOption(fd, SO_ACCEPTCONN) > 0;
    if (listens && !probe::isReady(fd, POLLIN)) return attempt::numberForAccept(call.engine());
    return listens && !begin(mine) ? -EAGAIN : listens;
  });
  if (ready < 0) return ready;
  long result = -EINVAL;
  const auto accept_it = [&] { result = attempt::plainAccept(call.fd(), address, size, flags); };
  if (ready == 0) {  // a socket that does not listen fails at once
    accept_it();
    return result;
  }
  // If no helper is free, rather risk that this worker waits than return an error that a blocking accept does not have.
  const HookPark waiting;
  BlockingPool::process().run(accept_it) < 0 ? accept_it() : waiting.count();
  end(mine, call.entry());
  return result;
}

int acceptHooked(int fd, sockaddr* address, socklen_t* size, int flags) {
  countCall(Hook::accept);
  IoCall call(fd, Direction::kRead);
  Entry* const listener = FdTable::find(fd);
  const bool valid = (flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == 0;
  if (!call.parks() || !valid || isFile(call.kind()) || call.kind() == FdKind::kPipe) {
    return accepted(listener, real::accept4(fd, address, size, flags), flags);
  }
  if (!listener->isPrivate() && !probe::isNonblocking(fd)) {
    return accepted(listener, static_cast<int>(IoCall::result(acceptShared(call, address, size, flags))), flags);
  }
  return accepted(listener, static_cast<int>(IoCall::result(call.run([&] {
                    return attempt::accept(call.entry(), call.engine(), call.fd(), address, size, flags);
                  }))),
                  flags);
}

}  // namespace

int64_t connectTimeoutNs() {
  const int64_t timeout_ns = g_connect_timeout_ns.load(std::memory_order_relaxed);
  return timeout_ns > 0 ? timeout_ns : -1;
}

long connectOn(IoCall& call, const sockaddr* address, socklen_t size, int64_t timeout_ns) {
  SYLAR_DCHECK(call.parks() && mayPark());
  const bool limited = timeout_ns >= 0;
  call.limit(limited ? Deadline::after(std::chrono::nanoseconds(timeout_ns), waitClock()) : Deadline::never(), ETIMEDOUT);
  // It is finished by a second connect and not by SO_ERROR, because only then does the socket leave its "connecting" state as
  // after a blocking call.
  long answer = 0;
  bool begun = false;
  const long result = call.run([&]() -> long {
    answer = attempt::connect(call.entry(), call.fd(), address, size);
    if (answer == -EISCONN && begun) return 0;
    const bool is_full = answer == -EAGAIN;  // an AF_UNIX listener, which never reports room
    if (!is_full && answer != -EINPROGRESS && answer != -EALREADY) return answer;
    if (!begun) call.setTimeoutError(static_cast<int>(-answer));
    is_full ? call.askAgainLater() : void(begun = true);
    return -EAGAIN;
  });
  return call.mustUseLibc(result) ? answer : result;
}

}  // namespace sylar::detail

namespace sylar {

void setConnectTimeout(std::chrono::milliseconds timeout) {
  g_connect_timeout_ns.store(timeout.count() <= 0 ? 0 : msToNs(static_cast<uint64_t>(timeout.count())),
                             std::memory_order_relaxed);
}

}  // namespace sylar

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

/// Connects within `timeout_ns`; a negative one means no limit.
static int connectWithin(int64_t timeout_ns, int fd, const sockaddr* address, socklen_t size) {
  countCall(Hook::connect);
  IoCall call(fd, Direction::kWrite);
  if (!call.parks()) return real::connect(fd, address, size);
  return static_cast<int>(IoCall::result(connectOn(call, address, size, timeout_ns)));
}

int connect(int fd, const sockaddr* address, socklen_t size) { return connectWithin(connectTimeoutNs(), fd, address, size); }
int connect_with_timeout(int fd, const sockaddr* address, socklen_t size, uint64_t timeout_ms) {
  return connectWithin(timeout_ms == ~uint64_t{0} ? -1 : msToNs(timeout_ms), fd, address, size);
}
int __connect(int fd, const sockaddr* address, socklen_t size) { return connect(fd, address, size); }

/// Acts on every thread, in and out of fibers. Wakes all who wait, because the kernel does, and not every shutdown is an event: a
/// writer on AF_UNIX is not told that its own side was shut down, nor is a receive of size 0 from TCP, which any wake ends.
int shutdown(int fd, int how) noexcept {
  const int result = real::shutdown(fd, how);
  Entry* const entry = sys::inForkedChild() ? nullptr : FdTable::find(fd);
  if (entry == nullptr || Entry::interrupting()) return result;
  entry->wakeAll(Direction::kRead, true);
  entry->wakeAll(Direction::kWrite, true);
  return result;
}

int accept(int fd, sockaddr* address, socklen_t* size) { return acceptHooked(fd, address, size, 0); }
int accept4(int fd, sockaddr* address, socklen_t* size, int flags) { return acceptHooked(fd, address, size, flags); }

}  // extern "C"
