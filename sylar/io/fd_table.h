// Internal. The entries of all descriptor numbers of the process.
//
// Two levels; chunks are mapped on first use and never freed; the top level is constant-initialised: usable before any
// constructor and after main. Kept true by the hooked creators and closers on every thread.
//
// In a forked child the table is the parent's, and so are the engines behind it: opened() and close() leave it alone there.
//
// Thread safety: all calls from any thread.
#pragma once

#include <atomic>

#include "sylar/base/sys.h"
#include "sylar/io/epoll_engine.h"
#include "sylar/io/fd_entry.h"

namespace sylar {

using Entry = FdEntry<EpollEngine>;
static_assert(sizeof(Entry) == 128);

class FdTable {
 public:
  /// The entry of `fd`; null if the number is negative, absurd, or there is no memory for it.
  static Entry* at(int fd);

  /// The entry of `fd` if its part of the table is in use, else null.
  static Entry* find(int fd);

  /// Calls `visit` with every number in the parts in use, and its entry.
  template <class Visit>
  static void forEach(Visit visit);

  /// Before `engine` ends: no registration of it is left.
  static void leaveEngine(const EpollEngine& engine);

  /// A creator made `fd`. -1 is passed over, so that a creator's result can be handed in.
  static void opened(int fd, FdKind kind, bool is_private, bool nonblocking);

  /// `real_close` closes `fd` or puts something else in its place; its result.
  template <class RealClose>
  static int close(int fd, RealClose real_close);

 private:
  static constexpr size_t kChunkEntries = 4096;
  static constexpr size_t kChunks = 4096;  // 16.7 million numbers; the kernel's own limit is lower by default
  static std::atomic<Entry*> s_chunks[kChunks];
};

template <class Visit>
void FdTable::forEach(Visit visit) {
  for (size_t c = 0; c < kChunks; ++c) {
    Entry* const chunk = s_chunks[c].load(std::memory_order_acquire);
    if (chunk == nullptr) continue;
    for (size_t i = 0; i < kChunkEntries; ++i) visit(static_cast<int>(c * kChunkEntries + i), chunk[i]);
  }
}

template <class RealClose>
int FdTable::close(int fd, RealClose real_close) {
  Entry* const entry = sys::inForkedChild() ? nullptr : find(fd);
  return entry == nullptr ? real_close() : entry->close(fd, real_close);
}

}  // namespace sylar
