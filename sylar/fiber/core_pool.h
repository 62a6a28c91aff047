// Internal. Free cores: a cache for each thread, and a reserve behind all threads.
//
// A fiber may end on another thread than it began on, so one thread may only take cores while another only gives them. Each
// thread keeps two chunks at most and passes on whole chunks. So the memory of all cores is bounded by the number of threads and
// by the most fibers that were alive at once, and the reserve's lock is taken at most once in kChunk times.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "sylar/base/internal.h"
#include "sylar/base/memory.h"
#include "sylar/check.h"

namespace sylar::detail {

/// The reserve of free cores, in chunks. The cores of a chunk are linked by `next`, and the first leads to the next chunk.
///
/// Thread safety: all calls from any thread.
template <class Core, class Memory = StdMemory>
class CoreReserve {
 public:
  void put(Core* chunk) {
    SYLAR_DCHECK(chunk != nullptr);
    Lock lock(m_mutex);
    chunk->nextChunk() = m_chunks;
    m_chunks = chunk;
  }
  /// Returns a chunk, or null if there is none.
  Core* take() {
    Lock lock(m_mutex);
    Core* const chunk = m_chunks;
    if (chunk != nullptr) m_chunks = chunk->nextChunk();
    return chunk;
  }

  /// Called around a fork, so that the child finds the chunks intact and the lock free.
  void beforeFork() SYLAR_NO_THREAD_SAFETY_ANALYSIS { m_mutex.lock(); }
  void afterFork() SYLAR_NO_THREAD_SAFETY_ANALYSIS { m_mutex.unlock(); }
  void afterForkInChild() { new (&m_mutex) typename Memory::Mutex; }

 private:
  typename Memory::Mutex m_mutex;
  Core* m_chunks SYLAR_GUARDED_BY(m_mutex) = nullptr;
};

/// The free cores of one thread, last in, first out. Not thread safe.
template <class Core, size_t kChunk, class Memory = StdMemory>
class CoreCache {
 public:
  explicit CoreCache(CoreReserve<Core, Memory>& reserve) : m_reserve(reserve) {}
  ~CoreCache() {
    if (m_free != nullptr) m_reserve.put(m_free);
    if (m_full != nullptr) m_reserve.put(m_full);
  }
  CoreCache(const CoreCache&) = delete;
  CoreCache& operator=(const CoreCache&) = delete;

  /// Returns a free core. If neither this cache nor the reserve has one, calls `make` for a chunk of kChunk cores, and returns
  /// null if `make` returns null.
  template <class Make>
  Core* take(Make make) {
    if (m_free == nullptr) {
      m_free = m_full != nullptr ? std::exchange(m_full, nullptr) : m_reserve.take();
      if (m_free == nullptr) m_free = make();
      if (m_free == nullptr) return nullptr;
      m_count = kChunk;
    }
    Core* const core = m_free;
    SYLAR_DCHECK(m_count > 0);
    m_free = static_cast<Core*>(core->next);
    core->next = nullptr;
    --m_count;
    return core;
  }

  void put(Core* core) {
    SYLAR_DCHECK(core != nullptr && core != m_free);
    SYLAR_DCHECK(m_count <= kChunk);
    if (m_count == kChunk) {
      if (m_full != nullptr) m_reserve.put(m_full);
      m_full = std::exchange(m_free, nullptr);
      m_count = 0;
    }
    core->next = m_free;
    m_free = core;
    ++m_count;
  }

 private:
  CoreReserve<Core, Memory>& m_reserve;
  Core* m_free = nullptr;
  Core* m_full = nullptr;  // taken from when m_free is empty, passed on when it is full as well
  size_t m_count = 0;      // upper bound of those in m_free: a chunk of a thread that has ended may have fewer
};

}  // namespace sylar::detail
