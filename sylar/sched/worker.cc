#include "sylar/sched/worker.h"

#include <algorithm>
#include <utility>

#include "sylar/base/check.h"
#include "sylar/base/sys.h"
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
    : m_scheduler(scheduler), m_slot(WorkerSlot::acquire()), m_clock(scheduler.clock()), m_name(std::move(name)) {
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

void Worker::turn() {
  takeMail();
  if (m_scheduler.isStopping()) followStop();
  const int64_t now_ns = m_clock.nowNs();
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
    if (m_scheduler.isStopping()) {
      m_scheduler.watchDeadline();
      if (behindStop()) return;
    }
  }
}

QueueNode* Worker::pick(int round) {
  if (round % kInjectorInterval == 0) {
    if (QueueNode* node = m_scheduler.rest().takeInjected()) return node;
  }
  m_fresh_next = !m_fresh_next;
  size_t left;
  if (m_fresh_next) {
    if (QueueNode* node = m_fresh.take(&left)) return node;
  }
  if (QueueNode* node = m_runnable.pop()) return node;
  if (QueueNode* node = m_fresh.take(&left)) return node;
  return m_scheduler.rest().takeInjected();
}

/// Fresh work may wait behind the fiber that scheduled it, not behind another computation while somebody sleeps. Who came to
/// fetch some looks at the others' queues, too: the wake-up that is spent on this worker may have been meant for what it leaves.
void Worker::shareFresh() {
  const bool elsewhere = std::exchange(m_came_to_fetch, false) && m_scheduler.rest().anyFresh();
  if (m_shared || (m_fresh.count() == 0 && !elsewhere) || !m_scheduler.rest().anySleeping()) return;
  m_shared = true;
  m_scheduler.rest().wakeOne();
}

bool Worker::pushFresh(QueueNode* node) {
  const Pushed pushed = m_fresh.push(node);
  if (pushed == Pushed::kFirst) m_shared = false;  // whoever was woken before may have found nothing, and sleep again
  return pushed != Pushed::kRejected;
}

bool Worker::steal() {
  m_came_to_fetch = true;
  if (m_scheduler.rest().injector().count() > 0)
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
  const auto behind = [this] { return behindStop(); };
  m_scheduler.rest().sleep(m_slot.mailbox, behind, [this] {
    const int64_t now_ns = m_clock.nowNs();
    m_driver->poll(now_ns, std::min(nextDeadline(), m_scheduler.waitCap(now_ns)));
  });
}

}  // namespace sylar
