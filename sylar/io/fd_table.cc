#include "sylar/io/fd_table.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>

#include "sylar/base/sys.h"
#include "sylar/check.h"

namespace sylar::detail {

constinit std::atomic<Entry*> FdTable::s_chunks[kChunks];
constinit std::atomic<unsigned> FdTable::s_end{0};

namespace {

/// Maps a chunk, whose all-zero memory is valid entries.
Entry* mapChunk(std::atomic<Entry*>& slot, size_t entries) {
  int error = 0;
  void* const memory = sys::mapMemory(entries * sizeof(Entry), &error);
  if (memory == nullptr) return nullptr;
  SYLAR_DCHECK(reinterpret_cast<uintptr_t>(memory) % alignof(Entry) == 0);
  sys::adviseMemory(memory, entries * sizeof(Entry), MADV_WIPEONFORK);
  Entry* present = nullptr;
  if (slot.compare_exchange_strong(present, static_cast<Entry*>(memory), std::memory_order_acq_rel)) {
    return static_cast<Entry*>(memory);
  }
  sys::unmapMemory(memory, entries * sizeof(Entry));
  return present;
}

}  // namespace

Entry* FdTable::make(int fd) {
  if (!covers(fd)) return nullptr;
  const auto number = static_cast<unsigned>(fd);
  std::atomic<Entry*>& slot = s_chunks[number / kChunkEntries];
  Entry* chunk = slot.load(std::memory_order_acquire);
  if (chunk == nullptr) chunk = mapChunk(slot, kChunkEntries);
  if (chunk == nullptr) return nullptr;
  unsigned end = s_end.load(std::memory_order_relaxed);
  // The read-modify-write orders this with detachEngine(): a chunk it misses is published later and sees the retired flag.
  while (!s_end.compare_exchange_weak(end, std::max(end, number + 1), std::memory_order_acq_rel)) continue;
  return chunk + number % kChunkEntries;
}

void FdTable::opened(int fd, FdKind kind, bool is_private, bool nonblocking) {
  if (sys::isOwn(fd)) sys::disown(fd);
  Entry* const entry = sys::inForkedChild() ? nullptr : at(fd);
  if (entry != nullptr) entry->open(fd, kind, is_private, nonblocking);
}

/// Reports EBADF now. Other errors of a close concern data, and are lost.
int FdTable::closeLater(Entry& entry, int fd) {
  SYLAR_DCHECK(Entry::interrupting() && &entry == find(fd));
  if (sys::call(SYS_fcntl, fd, F_GETFD, 0) >= 0 && entry.closeLater(fd)) return 0;
  sys::errnoRef() = EBADF;
  return -1;
}

void FdTable::shareAll() {
  forEach([](int, Entry& entry) {
    if (entry.isPrivate()) entry.share();
  });
}

void FdTable::detachEngine(const EpollEngine& engine) {
  SYLAR_DCHECK(engine.retired());
  s_end.fetch_add(0, std::memory_order_acq_rel);  // see make()
  forEach([&engine](int fd, Entry& entry) { entry.detachEngine(fd, engine); });
}

}  // namespace sylar::detail
