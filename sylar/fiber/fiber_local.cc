#include "sylar/fiber_local.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "sylar/base/tsan.h"
#include "sylar/fiber/thread_fibers.h"

namespace sylar::detail {
namespace {

/// Those of a thread outside fibers.
struct OfThread {
  ~OfThread() {
    if (values != nullptr) values->end();  // while their destructors can still reach the others
    delete std::exchange(values, nullptr);
  }
  FiberLocals* values = nullptr;
};
thread_local OfThread t_locals;

/// Never inlined, so that no address of the thread's is kept over a switch.
[[gnu::noinline]] FiberLocals*& valuesOfThread() {
  __asm__ volatile("");
  return t_locals.values;
}

FiberLocals*& slot() {
  FiberCore* const me = runningFiber();
  return me == nullptr ? valuesOfThread() : me->started().locals;
}

}  // namespace

FiberLocals& FiberLocals::here() {
  FiberLocals*& mine = slot();
  if (mine == nullptr) mine = new FiberLocals;
  return *mine;
}

FiberLocals* FiberLocals::ifAny() { return slot(); }

uint64_t FiberLocals::newKey() {
  static constinit std::atomic<uint64_t> g_last{0};
  return g_last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void FiberLocals::end() {
  while (!m_values.empty()) {
    const Value youngest = std::move(m_values.back());
    m_values.pop_back();
  }
}

void* FiberLocals::find(uint64_t key) const {
  for (const Value& one : m_values) {
    if (one.key == key) return one.value.get();
  }
  return nullptr;
}

void FiberLocals::add(uint64_t key, std::shared_ptr<void> value, Copy copy) { m_values.push_back({key, std::move(value), copy}); }

void FiberLocals::remove(uint64_t key) {
  const auto found = std::find_if(m_values.begin(), m_values.end(), [key](const Value& one) { return one.key == key; });
  if (found == m_values.end()) return;
  const std::shared_ptr<void> removed = std::move(found->value);  // destroyed last, because that may use other values
  m_values.erase(found);
}

InheritedLocals::InheritedLocals() {
  const FiberLocals* const mine = FiberLocals::ifAny();
  if (mine == nullptr) return;
  const std::vector<FiberLocals::Value> values = mine->m_values;  // copying may make others
  for (const FiberLocals::Value& one : values) {
    if (one.copy != nullptr) m_values.push_back({one.key, one.copy(one.value.get()), one.copy});
  }
}

void InheritedLocals::install() {
  if (!m_values.empty()) FiberLocals::here().m_values = std::move(m_values);
}

}  // namespace sylar::detail
