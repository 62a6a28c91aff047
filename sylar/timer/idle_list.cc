#include "sylar/idle_list.h"

#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

#include "sylar/base/os_mutex.h"
#include "sylar/check.h"
#include "sylar/clock.h"
#include "sylar/timer.h"
#include "sylar/timer/timer_core.h"
#include "sylar/timer/timer_sets.h"

namespace sylar {
namespace {

/// How many entries one run of the guard handles. Then the driver and whatever else is due come first.
constexpr int kMostAtOnce = 256;

/// The opposite of a Lock, for running foreign code.
class SYLAR_SCOPED_CAPABILITY Unlocked {
 public:
  explicit Unlocked(Spinlock& lock) SYLAR_RELEASE(lock) : m_lock(lock) { lock.unlock(); }
  ~Unlocked() SYLAR_RELEASE() { m_lock.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  Spinlock& m_lock;
};

}  // namespace

/// The guard is one timer of the manager. Under the lock, while no thread is at it (m_at_guard), it is armed if and only if
/// something is linked, and is due no later than the head. It is armed, stopped and served by one thread at a time, without the
/// lock, since that is foreign code. A thread that changes the list in between leaves the rest to that one. A touch need not
/// move the guard, because a guard that is served too early is armed for what has become the head.
class detail::IdleCore : public std::enable_shared_from_this<IdleCore> {
 public:
  IdleCore(TimerManager& manager, int64_t timeout_ns, int64_t slack_ns, idle_list::Callback on_idle)
      : m_timers(TimerSets::of(manager).own()),
        m_clock(manager.timerClock()),
        m_due_after_ns(saturatingAdd(timeout_ns, slack_ns)),
        m_slack_ns(slack_ns),
        m_on_idle(std::make_shared<const idle_list::Callback>(std::move(on_idle))),
        m_last_raw_ns(m_clock.nowNs()) {}
  IdleCore(const IdleCore&) = delete;
  IdleCore& operator=(const IdleCore&) = delete;

  bool isParents() const { return m_timers->isParents(); }

  void add(IdleEntry& entry, std::weak_ptr<void> what) SYLAR_EXCLUDES(m_lock);
  void touch(IdleEntry& entry) noexcept SYLAR_EXCLUDES(m_lock);
  bool remove(IdleEntry& entry) noexcept SYLAR_EXCLUDES(m_lock);
  void close() noexcept SYLAR_EXCLUDES(m_lock);
  size_t size() SYLAR_EXCLUDES(m_lock);

 private:
  void serve() SYLAR_EXCLUDES(m_lock);
  bool expireOne() SYLAR_REQUIRES(m_lock);
  void updateGuard() noexcept SYLAR_REQUIRES(m_lock);
  [[nodiscard]] bool arm() noexcept SYLAR_REQUIRES(m_lock);
  [[nodiscard]] bool disarm() noexcept SYLAR_REQUIRES(m_lock);
  void append(IdleEntry& entry) SYLAR_REQUIRES(m_lock);
  void unlink(IdleEntry& entry) SYLAR_REQUIRES(m_lock);
  int64_t now() SYLAR_REQUIRES(m_lock);
  int64_t headDue() const SYLAR_REQUIRES(m_lock) {
    return saturatingAdd(m_head->m_touched_ns.load(std::memory_order_relaxed), m_due_after_ns);
  }

  const std::shared_ptr<TimerCore> m_timers;  ///< of the manager, which may be gone when a touch arms the guard
  const Clock& m_clock;
  const int64_t m_due_after_ns;  ///< since an entry was linked
  const int64_t m_slack_ns;

