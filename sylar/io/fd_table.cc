#include "sylar/io/fd_table.h"

#include <atomic>

#include "sylar/base/sys.h"

namespace sylar {
namespace {

constexpr size_t kChunkEntries = 4096;
constexpr size_t kChunks = 4096;  // 16.7 million numbers; the kernel's own limit is lower by default
constinit std::atomic<Entry*> g_chunks[kChunks];

/// All-zero memory is valid entries.
Entry* mapChunk(std::atomic<Entry*>& slot) {
  int error = 0;
  void* const memory = sys::mapMemory(kChunkEntries * sizeof(Entry), &error);
  if (memory == nullptr) return nullptr;
  Entry* present = nullptr;
  if (slot.compare_exchange_strong(present, static_cast<Entry*>(memory), std::memory_order_acq_rel)) {
    return static_cast<Entry*>(memory);
  }
  sys::unmapMemory(memory, kChunkEntries * sizeof(Entry));
  return present;
}

}  // namespace

Entry* FdTable::find(int fd) {
  const auto number = static_cast<size_t>(static_cast<unsigned>(fd));
  if (number >= kChunks * kChunkEntries) return nullptr;
  Entry* const chunk = g_chunks[number / kChunkEntries].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : chunk + number % kChunkEntries;
}

Entry* FdTable::at(int fd) {
  if (Entry* const entry = find(fd)) return entry;
  const auto number = static_cast<size_t>(static_cast<unsigned>(fd));
  if (number >= kChunks * kChunkEntries) return nullptr;
  Entry* const chunk = mapChunk(g_chunks[number / kChunkEntries]);
  return chunk == nullptr ? nullptr : chunk + number % kChunkEntries;
}

void FdTable::opened(int fd, FdKind kind, bool is_private, bool nonblocking) {
  Entry* const entry = sys::inForkedChild() ? nullptr : at(fd);
  if (entry != nullptr) entry->open(fd, kind, is_private, nonblocking);
}

void FdTable::leaveEngine(const EpollEngine& engine) {
  for (size_t c = 0; c < kChunks; ++c) {
    Entry* const chunk = g_chunks[c].load(std::memory_order_acquire);
    if (chunk == nullptr) continue;
    for (size_t i = 0; i < kChunkEntries; ++i) {
      if (chunk[i].registered()) chunk[i].leaveEngine(static_cast<int>(c * kChunkEntries + i), engine);
    }
  }
}

}  // namespace sylar
