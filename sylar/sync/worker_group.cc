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

bool WorkerGroup::schedule(std::function<void()> cb, int thread) {
  if (cb == nullptr || !m_slots.wait()) return false;
  m_running.add();
  // The slot is given back when the last copy of the function is gone, whether it ran, threw, or was refused.
  const std::shared_ptr<void> slot(nullptr, [group = shared_from_this()](void*) {
    group->m_slots.notify();
    group->m_running.done();
  });
  return m_scheduler->trySchedule([cb = std::move(cb), slot] { cb(); }, thread);
}

}  // namespace sylar
