#include "sylar/sched/worker.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/timer/timer_sets.h"

namespace sylar::detail {

[[gnu::tls_model("initial-exec")]] constinit thread_local Worker* Worker::t_worker = nullptr;

namespace {

constexpr int64_t kLongWaitNs = 20'000'000;

constinit std::atomic<int64_t> g_usual_slack_ns{0};  // of the first worker's thread; 0 if not known

/// The only thread of a forked child is no worker, whatever it was before, so it drops the slack. An exec keeps what it has.
[[gnu::constructor]] void followForks() {
  (void)pthread_atfork(nullptr, nullptr, [] {
    if (Worker::currentHere() != nullptr) Worker::dropTimerSlack();
  });
}

/// Returns until when to sleep first. The kernel may be late by 0.1 % of a long wait, so the end of such a wait is a sleep of
/// its own.
int64_t firstHop(int64_t now_ns, int64_t deadline_ns) {
  const int64_t wait_ns = deadline_ns - now_ns;
  return deadline_ns == kNever || wait_ns <= kLongWaitNs ? deadline_ns : deadline_ns - wait_ns / 512;
}

}  // namespace

[[gnu::noinline]] Worker* Worker::current() {
  __asm__ volatile("");
  return t_worker;
}

[[gnu::noinline]] void Worker::adoptThreadPointer() {
  t_worker = this;
  TimerSets::setOwn(m_number);
}
[[gnu::noinline]] void Worker::forgetThread() {
  t_worker = nullptr;
  TimerSets::setOwn(0);
}

Worker::Worker(SchedulerCore& scheduler, size_t number, std::string name)
    : m_scheduler(scheduler),
      m_number(number),
      m_clock(scheduler.clock()),
      m_name(std::move(name)),
      m_slot(WorkerSlot::acquire()),
      m_trimmer(scheduler.trimAfterNs()) {
  static constinit std::atomic<uint64_t> g_next_owner{1};
  m_slot.owner.store(g_next_owner.fetch_add(1, std::memory_order_relaxed), std::memory_order_release);
  m_slot.scheduler.store(&scheduler, std::memory_order_release);
}

Worker::~Worker() {
  m_driver.reset();
  m_slot.scheduler.store(nullptr, std::memory_order_release);
  takeMail();  // messages to fibers that have ended
  NodeList left = m_runnable.takeLeft();
  while (QueueNode* node = left.pop()) {
    auto& fiber = FiberControl::fiberOf(node);
    ThreadFibers::abandon(fiber);
    ThreadFibers::drop(fiber);
  }
  WorkerSlot::release(m_slot);
}

void Worker::run() {
  const tsan::Exempt of_this_thread;
  SYLAR_CHECK(t_worker == nullptr && runningFiber() == nullptr);  // one scheduler a thread, on the thread's own stack
  SYLAR_DCHECK(m_driver != nullptr && m_slot.worker == nullptr && m_thread_fibers == nullptr);
  t_worker = this;
  TimerSets::setOwn(m_number);
  m_slot.worker = this;
  if (m_driver->waitsForDescriptors()) m_slot.fd_driver.store(m_driver.get(), std::memory_order_release);
  m_thread_fibers = &ThreadFibers::current();
  m_thread_fibers->setHost(this, &m_slot);
  lends_threads = m_scheduler.lendsThreads();
  setThread(sys::threadId());
#ifdef SYLAR_THREAD_POINTER
  if (lends_threads) {  // fibers come back to it from masks of their own
    uint64_t mask = 0;
    sys::call(SYS_rt_sigprocmask, SIG_SETMASK, nullptr, &mask, sizeof mask);
    keepSignalMask(mask);
  }
#endif
  const int64_t slack_ns = sys::timerSlack();
  const bool own_slack = m_scheduler.timerSlackNs() > 0;
  if (own_slack) {
    int64_t unknown = 0;
    g_usual_slack_ns.compare_exchange_strong(unknown, slack_ns, std::memory_order_relaxed);
    sys::setTimerSlack(m_scheduler.timerSlackNs());
  }
  m_driver->enter();
  while (!m_scheduler.idle().done()) runOnce();
  m_driver->leave();
  if (own_slack) sys::setTimerSlack(slack_ns);       // the thread may be the caller's
  m_slot.owner.store(0, std::memory_order_release);  // a fiber that is asked for something from here on has no home
  takeMail();
  SYLAR_CHECK(m_runnable.empty());
  SYLAR_CHECK(m_live.count() == 0);
  setThread(0);
  m_slot.fd_driver.store(nullptr, std::memory_order_relaxed);
  m_slot.worker = nullptr;
  m_thread_fibers->setHost(nullptr, nullptr);
  TimerSets::setOwn(0);
  t_worker = nullptr;
  m_ended.store(1, std::memory_order_release);
  sys::futexWake(m_ended, 1);  // only the address is used: the worker may be gone
}

bool Worker::awaitEnd() const {
  SYLAR_DCHECK(!detached());
  while (m_ended.load(std::memory_order_acquire) == 0) sys::futexWait(m_ended, 0, kNever);
  return !m_driver->holdsThread();
}

void Worker::dropTimerSlack() {
  const int64_t usual_ns = g_usual_slack_ns.load(std::memory_order_relaxed);
  if (usual_ns > 0) sys::setTimerSlack(usual_ns);
}

constinit std::atomic<void (*)()> Worker::s_next_in_child{nullptr};

void Worker::leaveLoopInChild() {
  SYLAR_DCHECK(sys::inForkedChild());
  void (*const next)() = s_next_in_child.load(std::memory_order_relaxed);
  if (next == nullptr) ::_exit(0);
  next();
}

void Worker::setThread(pid_t id) {
  m_thread_id.store(id, std::memory_order_release);
  AutoAdvance* const time = m_clock.autoAdvance();
  if (time != nullptr) id != 0 ? time->join(*this) : time->leave(*this);
}

void Worker::runOnce() {
  SYLAR_DCHECK(isHere() && inLoop() && onThreadStack());
  takeMail();
  if (m_scheduler.isStopping()) followStop();
  const int64_t now_ns = m_clock.nowNs();
  m_slot.iteration_ns = now_ns;
  m_timeouts.expire(now_ns, m_clock, m_runnable);
  const bool more = m_driver->serve(now_ns);
  runBatch();
  const bool trims = m_trimmer.run(m_clock, m_counts.switches.get(), m_live);
  m_driver->submit();
  if (goesOn() || more || trims) {
    poll(0, 0);  // descriptors are looked at even if there is more to do
  } else {
    sleep();
  }
}

/// A message may hold the last handle of a fiber that has ended. Its end may run an exception handler of the program.
void Worker::takeMail() {
  NodeList mail = m_slot.mailbox.drain();
  NodeList last;
  while (QueueNode* node = mail.pop()) {
    m_counts.mail.add();
    if (node->kind != QueueNode::Kind::kMessage) {
      if (node->kind == QueueNode::Kind::kFiber) static_cast<SpawnNode*>(node)->queue.store(this, std::memory_order_relaxed);
      m_runnable.push(node);
      continue;
    }
    Fiber::ptr fiber = FiberRequest::open(node);
    handleRequests(fiber);
    if (fiber.use_count() > 1) continue;
    // The others have dropped their handles, perhaps behind the fiber's end on another thread. The count orders nothing, so a fence
    // does; the load of the state does the same for ThreadSanitizer, which knows no fences.
    std::atomic_thread_fence(std::memory_order_acquire);
    (void)stateOf(*fiber);
    last.push(&control(*fiber));
    ThreadFibers::keepAlive(std::move(fiber));
  }
  const auto end = [&last] {
    while (QueueNode* node = last.pop()) (void)ThreadFibers::release(FiberControl::fiberOf(node));
  };
  if (!last.empty()) isHere() ? runUserCode(end) : end();
}

void Worker::sleep() {
  SYLAR_DCHECK(m_runnable.empty());
  const auto behind = [this] { return behindStop(); };
  m_scheduler.idle().sleep(m_slot.mailbox, behind, [this] {
    if (AutoAdvance* const time = m_clock.autoAdvance()) return enterIdle(*time);
    const int64_t now_ns = m_clock.nowNs();
    m_counts.sleeps.add();
    const int64_t next_ns = std::min(m_timeouts.next(now_ns), m_trimmer.nextNs());
    poll(now_ns, std::min(firstHop(now_ns, next_ns), m_scheduler.waitCap(now_ns)));
  });
}

// ---- Virtual time. -----------------------------------------------------------------------------------------------------------

/// Rests until something comes, or the clock has moved to a deadline. Events are collected after the clock knows that this
/// worker goes on, so there is no moment at which they show nowhere.
void Worker::enterIdle(AutoAdvance& time) {
  m_counts.sleeps.add();
  m_counts.polls.add();  // the clock's look counts as one
  m_due_ns = m_timeouts.next(m_clock.nowNs());
  const int64_t longest_ns = time.enterIdle(*this);
  if (longest_ns == 0) return;
  const int ready = sys::waitReadable(m_driver->fd(), 0, std::min(longest_ns, m_scheduler.waitCap(0)));
  time.leaveIdle(*this, ready != 0);
  if (ready > 0) m_counts.tickles.add(m_driver->poll(0, 1));
}

/// Looks at the mailbox first, because it tells of mail before the notification shows in the driver's descriptor.
bool Worker::isQuiescent() const {
  if (!m_slot.mailbox.sleeping() || m_scheduler.idle().anySpawned() || m_scheduler.waitForThreads() > 0) return false;
  int ready;
  do ready = sys::waitReadable(m_driver->fd(), 0, 0);
  while (ready == -EINTR);
  return ready == 0;
}

int64_t Worker::dueNs() const { return std::min(m_due_ns, m_driver->nextDueNs()); }

void Worker::poll(int64_t now_ns, int64_t deadline_ns) {
  SYLAR_DCHECK(inLoop());
  if (sys::inForkedChild()) leaveLoopInChild();  // a handler has forked during the switch to the loop
  m_counts.polls.add();
  m_counts.tickles.add(m_driver->poll(now_ns, deadline_ns));
}

void Worker::addStats(WorkerStats& sum) const {
  const FiberTimeouts::Counts& timeouts = m_timeouts.counts();
  const std::pair<uint64_t WorkerStats::*, const Counter&> counts[] = {
      {&WorkerStats::switches, m_counts.switches},
      {&WorkerStats::polls, m_counts.polls},
      {&WorkerStats::sleeps, m_counts.sleeps},
      {&WorkerStats::tickles, m_counts.tickles},
      {&WorkerStats::mail, m_counts.mail},
      {&WorkerStats::timeouts_armed, timeouts.armed},
      {&WorkerStats::timeouts_pushed, timeouts.pushed},
      {&WorkerStats::timeouts_relinked, timeouts.relinked},
      {&WorkerStats::timeouts_fired, timeouts.fired},
      {&WorkerStats::stacks_trimmed, m_trimmer.trimmed()},
  };
  static_assert(sizeof(WorkerStats) == sizeof(uint64_t) * std::size(counts), "a count is missing above");
  for (const auto& [member, count] : counts) sum.*member += count.get();
}

}  // namespace sylar::detail
