#include "sylar/sched/worker.h"

#include <algorithm>
#include <new>
#include <utility>

#include "sylar/base/check.h"
#include "sylar/base/sys.h"
#include "sylar/sched/scheduler.h"

namespace sylar {
namespace {

[[gnu::tls_model("initial-exec")]] constinit thread_local Worker* t_worker = nullptr;
constinit std::atomic<uint64_t> g_next_id{1};

}  // namespace

[[gnu::noinline]] Worker* Worker::current() {
  __asm__ volatile("");
  return t_worker;
}

Worker::Worker(Scheduler& scheduler, std::string name)
    : m_scheduler(scheduler), m_slot(WorkerSlot::acquire()), m_name(std::move(name)), m_id(g_next_id.fetch_add(1)) {
  try {
    m_driver = scheduler.makeDriver(m_slot);
  } catch (...) {
    WorkerSlot::release(m_slot);
    throw;
  }
}

Worker::~Worker() {
  m_driver.reset();
  WorkerSlot::release(m_slot);
}

void Worker::run() {
  SYLAR_CHECK(t_worker == nullptr && runningFiber() == nullptr);  // one scheduler a thread, on the thread's own stack
  t_worker = this;
  sys::claimProcess();
  ThreadFibers::current().setHost(this, &m_slot, m_id);
  setThread(sys::threadId());
  while (!m_scheduler.done()) turn();
  takeMail();  // messages to fibers that have ended
  SYLAR_CHECK(m_runnable.empty());
  SYLAR_CHECK(m_live == nullptr);
  m_driver.reset();  // now, not with the scheduler: others may wait for what is registered there
  setThread(0);
  ThreadFibers::current().setHost(nullptr, nullptr, 0);
  t_worker = nullptr;
}

void Worker::turn() {
  takeMail();
  if (m_cancel_round != m_scheduler.cancelRound()) cancelAll();
  const int64_t now_ns = m_scheduler.clock().nowNs();
  expireTimeouts(now_ns);
  m_driver->serve(now_ns);
  runBatch();
  const bool more = !m_runnable.empty() || m_fresh.count() > 0;
  if (more || steal()) {
    m_driver->poll(0, 0);  // whatever there is to do: descriptors get their turn
  } else {
    sleep();
  }
}

void Worker::takeMail() {
  NodeList mail = m_slot.mailbox.drain();
  while (QueueNode* node = mail.pop()) {
    if (node->kind == QueueNode::Kind::kMessage) {
      const std::unique_ptr<Message> message(static_cast<Message*>(node));
      message->run(*this);
    } else {
      m_runnable.push(node);
    }
  }
}

void Worker::runBatch() {
  m_shared = false;
  for (int round = 0; round < kBatch; ++round) {
    QueueNode* const node = pick(round);
    if (node == nullptr) return;
    shareFresh();
    runNode(node);
  }
}

QueueNode* Worker::pick(int round) {
  if (round % kInjectorInterval == 0) {
    if (QueueNode* node = takeInjected()) return node;
  }
  m_fresh_next = !m_fresh_next;
  size_t left;
  if (m_fresh_next) {
    if (QueueNode* node = m_fresh.take(&left)) return node;
  }
  if (QueueNode* node = m_runnable.pop()) return node;
  if (QueueNode* node = m_fresh.take(&left)) return node;
  return takeInjected();
}

/// Who takes from the injector and leaves some behind wakes one more worker: so a burst wakes as many as it needs.
QueueNode* Worker::takeInjected() {
  size_t left = 0;
  QueueNode* const node = m_scheduler.injector().take(&left);
  if (left > 0) m_scheduler.wakeOne();
  return node;
}

/// Fresh work may wait behind the fiber that scheduled it, not behind another computation while somebody sleeps. Who came to
/// fetch some looks at the others' queues, too: the wake-up that is spent on this worker may have been meant for what it leaves.
void Worker::shareFresh() {
  const bool elsewhere = std::exchange(m_came_to_fetch, false) && m_scheduler.anyFresh();
  if (m_shared || (m_fresh.count() == 0 && !elsewhere) || !m_scheduler.anySleeping()) return;
  m_shared = true;
  m_scheduler.wakeOne();
}

bool Worker::pushFresh(QueueNode* node) {
  const Pushed pushed = m_fresh.push(node);
  if (pushed == Pushed::kFirst) m_shared = false;  // whoever was woken before may have found nothing, and sleep again
  return pushed != Pushed::kRejected;
}

bool Worker::steal() {
  m_came_to_fetch = true;
  if (m_scheduler.injector().count() > 0)
    return true;  // the next turn begins with it; taken here, the next one would overtake it
  const auto& workers = m_scheduler.workers();
  for (size_t i = 0; i < workers.size(); ++i) {
    Worker& victim = *workers[++m_next_victim % workers.size()];
    if (&victim == this) continue;
    NodeList loot;
    if (victim.fresh().steal(&loot) == 0) continue;
    while (QueueNode* node = loot.pop()) SYLAR_CHECK(pushFresh(node));
    return true;
  }
  return false;
}

void Worker::sleep() {
  if (!m_slot.mailbox.trySleep()) return;
  // Declared asleep first, looked second: who offers work does it the other way round, so one of the two sees the other.
  Scheduler::Sleeper sleeper(m_scheduler);
  if (m_scheduler.anyFresh() || sleeper.decidedDone() || m_scheduler.done()) {  // done: start() failed
    m_slot.mailbox.wakeUp();
    return;
  }
  const int64_t now_ns = m_scheduler.clock().nowNs();
  m_driver->poll(now_ns, std::min(nextDeadline(), m_scheduler.waitCap(now_ns)));
  m_slot.mailbox.wakeUp();
}

// ---- Fibers. -----------------------------------------------------------------------------------------------------------------

void Worker::runNode(QueueNode* node) {
  FiberCore* core;
  if (node->kind == QueueNode::Kind::kFiber) {
    auto& fiber = *static_cast<Fiber*>(node);
    if (!prepareFresh(fiber)) return;
    core = ThreadFibers::coreOf(fiber);
  } else {
    core = static_cast<FiberCore*>(node);
  }
  core->fiber->move(core->fiber->life(), Fiber::Life::kRunning);
  settle(ThreadFibers::current().enter(*core));
}

/// Gives fresh work a core and a stack. One that was started by hand on a plain thread has them already.
bool Worker::prepareFresh(Fiber& fiber) {
  ThreadFibers& thread = ThreadFibers::current();
  if (ThreadFibers::coreOf(fiber) != nullptr) {
    thread.adopt(fiber);
  } else if (!thread.start(fiber)) {
    ThreadFibers::failToStart(fiber);
    return false;
  }
  linkLive(*ThreadFibers::coreOf(fiber));
  return true;
}

/// Does what the fiber asked for when it gave the thread back.
void Worker::settle(FiberCore& core) {
  switch (core.request) {
    case Request::kReady:
      core.fiber->move(Fiber::Life::kRunning, Fiber::Life::kQueued);
      m_runnable.push(&core);
      return;
    case Request::kHold:
      core.fiber->move(Fiber::Life::kRunning, core.cancelled ? Fiber::Life::kQueued : Fiber::Life::kHeld);
      if (!core.cancelled) return;
      m_runnable.push(&core);
      return;
    case Request::kParked: return;
    case Request::kDone:
      unlinkLive(core);
      ThreadFibers::current().finish(core);
      return;
  }
}

void Worker::permit(Fiber& fiber) {
  FiberCore* const core = ThreadFibers::coreOf(fiber);
  if (core == nullptr || fiber.workerId() != m_id) return;  // it has ended meanwhile, or its worker has
  const Fiber::Life life = fiber.life();
  if (life != Fiber::Life::kHeld && life != Fiber::Life::kReady) {
    core->permit = true;
    return;
  }
  if (!core->live) {  // it was resumed by hand; from here on it is the scheduler's
    ThreadFibers::keepAlive(fiber);
    linkLive(*core);
    core->resumer = nullptr;
  }
  fiber.move(life, Fiber::Life::kQueued);
  m_runnable.push(core);
}

WakeReason Worker::park(FiberCore& core, const Waker& waker, Deadline deadline, WaitFor what) noexcept {
  // Cancelled before: the wait is decided here and now, and its delivery goes to the back of the queue like any other.
  if (core.cancelled && !core.shielded && waker.claim(WakeReason::kCanceled)) m_runnable.push(&core);
  const bool counts = what == WaitFor::kOutside || !deadline.isNever();
  const bool by_hand = !core.live;
  const Fiber::ptr keep = by_hand ? core.fiber->weak_from_this().lock() : nullptr;
  if (by_hand) linkLive(core);
  if (!deadline.isNever()) arm(core, deadline.ns());
  m_waiting += counts;
  ThreadFibers::current().park();
  m_waiting -= counts;
  core.deadline_ns = kNever;
  if (by_hand) unlinkLive(core);
  return core.wait.reason();
}

/// Shielded: a joiner may have lent the fiber its own stack, and goes on only when that is over.
void Worker::awaitEnd(Fiber& fiber) {
  struct Joiner : Fiber::EndObserver {
    Waker waker;
  } joiner;
  joiner.ended = [](Fiber::EndObserver* observer) { static_cast<Joiner*>(observer)->waker.wake(WakeReason::kReady); };
  Wait wait;
  joiner.waker = wait.waker();
  if (!fiber.observeEnd(joiner)) {
    wait.giveUp();
    return;
  }
  // What runs elsewhere ends without this scheduler's doing; what is ours is cancelled if nothing else goes on.
  const bool elsewhere = fiber.workerId() != 0 && m_scheduler.workerOf(fiber) == nullptr;
  FiberCore& me = *wait.waker().core;
  const bool outer = std::exchange(me.shielded, true);
  wait.park(Deadline::never(), elsewhere ? WaitFor::kOutside : WaitFor::kFibers);
  me.shielded = outer;
}

void Worker::linkLive(FiberCore& core) {
  core.live = true;
  core.live_prev = nullptr;
  core.live_next = m_live;
  if (m_live != nullptr) m_live->live_prev = &core;
  m_live = &core;
  ++m_live_count;
  m_cancelled_count += core.cancelled;
}

void Worker::unlinkLive(FiberCore& core) {
  core.live = false;
  (core.live_prev == nullptr ? m_live : core.live_prev->live_next) = core.live_next;
  if (core.live_next != nullptr) core.live_next->live_prev = core.live_prev;
  --m_live_count;
  m_cancelled_count -= core.cancelled;
}

/// Asks every fiber to end: those that wait are brought back, all later waits end at once.
void Worker::cancelAll() {
  m_cancel_round = m_scheduler.cancelRound();
  for (FiberCore* core = m_live; core != nullptr; core = core->live_next) {
    if (!std::exchange(core->cancelled, true)) ++m_cancelled_count;
    const Fiber::Life life = core->fiber->life();
    if (life == Fiber::Life::kParked) {
      if (!core->shielded && core->wait.claim(core->wait.epoch(), WakeReason::kCanceled)) m_runnable.push(core);
    } else if (life == Fiber::Life::kHeld) {
      core->fiber->move(life, Fiber::Life::kQueued);
      m_runnable.push(core);
    }
  }
}

// ---- Timeouts. A node stays linked at the deadline that it was registered with; a later one is only noted (lazy push). --------

bool Worker::reserveTimeout(FiberCore& core, Deadline deadline) {
  if (deadline.isNever() || core.timer_linked) return true;
  try {
    m_timeouts.insert(core.timer, deadline.ns());  // disarmed, until the fiber parks
  } catch (const std::bad_alloc&) {
    return false;
  }
  core.timer_linked = true;
  return true;
}

void Worker::arm(FiberCore& core, int64_t deadline_ns) {
  core.deadline_ns = deadline_ns;
  if (!core.timer_linked) {
    m_timeouts.insert(core.timer, deadline_ns);
    core.timer_linked = true;
  } else if (deadline_ns < core.timer.deadline_ns) {
    m_timeouts.update(core.timer, deadline_ns);
  }
}

void Worker::unlinkTimer(FiberCore& core) {
  m_timeouts.erase(core.timer);
  core.timer_linked = false;
}

void Worker::expireTimeouts(int64_t now_ns) {
  if (m_timeouts.nextDue() > now_ns) return;
  TimerList due;
  m_timeouts.expire(now_ns, kTimeoutsPerTurn, due);
  while (TimerNode* node = due.pop()) {
    FiberCore& core = FiberCore::ofTimer(*node);
    core.timer_linked = false;
    if (core.deadline_ns == kNever) continue;  // disarmed
    if (core.deadline_ns > now_ns) {
      arm(core, core.deadline_ns);
    } else if (core.wait.claim(core.wait.epoch(), WakeReason::kTimeout)) {
      m_runnable.push(&core);
    }
  }
}

/// The earliest true deadline: what was disarmed or pushed is put right first, so that an idle worker never wakes for it.
int64_t Worker::nextDeadline() {
  while (TimerNode* node = m_timeouts.front()) {
    FiberCore& core = FiberCore::ofTimer(*node);
    if (core.deadline_ns == node->deadline_ns) return node->deadline_ns;
    if (core.deadline_ns == kNever) {
      unlinkTimer(core);
    } else {
      m_timeouts.update(core.timer, core.deadline_ns);
    }
  }
  return kNever;
}

// ---- waker.h, park.h. --------------------------------------------------------------------------------------------------------

void Waker::deliver(FiberCore& core) {
  Worker* const here = t_worker;
  WorkerSlot& home = *core.home;
  if (here != nullptr && &here->slot() == &home) {
    here->makeRunnable(&core);
  } else {
    home.push(&core);
  }
}

bool mayPark() { return t_worker != nullptr && runningFiber() != nullptr; }

bool reserveTimeout(Deadline deadline) { return Worker::current()->reserveTimeout(*runningFiber(), deadline); }

const Clock& waitClock() { return Worker::current()->scheduler().clock(); }

Wait::Wait() {
  SYLAR_CHECK(mayPark());
  FiberCore* const me = runningFiber();
  m_waker = {me, me->wait.prepare()};
}

WakeReason Wait::park(Deadline deadline, WaitFor what) {
  SYLAR_CHECK(!std::exchange(m_ended, true));
  return Worker::current()->park(*m_waker.core, m_waker, deadline, what);
}

bool Wait::giveUp() {
  if (m_waker.core->wait.giveUp(m_waker.epoch)) {
    m_ended = true;
    return true;
  }
  park();  // a delivery is on its way
  return false;
}

WakeReason parkUntil(Deadline deadline) {
  if (!reserveTimeout(deadline)) throw std::bad_alloc();
  Wait wait;
  return wait.park(deadline);
}

}  // namespace sylar
