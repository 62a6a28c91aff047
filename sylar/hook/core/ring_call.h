// Internal. Calls on files by the worker's ring (sylar/io/ring.h), where it has one, and else by a helper thread. Only calls that
// the ring makes exactly as the kernel's own: none on a file's position, which the ring does not lock, and none that it makes
// otherwise.
#pragma once

#include <liburing.h>

#include <utility>

#include "sylar/base/internal.h"
#include "sylar/hook/core/offload.h"
#include "sylar/io/ring.h"

namespace sylar::detail {

/// Returns the ring with which the calling fiber may wait here, or null.
inline Ring* ringHere() {
  EpollEngine* const engine = hookEngine();
  return engine != nullptr ? engine->ring() : nullptr;
}

/// Has the ring carry out what `prepare` writes into an io_uring_sqe, and returns the result as libc does. Makes the call
/// `otherwise` if there is no ring, and if the ring says something that the call on a thread does not: that the file may not wait
/// (O_NONBLOCK, which reads and writes of files ignore) or that a signal has ended it, and then nothing was done. May suspend: yes.
template <class Prepare, class Otherwise>
auto byRing(Prepare prepare, Otherwise otherwise) -> decltype(otherwise()) {
  Ring* const ring = ringHere();
  if (ring == nullptr) return otherwise();
  io_uring_sqe entry{};
  prepare(&entry);
  const HookPark waiting;
  const long result = ring->run(entry);
  switch (result) {
    case Ring::kRefused:
    case -EAGAIN:
    case -EINTR:
    case -ECANCELED: return otherwise();
    default: break;
  }
  waiting.count();
  return static_cast<decltype(otherwise())>(IoCall::result(result));
}

/// Marks an operation that must not be begun in the worker's thread, where it may wait in spite of all: anything but a read of a
/// disk.
inline void beginElsewhere(io_uring_sqe* entry) { entry->flags |= IOSQE_ASYNC; }

/// Does what offloadFileCall() does, by the ring if there is one. Then a close of the number `fd` changes nothing.
template <class Prepare, class Call>
auto fileCall(Prepare prepare, Call call, int fd) -> decltype(call()) {
  if (!filesSuspend()) return call();
  return byRing(prepare, [=] { return offload(onNumbers(call, fd)); });
}

}  // namespace sylar::detail
