#include "sylar/hook/core/stay.h"

#include <fcntl.h>

#include <atomic>
#include <climits>
#include <optional>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"
#include "sylar/hook.h"
#include "sylar/hook/core/posix_modes.h"
#include "sylar/io/fd_table.h"

namespace sylar::detail {

/// The stays of all numbers with the same remainder, under their lock. A handler that interrupts the holder closes nothing by
/// itself.
struct Stay::Bucket {
  OsMutex mutex;
  Stay* first SYLAR_GUARDED_BY(mutex) = nullptr;

  void link(Stay& one) SYLAR_REQUIRES(mutex) {
    one.m_next = first;
    one.m_at = &first;
    if (first != nullptr) first->m_at = &one.m_next;
    first = &one;
    one.m_linked = true;
  }
  /// Returns the copy that is to be closed because this was its last stay, or kNone.
  int unlink(Stay& one) SYLAR_REQUIRES(mutex) {
    *one.m_at = one.m_next;
    if (one.m_next != nullptr) one.m_next->m_at = one.m_at;
    one.m_linked = false;
    if (one.m_copy < 0) return kNone;
    for (const Stay* other = first; other != nullptr; other = other->m_next) {
      if (other->m_copy == one.m_copy) return kNone;  // all stays of a copy began with the same number
    }
    return one.m_copy;
  }
};

namespace {

constexpr unsigned kBuckets = 1024;

/// The copies, one bit each, for a forked child: there the stays may be half-way between two states. Untouched pages cost nothing.
constexpr int kNumbers = 1 << 24;
constinit std::atomic<uint64_t> g_copies[kNumbers / 64];

uint64_t bitOf(int fd) { return uint64_t{1} << (fd % 64); }

/// Returns a second number for an open file, or kRefused.
int makeCopy(int fd) {
  long made = sys::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 64);  // low numbers are the program's
  if (made < 0) made = sys::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);
  const int copy = sys::keepOwn(made);
  if (copy < 0) return Stay::kRefused;
  const Entry* const original = FdTable::at(fd);
  Entry* const entry = FdTable::at(copy);
  if (entry == nullptr || copy >= kNumbers) {
    sys::closeFd(copy);
    return Stay::kRefused;
  }
  g_copies[copy / 64].fetch_or(bitOf(copy), std::memory_order_relaxed);
  entry->open(copy, original->kind(), false, false);
  return copy;
}

void closeCopy(int copy) {
  FdTable::close(copy, [copy] {
    g_copies[copy / 64].fetch_and(~bitOf(copy), std::memory_order_relaxed);
    return sys::closeFd(copy);
  });
}

}  // namespace

Stay::Bucket& Stay::bucketOf(int fd) {
  static constinit Bucket s_buckets[kBuckets];
  return s_buckets[static_cast<unsigned>(fd) % kBuckets];
}

void Stay::begin(int fd, uint32_t generation, const EpollEngine& engine) {
  const Entry* const entry = FdTable::find(fd);
  if (entry == nullptr || m_begun || sys::inForkedChild()) return;
  m_fd = fd;
  m_generation = generation;
  m_engine = &engine;
  m_copy = kNone;
  Bucket& bucket = bucketOf(fd);
  const Entry::Uninterrupted mine;
  const Lock lock(bucket.mutex);
  const uint64_t life = entry->life();
  if (Entry::generationOf(life) != generation || Entry::isClosing(life)) return;
  bucket.link(*this);
  m_begun = true;
}

int Stay::copy() {
  if (!m_begun || sys::inForkedChild()) return kNone;
  const Entry& entry = *FdTable::find(m_fd);
  Bucket& bucket = bucketOf(m_fd);
  for (;;) {
    const uint64_t life = entry.life();  // before the question: with the end of this generation the answer stands
    {
      const Entry::Uninterrupted mine;
      const Lock lock(bucket.mutex);
      if (m_copy == kRefused) break;
      if (m_copy != kNone || !m_linked) return m_copy;
    }
    if (Entry::generationOf(life) != m_generation || !Entry::isClosing(life)) return kNone;
    sys::call(SYS_sched_yield);
  }
  if (!std::exchange(m_warned, true))
    log::warn("hook.close: a call that waits for {} ends with EBADF, because there is no number for a copy", m_fd);
  return kNone;
}

void Stay::end() {
  if (sys::inForkedChild()) {  // where somebody else may have held the lock
    if (m_copy >= 0) sys::closeFd(m_copy);
    return;
  }
  int last = kNone;
  {
    Bucket& bucket = bucketOf(m_fd);
    const Entry::Uninterrupted mine;
    const Lock lock(bucket.mutex);
    if (m_linked) last = bucket.unlink(*this);
  }
  if (last != kNone) closeCopy(last);
}

/// What closers and engines do to stays.
class Stay::Keeper final : public CallKeeper {
 public:
  void closing(int fd, uint32_t generation) const override {
    if (!moveAll(fd, generation, kNone)) return;
    const int copy = makeCopy(fd);
    if (!moveAll(fd, generation, copy) && copy >= 0) closeCopy(copy);  // the calls have ended meanwhile
  }

  /// A fiber that was abandoned never ends its stay.
  void ended(const EpollEngine& engine) const override {
    for (unsigned i = 0; i < kBuckets; ++i) {
      while (const std::optional<int> copy = dropOne(bucketOf(static_cast<int>(i)), engine)) {
        if (*copy != kNone) closeCopy(*copy);
      }
    }
  }

 private:
  /// Writes `copy` into all stays of a number, to which no new ones can come. Returns true if there are any.
  static bool moveAll(int fd, uint32_t generation, int copy) {
    bool any = false;
    Bucket& bucket = bucketOf(fd);
    const Entry::Uninterrupted mine;
    const Lock lock(bucket.mutex);
    for (Stay* one = bucket.first; one != nullptr; one = one->m_next) {
      if (one->m_fd != fd || one->m_generation != generation) continue;
      one->m_copy = copy;
      any = true;
    }
    return any;
  }
  /// Takes out one stay of a fiber at `engine`, if there is any, and returns what Bucket::unlink() does.
  static std::optional<int> dropOne(Bucket& bucket, const EpollEngine& engine) {
    const Entry::Uninterrupted mine;
    const Lock lock(bucket.mutex);
    for (Stay* one = bucket.first; one != nullptr; one = one->m_next) {
      if (one->m_engine == &engine) return bucket.unlink(*one);
    }
    return std::nullopt;
  }
};

void Stay::beKept() {
  static constinit Keeper s_keeper;
  EpollEngine::setKeeper(s_keeper);
}

void Stay::closeCopiesInChild() {
  for (int fd = sys::nextOwn(0); fd != INT_MAX; fd = sys::nextOwn(fd + 1)) {
    if (fd < kNumbers && (g_copies[fd / 64].load(std::memory_order_relaxed) & bitOf(fd)) != 0) sys::closeFd(fd);
  }
}

}  // namespace sylar::detail

namespace sylar {

void setHookClose(HookClose mode) {
  if (mode == HookClose::kPosix) Stay::beKept();
  setMode(PosixMode::kClose, mode == HookClose::kPosix);
}
HookClose hookClose() { return isOn(PosixMode::kClose) ? HookClose::kPosix : HookClose::kWake; }

}  // namespace sylar
