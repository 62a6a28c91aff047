#include "sylar/sync/blocking_pool.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/clock.h"
#include "sylar/sched/park.h"
#include "sylar/sched/worker.h"

namespace sylar::detail {

struct BlockingPool::PostedJob : Job {
  explicit PostedJob(std::function<void()>&& posted) : Job{&BlockingPool::runPosted, this}, callable(std::move(posted)) {}

  const std::function<void()> callable;
};

BlockingPool::BlockingPool(BlockingLimits limits) : m_limits(limits) { SYLAR_CHECK(limits.max_threads > 0); }

BlockingPool::~BlockingPool() { end(true); }

BlockingPool& BlockingPool::process() {
  alignas(BlockingPool) static unsigned char s_memory[sizeof(BlockingPool)];
  static BlockingPool& pool = *::new (s_memory) BlockingPool;  // never fails, because a hooked call could not report it
  return pool;
}

bool BlockingPool::needsHelper() { return mayPark() && !sys::inForkedChild(); }

size_t BlockingPool::threads() const {
  Lock lock(m_mutex);
  return m_threads;
}

size_t BlockingPool::queued() const {
  Lock lock(m_mutex);
  return m_queue.size + m_waiting.size;
}

BlockingPool::Job* BlockingPool::Queue::pop() {
  Job* const job = std::exchange(first, first->next);
  --size;
  return job;
}

void BlockingPool::Queue::push(Job& job) {
  job.next = nullptr;
  (first == nullptr ? first : last->next) = &job;
  last = &job;
  ++size;
}

// ---- The fiber. --------------------------------------------------------------------------------------------------------------

int BlockingPool::runJob(Job& job) {
  const this_fiber::CancelShield shield;
  job.virtual_time = ClockHold(waitClock());
  bool can_add = provideThread(job.length);
  for (bool submitted = false;;) {
    Wait wait(WaitsFor::kHelper);
    Lock lock(m_mutex);
    if (!submitted && can_add && lacksThread(job.length)) {  // another call has got it
      lock.unlock();
      wait.withdraw();
      can_add = provideThread(job.length);
      continue;
    }
    job.waker = wait.waker();
    const bool refused = !submitted && !submit(job);
    submitted = true;
    const bool over = refused || job.done;
    lock.unlock();
    if (over) {
      wait.withdraw();
      if (refused) return -EAGAIN;
      break;
    }
    if (wait.park() == WakeReason::kReady) break;
    // The last phase of cancelling. The function still uses this stack, so wait on until the fiber is abandoned.
  }
  if (job.exception != nullptr) std::rethrow_exception(job.exception);
  return 0;
}

int BlockingPool::post(std::function<void()> function) {
  auto job = std::make_unique<PostedJob>(std::move(function));
  job->virtual_time = ClockHold(waitClock());
  for (bool can_add = true;;) {
    can_add = can_add && provideThread(job->length);
    Lock lock(m_mutex);
    if (can_add && lacksThread(job->length)) continue;
    if (!submit(*job)) return -EAGAIN;
    (void)job.release();
    return 0;
  }
}

void BlockingPool::runPosted(void* job) { static_cast<PostedJob*>(job)->callable(); }

void BlockingPool::setLimits(const BlockingLimits& limits) {
  Lock lock(m_mutex);
  m_limits = limits;
}

size_t BlockingPool::longPlaces() const { return std::max<size_t>(m_limits.max_threads / 2, 1); }

/// Returns true if a call would find nobody, and there may be one more thread.
bool BlockingPool::lacksThread(Length length) const {
  if (length == Length::kOthers && m_long >= longPlaces()) return false;
  return m_queue.size >= m_idle + m_coming && m_threads < m_limits.max_threads;
}

/// Makes a thread for a call, if it lacks one. Returns false if none can be had now. Not under the lock, nor while the fiber begins
/// to wait: a new thread takes memory of an allocator, and that may suspend the fiber.
bool BlockingPool::provideThread(Length length) {
  {
    Lock lock(m_mutex);
    if (!lacksThread(length)) return true;
    ++m_threads;
    ++m_coming;  // so others may wait for it already
  }
  for (;; ::usleep(1000)) {
    if (makeThread()) return true;
    Lock lock(m_mutex);
    if (m_threads == 1 && m_queue.size > 0) continue;  // they do, and there is no other
    --m_threads;
    --m_coming;
    tellEnd();
    return false;
  }
}

bool BlockingPool::submit(Job& job) {
  const size_t comers = m_idle + m_coming;
  const size_t queued = m_queue.size + m_waiting.size - std::min(m_queue.size, comers);  // they take the others
  if (job.length == Length::kOthers && m_long >= longPlaces()) {
    if (queued >= m_limits.max_queued) return false;
    m_waiting.push(job);
    return true;
  }
  if (m_queue.size >= comers && (m_threads == 0 || queued >= m_limits.max_queued)) return false;
  if (job.length == Length::kOthers) ++m_long;
  enqueue(job);
  return true;
}

void BlockingPool::enqueue(Job& job) {
  m_queue.push(job);
  m_calls.fetch_add(1, std::memory_order_release);
  sys::futexWake(m_calls, 1);
}

/// Ends a job of Length::kOthers, and lets the next one have its place. The caller's thread is idle.
void BlockingPool::leaveLong() {
  if (m_waiting.first != nullptr) {
    enqueue(*m_waiting.pop());
  } else {
    --m_long;
  }
}

// ---- The threads. ------------------------------------------------------------------------------------------------------------

/// Returns false if no thread can be had now.
bool BlockingPool::makeThread() {
  sigset_t all;
  ::sigfillset(&all);  // but libc's own, by which it changes the user and groups of each thread
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setsigmask_np(&attributes, &all);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const bool made = sys::createThread(&thread, &attributes, &BlockingPool::threadMain, this) == 0;
  ::pthread_attr_destroy(&attributes);
  return made;
}

void* BlockingPool::threadMain(void* pool) {
  ::pthread_setname_np(::pthread_self(), "sylar_blocking");
  Worker::dropTimerSlack();
  static_cast<BlockingPool*>(pool)->work();
  return nullptr;
}

void BlockingPool::work() {
  {
    Lock lock(m_mutex);
    --m_coming;
    ++m_idle;  // until it takes a job
  }
  while (Job* const job = take()) {
    try {
      job->call(job->function);
    } catch (...) {
      job->exception = std::current_exception();
    }
    finish(*job);
  }
}

/// Returns the next job, or null if the thread is to end and is no longer counted. The thread counts as idle until then.
BlockingPool::Job* BlockingPool::take() {
  const int64_t begin_ns = steadyClock().nowNs();
  for (;;) {
    Lock lock(m_mutex);
    const int64_t deadline_ns = saturatingAdd(begin_ns, std::chrono::nanoseconds(m_limits.idle).count());
    if (m_queue.first != nullptr) {
      Job* const job = m_queue.pop();
      leaveIdle();
      return job;
    }
    if (m_ending || steadyClock().nowNs() >= deadline_ns) {
      --m_threads;
      leaveIdle();
      return nullptr;
    }
    const uint32_t seen = m_calls.load(std::memory_order_relaxed);
    lock.unlock();
    sys::futexWait(m_calls, seen, deadline_ns);
  }
}

void BlockingPool::leaveIdle() {
  --m_idle;
  tellEnd();
}

/// For end(), which waits for threads to go.
void BlockingPool::tellEnd() {
  if (!m_ending) return;
  m_left_idle.fetch_add(1, std::memory_order_release);
  sys::futexWake(m_left_idle, INT32_MAX);
}

void BlockingPool::finish(Job& job) {
  if (job.call == &runPosted) return finishPosted(static_cast<PostedJob&>(job));
  Lock lock(m_mutex);
  ++m_idle;
  if (job.length == Length::kOthers) leaveLong();
  job.done = true;
  const ClockHold until_it_is_told(std::move(job.virtual_time));
  const Waker waker = job.waker;
  const bool won = waker.claim(WakeReason::kReady);
  lock.unlock();  // from here on the fiber may be gone, if another waker woke it
  if (won) Waker::deliver(*waker.core);
}

void BlockingPool::finishPosted(PostedJob& job) {
  const ClockHold until_it_is_told(std::move(job.virtual_time));
  delete &job;  // with what the function owned
  Lock lock(m_mutex);
  ++m_idle;
}

/// Ends the idle threads, or with `all` every thread.
void BlockingPool::end(bool all) {
  for (;;) {
    Lock lock(m_mutex);
    m_ending = (all ? m_threads : m_idle + m_coming) > 0;
    if (!m_ending) return;
    const uint32_t seen = m_left_idle.load(std::memory_order_relaxed);
    m_calls.fetch_add(1, std::memory_order_release);
    lock.unlock();
    sys::futexWake(m_calls, INT32_MAX);
    sys::futexWait(m_left_idle, seen, kNever);
  }
}

}  // namespace sylar::detail
