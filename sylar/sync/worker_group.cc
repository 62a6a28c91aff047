#include "sylar/sync/worker_group.h"

#include <stdexcept>
#include <utility>

namespace sylar {

WorkerGroup::ptr WorkerGroup::Create(uint32_t batch_size, Scheduler* scheduler) {
  return std::make_shared<WorkerGroup>(batch_size, scheduler);
}

WorkerGroup::WorkerGroup(uint32_t batch_size, Scheduler* scheduler) : m_scheduler(scheduler), m_slots(batch_size) {
  if (batch_size == 0) throw std::invalid_argument("sylar::WorkerGroup: batch_size is 0");
  if (scheduler == nullptr) throw std::invalid_argument("sylar::WorkerGroup: no scheduler");
}

/// A function of the group, until it is destroyed, whether it ran, threw, or was refused. Then its slot is given back.
class WorkerGroup::Call {
 public:
  Call(ptr group, std::function<void()>&& cb) : m_group(std::move(group)), m_cb(std::move(cb)) { m_group->m_running.add(); }
  ~Call() {
    m_cb = nullptr;  // first, because others go on when it counts as ended
    if (m_has_slot) m_group->m_slots.notify();
    m_group->m_running.done();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  bool takeSlot() { return m_has_slot = m_group->m_slots.wait(); }
  void run() { m_cb(); }

 private:
  const ptr m_group;
  std::function<void()> m_cb;
  bool m_has_slot = false;
};

bool WorkerGroup::schedule(std::function<void()> cb, int thread) {
  if (cb == nullptr) return false;
  const auto call = std::make_shared<Call>(shared_from_this(), std::move(cb));
  return call->takeSlot() && m_scheduler->trySchedule([call] { call->run(); }, thread);
}

}  // namespace sylar
