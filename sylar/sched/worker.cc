#include "sylar/sched/worker.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sylar/base/check.h"
#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/sched/scheduler.h"

namespace sylar {
namespace {

[[gnu::tls_model("initial-exec")]] constinit thread_local Worker* t_worker = nullptr;

}  // namespace

[[gnu::noinline]] Worker* Worker::current() {
  __asm__ volatile("");
  return t_worker;
}

Worker::Worker(Scheduler& scheduler, std::string name)
    : m_scheduler(scheduler), m_clock(scheduler.clock()), m_name(std::move(name)), m_slot(WorkerSlot::acquire()) {
  static constinit std::atomic<uint64_t> g_next_owner{1};
  m_slot.owner.store(g_next_owner.fetch_add(1, std::memory_order_relaxed), std::memory_order_release);
  m_slot.scheduler.store(&scheduler, std::memory_order_release);
}

Worker::~Worker() {
  m_driver.reset();
  m_slot.scheduler.store(nullptr, std::memory_order_release);
  takeMail();  // questions to fibers that have ended
  while (QueueNode* node = m_runnable.pop()) ThreadFibers::abandon(*static_cast<Fiber*>(node));
  WorkerSlot::release(m_slot);
}

void Worker::run() {
  const tsan::Exempt of_this_thread;
  SYLAR_CHECK(t_worker == nullptr && runningFiber() == nullptr);  // one scheduler a thread, on the thread's own stack
  t_worker = this;
  m_slot.worker = this;
  ThreadFibers::current().setHost(this, &m_slot);
  setThread(sys::threadId());
  while (!m_scheduler.rest().done()) turn();
  m_slot.owner.store(0, std::memory_order_release);  // whoever is asked for something from here on is nobody's
  takeMail();
  SYLAR_CHECK(m_runnable.empty());
  SYLAR_CHECK(m_live == nullptr);
  setThread(0);
  m_slot.worker = nullptr;
  ThreadFibers::current().setHost(nullptr, nullptr);
  t_worker = nullptr;
}

void Worker::setThread(pid_t id) {
  m_thread_id.store(id, std::memory_order_release);
  AutoAdvance* const time = m_clock.autoAdvance();
  if (time != nullptr) id != 0 ? time->join(*this) : time->leave(*this);
}

void Worker::turn() {
  takeMail();
  if (m_scheduler.isStopping()) followStop();
  const int64_t now_ns = m_clock.nowNs();
  expireTimeouts(now_ns);
  m_driver->serve(now_ns);
  runBatch();
  if (goesOn()) {
    m_driver->poll(0, 0);  // whatever there is to do: descriptors get their turn
  } else {
    sleep();
  }
}

/// Whether there is something to do without sleeping; runs what it has stolen for that.
bool Worker::goesOn() {
  if (!m_runnable.empty() || fresh().count() > 0) return true;
  m_fresh.cameToFetch();
  if (m_scheduler.rest().injector().count() > 0) return true;  // the next turn begins with it; taken here, the next overtakes it
  QueueNode* const stolen = m_fresh.steal(m_scheduler.workers());
  if (stolen == nullptr) return false;
  m_fresh.share(m_scheduler.rest());
  runNode(stolen);
  return true;
}

void Worker::takeMail() {
  NodeList mail = m_slot.mailbox.drain();
  while (QueueNode* node = mail.pop()) {
    if (node->kind == QueueNode::Kind::kMessage) {
      attend(Fiber::Question::open(node));
    } else {
      m_runnable.push(node);
    }
  }
}

void Worker::runBatch() {
  m_fresh.beginTurn();
  for (int round = 0; round < kBatch; ++round) {
    QueueNode* const node = pick(round);
    if (node == nullptr) return;
    m_fresh.share(m_scheduler.rest());
    runNode(node);
    if (m_scheduler.isStopping()) {
      m_scheduler.watchDeadline();
      if (behindStop()) return;
    }
  }
}

QueueNode* Worker::pick(int round) {
  if (round % kInjectorInterval == 0) {
    if (QueueNode* node = m_scheduler.rest().injector().take()) return node;
  }
  m_fresh_next = !m_fresh_next;
  if (m_fresh_next) {
    if (QueueNode* node = m_fresh.take()) return node;
  }
  if (QueueNode* node = m_runnable.pop()) return node;
  if (QueueNode* node = m_fresh.take()) return node;
  return m_scheduler.rest().injector().take();
}

void Worker::sleep() {
  const auto behind = [this] { return behindStop(); };
  m_scheduler.rest().sleep(m_slot.mailbox, behind, [this] {
    if (AutoAdvance* const time = m_clock.autoAdvance()) return rest(*time);
    const int64_t now_ns = m_clock.nowNs();
    m_driver->poll(now_ns, std::min(nextDeadline(), m_scheduler.waitCap(now_ns)));
  });
}

// ---- Virtual time. -----------------------------------------------------------------------------------------------------------

/// Until something comes, or the clock has moved to a deadline. What comes is collected when the clock knows that this worker
/// goes on, so there is no moment at which it shows nowhere.
void Worker::rest(AutoAdvance& time) {
  m_due_ns = nextDeadline();
  const int64_t longest_ns = time.rest(*this);
  if (longest_ns == 0) return;
  const int ready = sys::waitReadable(m_driver->fd(), 0, std::min(longest_ns, m_scheduler.waitCap(0)));
  time.goOn(*this, ready != 0);
  if (ready > 0) m_driver->poll(0, 1);
}

/// The mailbox tells of mail before its notification shows in the driver's descriptor.
bool Worker::quiet() const {
  if (!m_slot.mailbox.sleeping() || m_scheduler.rest().anyFresh()) return false;
  int ready;
  do ready = sys::waitReadable(m_driver->fd(), 0, 0);
  while (ready == -EINTR);
  return ready == 0;
}

int64_t Worker::dueNs() const { return std::min(m_due_ns, m_driver->nextDueNs()); }

}  // namespace sylar
