#include "sylar/io/lent_memory.h"

#include <new>

#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"

namespace sylar::detail {
namespace {

constexpr unsigned kBlocks = 128;  // a power of two, and many times what the kernel completes in one call
constexpr size_t kListSize = kBlocks * sizeof(io_uring_buf);
constexpr size_t kSize = kListSize + kBlocks * LentMemory::kBlockSize;
constexpr int kGroup = 0;

}  // namespace

std::unique_ptr<LentMemory> LentMemory::make(io_uring& ring) {
  int error = 0;
  void* const memory = sys::mapMemory(kSize, &error);
  if (memory == nullptr) return nullptr;
  std::unique_ptr<LentMemory> made(new (std::nothrow) LentMemory(static_cast<char*>(memory)));
  if (made == nullptr) {
    sys::unmapMemory(memory, kSize);
    return nullptr;
  }
  io_uring_buf_reg list{};
  list.ring_addr = reinterpret_cast<uintptr_t>(memory);
  list.ring_entries = kBlocks;
  list.bgid = kGroup;
  if (io_uring_register_buf_ring(&ring, &list, 0) != 0) return nullptr;
  made->m_kernel_has_it = true;
  io_uring_buf_ring_init(&made->blocks());
  for (unsigned i = 0; i < kBlocks; ++i) made->add(i, i);
  io_uring_buf_ring_advance(&made->blocks(), kBlocks);
  return made;
}

LentMemory::~LentMemory() {
  if (!m_kernel_has_it) sys::unmapMemory(m_memory, kSize);
}

void LentMemory::leave(io_uring& ring) {
  if (io_uring_unregister_buf_ring(&ring, kGroup) == 0) m_kernel_has_it = false;
}

void LentMemory::lendTo(io_uring_sqe& receive) {
  receive.flags |= IOSQE_BUFFER_SELECT;
  receive.buf_group = kGroup;
}

char* LentMemory::firstBlock() const { return m_memory + kListSize; }

void LentMemory::add(unsigned number, unsigned behind) {
  io_uring_buf_ring_add(&blocks(), firstBlock() + number * kBlockSize, kBlockSize, static_cast<uint16_t>(number),
                        io_uring_buf_ring_mask(kBlocks), static_cast<int>(behind));
}

const char* LentMemory::block(uint32_t completion_flags) const {
  if ((completion_flags & IORING_CQE_F_BUFFER) == 0) return nullptr;
  return firstBlock() + (completion_flags >> IORING_CQE_BUFFER_SHIFT) * kBlockSize;
}

void LentMemory::giveBack(const char* block) {
  const tsan::Exempt of_this_thread;
  add(static_cast<unsigned>(static_cast<size_t>(block - firstBlock()) / kBlockSize), 0);
  io_uring_buf_ring_advance(&blocks(), 1);
}

}  // namespace sylar::detail
