// connect and accept. Source: connect(2), accept(2).
#include <fcntl.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/hook/hook.h"
#include "sylar/hook/real.h"
#include "sylar/hook/wait_loop.h"
#include "sylar/io/blocking_pool.h"

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

/// An accept on a helper thread, one at a time of a listener.
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
  mine.next = std::exchange(g_accepts.first, &mine);
  return true;
}

void end(SharedAccept& mine, Entry& listener) {
  {
    Lock lock(g_accepts.mutex);
    SharedAccept** at = &g_accepts.first;
    while (*at != &mine) at = &(*at)->next;
    *at = mine.next;
  }
  listener.wakeAll(Direction::kRead);  // rivals, who saw a connection and left it: there may be another
}

bool isNonblocking(int fd) { return (sys::call(SYS_fcntl, fd, F_GETFL, 0) & O_NONBLOCK) != 0; }

bool isReadable(int fd) {
  pollfd one{fd, POLLIN, 0};
  const timespec zero{};
  return sys::call(SYS_ppoll, &one, 1, &zero, nullptr, 0) != 0;
}

/// Of a blocking listener that others may know, too: another process, or a number that we do not see. Who is faster gets the
/// connection, and the other's accept blocks: so ours does on a helper thread.
long acceptShared(IoCall& call, int fd, sockaddr* address, socklen_t* size, int flags) {
  SharedAccept mine{fd, Entry::generationOf(call.entry().life())};
  const long ready = call.run([&]() -> long {
    int listening = 0;
    socklen_t length = sizeof listening;
    const bool listens = sys::call(SYS_getsockopt, fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) == 0 && listening != 0;
    return listens && (!isReadable(fd) || !begin(mine)) ? -EAGAIN : listens;
  });
  if (ready < 0) return ready;
  long result = -EINVAL;
  const auto accept_it = [&] { result = attempt::plainAccept(fd, address, size, flags); };
  if (ready == 0) {  // what does not listen fails at once
    accept_it();
    return result;
  }
  // Without a helper: rather perhaps a wait of this worker than an error that a blocking accept does not have.
  if (blocking(accept_it) < 0) accept_it();
  end(mine, call.entry());
  return result;
}

int acceptHooked(int fd, sockaddr* address, socklen_t* size, int flags) {
  IoCall call(fd, Direction::kRead);
  Entry* const listener = FdTable::find(fd);
  if (!call.parks() || call.kind() == FdKind::kOther || call.kind() == FdKind::kPipe) {
    return accepted(listener, real::accept4(fd, address, size, flags), flags);
  }
  if (!listener->isPrivate() && !isNonblocking(fd)) {
    return accepted(listener, static_cast<int>(IoCall::result(acceptShared(call, fd, address, size, flags))), flags);
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

/// `timeout_ns` < 0: no limit.
static int connectWithin(int64_t timeout_ns, int fd, const sockaddr* address, socklen_t size) {
  IoCall call(fd, Direction::kWrite);
  if (!call.parks()) return real::connect(fd, address, size);
  if (timeout_ns >= 0) call.limit(Deadline::after(std::chrono::nanoseconds(timeout_ns), waitClock()), ETIMEDOUT);
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

int connect(int fd, const sockaddr* address, socklen_t size) {
  const int64_t timeout_ns = g_connect_timeout_ns.load(std::memory_order_relaxed);
  return connectWithin(timeout_ns > 0 ? timeout_ns : -1, fd, address, size);
}
int connect_with_timeout(int fd, const sockaddr* address, socklen_t size, uint64_t timeout_ms) {
  return connectWithin(timeout_ms == ~uint64_t{0} ? -1 : msToNs(timeout_ms), fd, address, size);
}
int __connect(int fd, const sockaddr* address, socklen_t size) { return connect(fd, address, size); }

int accept(int fd, sockaddr* address, socklen_t* size) { return acceptHooked(fd, address, size, 0); }
int accept4(int fd, sockaddr* address, socklen_t* size, int flags) { return acceptHooked(fd, address, size, flags); }

}  // extern "C"
