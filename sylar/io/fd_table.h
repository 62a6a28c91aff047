// Internal. The entries of all descriptor numbers of the process.
//
// The table has two levels. Chunks are mapped on first use and never freed, and the top level is constant-initialised, so the
// table is usable before any constructor and after main. The hooked creators and closers keep it correct on every thread.
//
// In a forked child the kernel wipes the table, so it is empty there even if a thread held one of its locks. opened() and close()
// leave it alone there if workers ran in the parent.
//
// Thread safety: all calls from any thread.
#pragma once

#include <atomic>

#include "sylar/base/internal.h"
#include "sylar/base/sys.h"
#include "sylar/io/epoll_engine.h"
#include "sylar/io/fd_entry.h"

namespace sylar::detail {

using Entry = FdEntry<EpollEngine>;
static_assert(sizeof(Entry) == 128);

class FdTable {
 public:
  /// Returns false if the number is negative or absurdly high; such a number has no entry.
  static bool covers(int fd) { return static_cast<unsigned>(fd) < kChunks * kChunkEntries; }

  /// Returns the entry of `fd`, or null if it is not covered or there is no memory.
  static Entry* at(int fd) {
    Entry* const entry = find(fd);
    return entry != nullptr ? entry : make(fd);
  }

  /// Returns the entry of `fd` if somebody has asked for one as high, else null.
  static Entry* find(int fd) {
    const auto number = static_cast<unsigned>(fd);
    if (number >= s_end.load(std::memory_order_acquire)) return nullptr;
    Entry* const chunk = s_chunks[number / kChunkEntries].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : chunk + number % kChunkEntries;
  }

  /// Calls `visit` with every number in [first, last] that may have been in use, and its entry.
  template <class Visit>
  static void forEach(Visit visit, unsigned first = 0, unsigned last = ~0U);

  /// Called before `engine` ends; on return no entry is registered with it.
  static void detachEngine(const EpollEngine& engine);

  /// Notes that a creator has made `fd`. Ignores -1, so that a creator's result can be passed in.
  static void opened(int fd, FdKind kind, bool is_private, bool nonblocking);

  /// Calls `real_close`, which closes `fd` or puts something else in its place, and returns its result.
  template <class RealClose>
  static int close(int fd, RealClose real_close, AtClose waiters = AtClose::kMayGoOn);
  /// Closes `fd` by `real_close`. If the caller is a signal handler that must not wait for the close, it is made later, and the
  /// result is 0 or -1/EBADF.
  template <class RealClose>
  static int closeOrLater(int fd, RealClose real_close);

  /// Notes that another process shares all that is open now.
  static void shareAll();

 private:
  static constexpr unsigned kChunkEntries = 4096;
  static constexpr unsigned kChunks = 4096;  // 16.7 million numbers; the kernel's own limit is lower by default
  static std::atomic<Entry*> s_chunks[kChunks];
  static std::atomic<unsigned> s_end;  // only grows; all numbers in use are lower
  static Entry* make(int fd);
  static int closeLater(Entry& entry, int fd);
};

template <class Visit>
void FdTable::forEach(Visit visit, unsigned first, unsigned last) {
  for (unsigned fd = first; fd < s_end.load(std::memory_order_relaxed) && fd <= last;) {
    if (Entry* const entry = find(static_cast<int>(fd))) {
      visit(static_cast<int>(fd), *entry);
      ++fd;
    } else {
      fd = (fd / kChunkEntries + 1) * kChunkEntries;
    }
  }
}

template <class RealClose>
int FdTable::close(int fd, RealClose real_close, AtClose waiters) {
  Entry* const entry = sys::inForkedChild() ? nullptr : find(fd);
  return entry == nullptr ? real_close() : entry->close(fd, real_close, waiters);
}

template <class RealClose>
int FdTable::closeOrLater(int fd, RealClose real_close) {
  Entry* const entry = sys::inForkedChild() ? nullptr : find(fd);
  if (entry == nullptr) return real_close();
  return Entry::interrupting() ? closeLater(*entry, fd) : entry->close(fd, real_close);
}

}  // namespace sylar::detail
