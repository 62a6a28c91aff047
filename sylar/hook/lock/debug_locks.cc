// In the debug preset only: reports a fiber that is suspended while it holds a pthread mutex (a std::mutex is one), once for each
// pair of places. It is advice: all who want the mutex wait as long as that fiber does, and threads outside fibers block meanwhile.
//
// The mutexes that fibers lock are noted in a table of fixed size; nothing here allocates or blocks. A mutex may be unlocked by another fiber or thread than the one that locked it. Its note is removed whoever made it.
#ifdef SYLAR_DEBUG_LOCKS
#include "sylar/hook/lock/debug_locks.h"

#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "sylar/base/os_mutex.h"
#include "sylar/base/raw_line.h"
#include "sylar/fiber.h"
#include "sylar/fiber/fiber_core.h"
#include "sylar/fiber/suspend_check.h"
#include "sylar/fiber/thread_fibers.h"

namespace sylar {
namespace {

/// A chain of callers, by frame pointers.
struct Place {
  static constexpr int kMaxFrames = 12;
  std::array<void*, kMaxFrames> frames;
  int size = 0;

  uint64_t hash() const {
    uint64_t value = 0;
    for (int i = 0; i < size; ++i)
      value = (value ^ reinterpret_cast<uintptr_t>(frames[static_cast<size_t>(i)])) * 0x9e3779b97f4a7c15;
    return value;
  }
  void write() const { backtrace_symbols_fd(frames.data(), size, STDERR_FILENO); }
};

/// The callers of the function whose frame is `frame`, as far as they lie on `stack` and keep frame pointers.
Place callersOf(void* frame, const Stack& stack) {
  Place place;
  for (auto* at = static_cast<char**>(frame); place.size < Place::kMaxFrames;) {
    const char* const address = reinterpret_cast<char*>(at);
    if (address < stack.base || address + 2 * sizeof *at > stack.top()) break;
    place.frames[static_cast<size_t>(place.size++)] = at[1];
    auto* const next = reinterpret_cast<char**>(at[0]);
    if (next <= at) break;
    at = next;
  }
  return place;
}

/// One mutex that one fiber holds.
struct Held {
  const pthread_mutex_t* mutex;
  uint64_t fiber;  ///< its id
  uint32_t depth;  ///< of a recursive mutex
  Place locked;    ///< by the last lock
};

class HeldLocks {
 public:
  void add(const pthread_mutex_t* mutex, uint64_t fiber, const Place& place) {
    Lock lock(m_lock);
    Held* held = find([=](const Held& each) { return each.mutex == mutex && each.fiber == fiber; });
    if (held == nullptr) {
      if (m_size == m_held.size()) return;  // the table is full, so this one goes unnoticed
      held = &m_held[m_size++];
      *held = {mutex, fiber, 0, {}};
    }
    ++held->depth;
    held->locked = place;
  }

  /// Removes the note of a mutex that `fiber` unlocks; 0 stands for no fiber.
  void remove(const pthread_mutex_t* mutex, uint64_t fiber) {
    if (m_size.load(std::memory_order_relaxed) == 0) return;
    Lock lock(m_lock);
    Held* held = find([=](const Held& each) { return each.mutex == mutex && each.fiber == fiber; });
    if (held == nullptr) held = find([=](const Held& each) { return each.mutex == mutex; });
    if (held == nullptr || --held->depth > 0) return;
    *held = m_held[--m_size];
  }

  /// Finds a mutex that `fiber`, suspended at the place `hash`, holds and was not reported for. Returns false if there is none.
  bool takeReport(uint64_t fiber, uint64_t hash, Held& out) {
    if (m_size.load(std::memory_order_relaxed) == 0) return false;
    Lock lock(m_lock);
    const Held* held = find([=](const Held& each) { return each.fiber == fiber; });
    if (held == nullptr || m_reports == m_reported.size()) return false;
    const uint64_t places = hash ^ held->locked.hash() << 1;
    const auto end = m_reported.begin() + m_reports;
    if (std::find(m_reported.begin(), end, places) != end) return false;
    m_reported[static_cast<size_t>(m_reports++)] = places;
    out = *held;
    return true;
  }

 private:
  template <class Match>
  Held* find(Match match) SYLAR_REQUIRES(m_lock) {
    const auto end = m_held.begin() + m_size;
    const auto at = std::find_if(m_held.begin(), end, match);
    return at != end ? &*at : nullptr;
  }

  Spinlock m_lock;
  std::array<Held, 256> m_held SYLAR_GUARDED_BY(m_lock) = {};
  std::atomic<size_t> m_size{0};  ///< written under the lock
  std::array<uint64_t, 256> m_reported SYLAR_GUARDED_BY(m_lock) = {};
  size_t m_reports SYLAR_GUARDED_BY(m_lock) = 0;
};

constinit HeldLocks g_held;

[[gnu::noinline]] void reportIfItHolds(const FiberCore& core) {
  const Place here = callersOf(__builtin_frame_address(0), core.stack);
  Held held;
  if (!g_held.takeReport(core.fiber->getId(), here.hash(), held)) return;
  char name[128];
  const size_t name_size = core.fiber->copyName(name, sizeof name);
  RawLine line;
  line.text("sylar: fiber ").number(held.fiber).text(" \"").text({name, name_size});
  line.text("\" is suspended while it holds the mutex ").address(held.mutex).text(", locked at\n").writeTo(STDERR_FILENO);
  held.locked.write();
  RawLine().text("suspended at\n").writeTo(STDERR_FILENO);
  here.write();
}

[[gnu::constructor]] void watch() { g_suspend_check = &reportIfItHolds; }

}  // namespace

void debug_locks::noteLocked(int error, const pthread_mutex_t* mutex, void* frame) {
  const FiberCore* const core = runningFiber();
  if (core == nullptr || (error != 0 && error != EOWNERDEAD)) return;
  g_held.add(mutex, core->fiber->getId(), callersOf(frame, core->stack));
}

void debug_locks::noteUnlocked(const pthread_mutex_t* mutex) {
  const FiberCore* const core = runningFiber();
  g_held.remove(mutex, core != nullptr ? core->fiber->getId() : 0);
}

}  // namespace sylar

#endif
