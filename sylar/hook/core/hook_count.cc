#include "sylar/hook/core/hook_count.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <string_view>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/hook_stats.h"

namespace sylar::detail {
namespace {

#define SYLAR_NAME_(name) #name,
constexpr const char* kNames[] = {SYLAR_COUNTED_NAMES(SYLAR_NAME_)};
#undef SYLAR_NAME_

}  // namespace

constinit std::atomic<bool> g_times_each_wait{false};

HookCounters* makeHookCounters(WorkerSlot& slot) {
  SYLAR_DCHECK(slot.hook_counters.load(std::memory_order_relaxed) == nullptr && runningFiber()->home == &slot);
  const long memory =
      sys::call(SYS_mmap, nullptr, sizeof(HookCounters), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory < 0) return nullptr;
  auto* const counters = new (reinterpret_cast<void*>(memory)) HookCounters;
  slot.hook_counters.store(counters, std::memory_order_release);
  return counters;
}

}  // namespace sylar::detail

namespace sylar {

std::vector<HookStats> hookStats() {
  std::vector<HookStats> all;
  for (const char* name : kNames) all.push_back({.name = name});
  WorkerSlot::forEach([&](const WorkerSlot& slot) {
    const HookCounters* const counters = slot.hook_counters.load(std::memory_order_acquire);
    if (counters == nullptr) return;
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].calls += counters->of[i].calls.get();
      all[i].parks += counters->of[i].parks.get();
      all[i].parked += std::chrono::nanoseconds(counters->of[i].parked_ns.get());
    }
  });
  std::erase_if(all, [](const HookStats& one) { return one.calls == 0; });
  std::sort(all.begin(), all.end(), [](const HookStats& a, const HookStats& b) { return std::string_view(a.name) < b.name; });
  return all;
}

}  // namespace sylar