  mutable Spinlock m_lock;
  std::shared_ptr<const idle_list::Callback> m_on_idle SYLAR_GUARDED_BY(m_lock);  ///< until closed; a call shares it
  IdleEntry* m_head SYLAR_GUARDED_BY(m_lock) = nullptr;
  IdleEntry* m_tail SYLAR_GUARDED_BY(m_lock) = nullptr;
  size_t m_size SYLAR_GUARDED_BY(m_lock) = 0;
  int64_t m_last_raw_ns SYLAR_GUARDED_BY(m_lock);  ///< what the clock said last
  std::atomic<int64_t> m_offset_ns{0};             ///< sum of the clock's steps back; written under the lock
  bool m_armed SYLAR_GUARDED_BY(m_lock) = false;   ///< a serve() will come
  bool m_at_guard SYLAR_GUARDED_BY(m_lock) = false;
  bool m_closed SYLAR_GUARDED_BY(m_lock) = false;
  TimerId m_guard = 0;  ///< belongs to the thread that set m_at_guard
};

// Time does not go back, and goes on at its true rate, as in TimerCore.
int64_t IdleCore::now() {
  const int64_t raw_ns = m_clock.nowNs();
  const int64_t step_ns = m_last_raw_ns - raw_ns;
  m_last_raw_ns = raw_ns;
  int64_t offset_ns = m_offset_ns.load(std::memory_order_relaxed);
  if (step_ns > 0) m_offset_ns.store(offset_ns = saturatingAdd(offset_ns, step_ns), std::memory_order_relaxed);
  return saturatingAdd(raw_ns, offset_ns);
}

void IdleCore::append(IdleEntry& entry) {
  entry.m_touched_ns.store(now(), std::memory_order_relaxed);
  SYLAR_DCHECK((m_head == nullptr) == (m_tail == nullptr));
  entry.m_next = nullptr;
  entry.m_prev = m_tail;
  (m_tail == nullptr ? m_head : m_tail->m_next) = &entry;
  m_tail = &entry;
  ++m_size;
}

void IdleCore::unlink(IdleEntry& entry) {
  entry.m_touched_ns.store(IdleEntry::kUnlinked, std::memory_order_relaxed);
  SYLAR_DCHECK((entry.m_prev == nullptr) == (m_head == &entry) && (entry.m_next == nullptr) == (m_tail == &entry));
  (entry.m_prev == nullptr ? m_head : entry.m_prev->m_next) = entry.m_next;
  (entry.m_next == nullptr ? m_tail : entry.m_next->m_prev) = entry.m_prev;
  --m_size;
}

void IdleCore::add(IdleEntry& entry, std::weak_ptr<void> what) {
  const Lock lock(m_lock);
  if (m_closed) return;
  entry.m_added = true;
  entry.m_what.swap(what);
  append(entry);
  updateGuard();
}

void IdleCore::touch(IdleEntry& entry) noexcept {
  if (m_slack_ns > 0) {
    const int64_t linked_ns = entry.m_touched_ns.load(std::memory_order_relaxed);
    if (linked_ns != IdleEntry::kUnlinked) {
      const int64_t since_ns = m_clock.nowNs() + m_offset_ns.load(std::memory_order_relaxed) - linked_ns;
      if (since_ns >= 0 && since_ns < m_slack_ns) return;
    }
  }
  const Lock lock(m_lock);
  if (!entry.m_added || m_closed) return;
  if (entry.m_touched_ns.load(std::memory_order_relaxed) != IdleEntry::kUnlinked) unlink(entry);
  append(entry);
  updateGuard();
}

bool IdleCore::remove(IdleEntry& entry) noexcept {
  std::weak_ptr<void> dropped;  // destroyed outside the lock
  const Lock lock(m_lock);
  const bool linked = entry.m_touched_ns.load(std::memory_order_relaxed) != IdleEntry::kUnlinked;
  if (linked) unlink(entry);
  entry.m_added = false;
  dropped.swap(entry.m_what);
  updateGuard();
  return linked;
}

void IdleCore::close() noexcept {
  std::shared_ptr<const idle_list::Callback> dropped;  // destroyed outside the lock
  const Lock lock(m_lock);
  m_closed = true;
  dropped.swap(m_on_idle);
  while (m_head != nullptr) unlink(*m_head);
  updateGuard();
}

size_t IdleCore::size() {
  const Lock lock(m_lock);
  return m_size;
}

/// Makes the guard follow the list.
void IdleCore::updateGuard() noexcept {
  if (m_at_guard) return;  // the thread that is there looks again
  m_at_guard = true;
  while (m_armed != (m_head != nullptr) && (m_armed ? disarm() : arm())) continue;
  m_at_guard = false;
}

/// Arms the guard for the head. Returns false if there is no memory, or there are too many timers.
bool IdleCore::arm() noexcept {
  const int64_t delay_ns = headDue() - now();
  m_armed = true;  // first: it may be served at once
  m_lock.unlock();
  try {
    m_guard = m_timers->start(
        delay_ns, [self = shared_from_this()] { self->serve(); }, Repeat::kNo);
  } catch (const std::bad_alloc&) {
    m_guard = 0;
  }
  m_lock.lock();
  if (m_guard != 0) return true;
  m_armed = false;
  return false;
}

/// Stops the guard. Returns false if it is about to be served, which sees to the rest.
bool IdleCore::disarm() noexcept {
  m_lock.unlock();
  const bool runs = m_timers->stop(m_guard) == TimerStop::kRunning;
  m_lock.lock();
  if (runs && m_armed) return false;
  m_armed = false;
  return true;
}

void IdleCore::serve() {
  const Lock lock(m_lock);
  m_armed = false;
  if (m_at_guard) return;  // the thread that is there arms it again
  m_at_guard = true;
  struct Leave {  // also if a callback ends its thread
    IdleCore& core;
    ~Leave() {
      core.m_at_guard = false;
      core.updateGuard();
    }
  } const leave{*this};
  for (int left = kMostAtOnce; left > 0 && expireOne(); --left) continue;
}

/// Calls back for the head if it is due.
bool IdleCore::expireOne() {
  if (m_head == nullptr || headDue() > now()) return false;
  auto taken = [on_idle = m_on_idle, what = m_head->m_what.lock()] {
    if (what != nullptr) (*on_idle)(what);
  };
  unlink(*m_head);
  const Unlocked unlocked(m_lock);
  auto call = std::move(taken);  // destroyed before the lock is taken again
  runLogged(std::ref(call));
  return true;
}

// ---- Functions that the template and the entries call. -----------------------------------------------------------------------

void IdleEntry::touch() noexcept {
  if (m_core != nullptr && !m_core->isParents()) m_core->touch(*this);
}

bool IdleEntry::remove() noexcept { return m_core != nullptr && !m_core->isParents() && m_core->remove(*this); }

std::shared_ptr<IdleCore> idle_list::make(TimerManager& manager, std::chrono::nanoseconds timeout, Callback on_idle,
                                          std::chrono::nanoseconds slack) {
  if (timeout.count() <= 0 || slack.count() < 0) {
    throw std::invalid_argument("sylar: the timeout of an IdleList must be more than 0, and its slack no less");
  }
  return std::make_shared<IdleCore>(manager, timeout.count(), slack.count(), std::move(on_idle));
}

void idle_list::add(const std::shared_ptr<IdleCore>& core, IdleEntry& entry, std::weak_ptr<void> what) {
  const bool linked = entry.remove();  // from the list that it was in, which may be another
  SYLAR_CHECK(!linked);
  entry.m_core = core;
  if (!core->isParents()) core->add(entry, std::move(what));
}

void idle_list::close(IdleCore& core) {
  if (!core.isParents()) core.close();
}
size_t idle_list::size(IdleCore& core) { return core.isParents() ? 0 : core.size(); }

}  // namespace sylar
