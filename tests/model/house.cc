#include "tests/model/house.h"

namespace sylar {

template <>
void model::ModelWaker::deliver(model::Core& core) {
  model::Slot& home = *core.home.get();
  model::require(!core.linked.get(), "a core is delivered once");
  model::require(!core.gone, "nobody delivers what was abandoned");
  if (home.worker.isHere()) {
    home.worker.makeRunnable(core);
  } else {
    core.linked.set(true);
    home.push(&core);
  }
}

template <>
void model::ModelWaker::deliverByMail(model::Core& core) {
  model::Slot& home = *core.home.get();
  model::require(!core.linked.get(), "a core is delivered once");
  core.linked.set(true);
  home.push(&core);
}

}  // namespace sylar

namespace sylar::model {

bool Slot::poll(const std::function<bool()>& or_else) {
  await("asleep", [&] { return bell.peek() != 0 || or_else(); });
  return bell.exchange(0, std::memory_order_acq_rel) != 0;
}

void Worker::makeRunnable(Core& core) {
  core.linked.set(true);
  m_runnable.push(&core);
}

void Worker::takeMail() {
  NodeList mail = m_slot.mailbox.drain();
  while (QueueNode* node = mail.pop()) m_runnable.push(node);
}

void Worker::sleep(const std::function<bool()>& enough) {
  const auto behind = [this] {
    return m_cancel_round != m_house->idle().cancelRound() || m_cancel_phase != m_house->idle().cancelPhase();
  };
  m_house->idle().sleep(m_slot.mailbox, behind, [&] { m_slot.poll(enough); });
}

void Worker::follow() {
  const uint64_t round = m_house->idle().cancelRound();
  const CancelPhase call = m_house->idle().cancelPhase();
  if (std::exchange(m_cancel_round, round) != round && on_cancel_round) on_cancel_round();
  if (std::exchange(m_cancel_phase, call) != call && on_cancel_phase) on_cancel_phase(call);
}

WakeReason Worker::park(Core& core, bool timer) {
  adoptThread();
  core.parked = true;
  for (bool due = false;;) {
    takeMail();
    if (timer && (due || choose(2) == 1)) {
      timer = false;
      if (core.wait.claim(core.wait.epoch(), WakeReason::kTimeout)) makeRunnable(core);
    }
    while (QueueNode* node = m_runnable.pop()) {
      if (node == &core) {
        core.linked.set(false);
        core.parked = false;
        return core.wait.reason();
      }
      if (node->kind == QueueNode::Kind::kCore) {
        auto& other = *static_cast<Core*>(node);
        require(other.resume != nullptr, "no core comes back but the one that waits");
        other.linked.set(false);
        other.resume();
      } else {
        static_cast<Task*>(node)->run();
      }
    }
    if (!m_slot.mailbox.trySleep()) continue;
    due = !m_slot.poll([&] { return timer || driverReady(); }) && !driverReady();
    m_slot.mailbox.wakeUp();
    if (driverReady()) m_driver->serve();
  }
}

void Worker::serveUntil(const std::function<bool()>& enough) {
  while (!enough()) {
    await("asleep", [&] { return driverReady() || enough(); });
    if (driverReady()) m_driver->serve();
  }
}

QueueNode* Worker::pick() {
  if (QueueNode* node = m_house->idle().injector().take()) return node;
  if (QueueNode* node = m_spawned.take()) return node;
  return m_runnable.pop();
}

void Worker::runUntil(const std::function<bool()>& enough) {
  adoptThread();
  while (!m_house->idle().done() && !enough()) {
    takeMail();
    if (m_house->idle().isStopping()) follow();
    while (QueueNode* node = pick()) run(*node);
    m_spawned.cameToFetch();
    if (m_house->idle().injector().count() > 0) continue;
    if (QueueNode* stolen = m_spawned.steal(m_house->workers())) {
      run(*stolen);
    } else {
      sleep(enough);
    }
  }
}

void Worker::run(QueueNode& node) {
  m_spawned.share(m_house->idle());
  auto& task = static_cast<Task&>(node);
  require(task.runs++ == 0, "a task runs once");
  require(task.payload.get() == 1, "who runs a task sees what was written for it");
  task.run();
}

}  // namespace sylar::model
