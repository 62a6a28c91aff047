// Internal. A receive that takes its buffer when bytes may have arrived, so that a fiber that waits holds none, and a send that
// leaves with those of other fibers in the same turn.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "sylar/api.h"
#include "sylar/base/internal.h"

namespace sylar::detail {

/// Memory for one receive. Both calls come on the thread of the receive and must not suspend.
class PooledBuffer {
 public:
  static constexpr size_t kSize = 512;

  /// Returns kSize bytes that the kernel can write, or null if there is no memory.
  virtual char* take() noexcept = 0;
  /// Takes them back, because nothing was received.
  virtual void giveBack() noexcept = 0;

 protected:
  ~PooledBuffer() = default;
};

/// Does what recv(2) does into `buffer`, which is not taken while the fiber waits for bytes of a stream socket. After a result > 0
/// the buffer is the caller's. Fails also with ENOMEM if take() returns null; if the worker's ring has received the bytes, they
/// are lost then. May suspend: yes.
SYLAR_API ssize_t receiveIntoPool(int fd, PooledBuffer& buffer, int flags);

/// Does what send(2) with MSG_DONTWAIT and MSG_NOSIGNAL does, and does not wait for room. But if the worker's ring sends, that is
/// at the end of the turn. Neither a cancel nor a deadline ends the call before that. May suspend: yes.
SYLAR_API ssize_t sendBatched(int fd, const void* data, size_t size);

}  // namespace sylar::detail
