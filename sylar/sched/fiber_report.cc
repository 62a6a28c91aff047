#include "sylar/sched/fiber_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace sylar {
namespace {

std::string nameOf(const FiberReport& fiber) {
  return fmt::format("fiber {}{}{}", fiber.id, fiber.name.empty() ? "" : " ", fiber.name);
}

template <class Map, class Key>
const FiberReport* find(const Map& map, Key key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : found->second;
}

}  // namespace

FiberReport::FiberReport(const Fiber& fiber)
    : FiberInfo{fiber.getId(), fiber.getName(), control(fiber).describe()},
      parked(stateOf(fiber) == FiberState::kParked),
      wants(control(fiber).wants()) {
  const HeldLocks& held = control(fiber).held();
  for (uint32_t i = 0; i < held.named(); ++i) holds.push_back(held.at(i));
}

FiberReports::FiberReports(const std::vector<FiberReport>& all) : m_all(all) {
  for (const FiberReport& fiber : all) {
    m_by_id.emplace(fiber.id, &fiber);
    for (const uintptr_t lock : fiber.holds) m_by_lock.emplace(lock, &fiber);
  }
}

/// Returns the fiber without which `fiber` cannot go on, or null if there is none, or none that is known.
const FiberReport* FiberReports::awaited(const FiberReport& fiber) const {
  if (!fiber.parked) return nullptr;
  switch (fiber.wants.what) {
    case WaitsFor::kFiber: return find(m_by_id, fiber.wants.where);
    case WaitsFor::kMutex:
    case WaitsFor::kRWMutex: return find(m_by_lock, fiber.wants.where);
    default: return nullptr;
  }
}

void FiberReports::write(std::ostream& os, std::span<const FiberReport> fibers) const {
  for (const FiberReport& fiber : fibers) {
    const FiberReport* const holder = fiber.wants.what == WaitsFor::kFiber ? nullptr : awaited(fiber);
    os << fmt::format("    fiber {} {}: {}{}\n", fiber.id, fiber.name, fiber.waits_for,
                      holder == nullptr ? "" : ", which " + nameOf(*holder) + " holds");
  }
}

/// From each fiber there is at most one way on. It ends, or goes round in a circle that may not contain the fiber.
void FiberReports::writeDeadlocks(std::ostream& os) const {
  std::unordered_set<const FiberReport*> seen;
  for (const FiberReport& start : m_all) {
    std::vector<const FiberReport*> way;
    const FiberReport* at = &start;
    for (; at != nullptr && seen.insert(at).second; at = awaited(*at)) way.push_back(at);
    const auto circle = std::find(way.begin(), way.end(), at);
    if (circle == way.end()) continue;
    os << "  deadlock: ";
    for (auto one = circle; one != way.end(); ++one) os << fmt::format("{} {}, ", nameOf(**one), (*one)->waits_for);
    os << "and so on\n";
  }
}

}  // namespace sylar
