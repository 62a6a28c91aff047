// Internal. Memory that a ring lends to receives. Each takes a block when its bytes have come, so a fiber that waits for them holds
// none.
//
// Thread safety: the ring's thread only. The memory stays if leave() was not called, because the kernel may write to it.
// Source: io_uring_register_buf_ring(3).
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "sylar/base/internal.h"

namespace sylar::detail {

class LentMemory {
 public:
  static constexpr size_t kBlockSize = 512;

  /// Returns null if there is no memory or the kernel refuses.
  static std::unique_ptr<LentMemory> make(io_uring& ring);
  ~LentMemory();
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;

  /// Has `receive` take a block. It gives -ENOBUFS if all are lent.
  static void lendTo(io_uring_sqe& receive);
  /// Returns the block that a completion with these flags has taken, or null.
  const char* block(uint32_t completion_flags) const;
  void giveBack(const char* block);
  /// No receive takes a block from now on.
  void leave(io_uring& ring);

 private:
  explicit LentMemory(char* memory) : m_memory(memory) {}

  io_uring_buf_ring& blocks() const { return *reinterpret_cast<io_uring_buf_ring*>(m_memory); }
  char* firstBlock() const;
  void add(unsigned number, unsigned behind);

  char* const m_memory;  // the list of the blocks to lend, which the kernel reads, and the blocks
  bool m_kernel_has_it = false;
};

}  // namespace sylar::detail
