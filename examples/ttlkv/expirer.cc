#include "expirer.h"

#include <algorithm>
#include <new>
#include <utility>

#include "sylar/fiber.h"

namespace ttlkv {

Expirer::Expirer(Keyspace& keyspace, size_t budget) : m_keyspace(keyspace), m_budget(budget), m_sweeps(keyspace.shardCount()) {
  for (size_t i = 0; i < m_sweeps.size(); ++i) {
    m_sweeps[i].expirer = this;
    m_sweeps[i].shard = i;
  }
}

void Expirer::start(sylar::IOManager& iom) {
  m_iom = &iom;
  const LockedKeys all(m_keyspace);
  for (size_t i = 0; i < m_sweeps.size(); ++i) update(i);
}

void Expirer::stop() {
  m_iom = nullptr;
  const LockedKeys all(m_keyspace);
  for (size_t i = 0; i < m_sweeps.size(); ++i) update(i);
}

void Expirer::setActive(bool active) {
  m_active = active;
  const LockedKeys all(m_keyspace);
  for (size_t i = 0; i < m_sweeps.size(); ++i) update(i);
}

void Expirer::update(size_t shard) {
  Sweep& sweep = m_sweeps[shard];
  if (!sweep.running) arm(sweep);  // a running sweep arms the timer at its end
}

void Expirer::arm(Sweep& sweep) {
  const int64_t earliest = m_keyspace.shard(sweep.shard).heap().earliest();
  sylar::IOManager* const iom = m_iom;
  if (iom == nullptr || !m_active || earliest == kNever) {
    sweep.timer.stop();
    sweep.armed_for_ms = kNever;
    return;
  }
  // A timer that is armed for an earlier time stays. It finds nothing to do and is then armed again, which is cheaper than to set
  // it each time that the first key is deleted or prolonged.
  if (sweep.armed_for_ms <= earliest) return;
  const int64_t wait_ms = std::clamp<int64_t>(earliest - m_keyspace.nowMs(), -1, kLongestWait.count() - 1) + 1;
  try {
    sweep.timer = sylar::ScopedTimer(*iom, std::chrono::milliseconds(wait_ms), [&sweep] { sweep.expirer->run(sweep); });
    sweep.armed_for_ms = earliest;
  } catch (const std::bad_alloc&) {
    sweep.armed_for_ms = kNever;  // the next change tries again; until then the keys expire lazily
  }
}

void Expirer::run(Sweep& sweep) {
  while (runPass(sweep)) sylar::Fiber::YieldToReady();
}

/// Removes some keys. Returns true if more of them have expired. Otherwise the timer is armed again.
bool Expirer::runPass(Sweep& sweep) {
  m_passes.fetch_add(1, std::memory_order_relaxed);
  Shard& shard = m_keyspace.shard(sweep.shard);
  const sylar::ThreadMutex::Lock lock(shard.mutex);
  const int64_t now_ms = m_keyspace.nowMs();
  const bool active = m_active && m_iom != nullptr;
  if (active) shard.removeExpired(now_ms, m_budget);
  sweep.running = active && now_ms > shard.heap().earliest();
  if (sweep.running) return true;
  sweep.armed_for_ms = kNever;
  arm(sweep);
  return false;
}

size_t Expirer::armedTimers() {
  const LockedKeys all(m_keyspace);
  return static_cast<size_t>(
      std::count_if(m_sweeps.begin(), m_sweeps.end(), [](const Sweep& sweep) { return sweep.armed_for_ms != kNever; }));
}

}  // namespace ttlkv
