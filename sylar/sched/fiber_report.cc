#include "sylar/sched/fiber_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace sylar::detail {
namespace {

std::string nameOf(const FiberReport& fiber) {
  return fmt::format("fiber {}{}{}", fiber.id, fiber.name.empty() ? "" : " ", fiber.name);
}

template <class Map, class Key>
typename Map::mapped_type find(const Map& map, Key key) {
  const auto found = map.find(key);
  return found == map.end() ? typename Map::mapped_type() : found->second;
}

}  // namespace

FiberReport::FiberReport(const Fiber& fiber, uint64_t its_resumer, const HeldLocks& held, pid_t its_thread)
    : FiberInfo{fiber.getId(), fiber.getName(), control(fiber).describe()},
      parked(stateOf(fiber) == FiberState::kParked),
      resuming(stateOf(fiber) == FiberState::kResuming),
      resumer(its_resumer),
      wants(control(fiber).wants()),
      thread(its_thread) {
  for (uint32_t i = 0; i < held.named(); ++i) holds.push_back(held.at(i) & ~HeldLocks::kToRead);
}

FiberReports::FiberReports(const std::vector<FiberReport>& all) : m_all(all) {
  for (const FiberReport& fiber : all) {
    m_by_id.emplace(fiber.id, &fiber);
    if (fiber.resumer != 0) m_by_resumer.emplace(fiber.resumer, &fiber);
    for (const uintptr_t lock : fiber.holds) {
      Holders& holders = m_by_lock[lock];
      if (holders.count++ == 0) holders.first = &fiber;
    }
  }
}

/// Returns those who hold the lock that `fiber` waits for, as far as they are known.
FiberReports::Holders FiberReports::holdersFor(const FiberReport& fiber) const {
  const bool locks = fiber.parked && (fiber.wants.what == WaitsFor::kMutex || fiber.wants.what == WaitsFor::kRWMutex);
  return locks ? find(m_by_lock, fiber.wants.where) : Holders();
}

/// Returns a fiber without which `fiber` never goes on, or null if there is none, or none that is known.
const FiberReport* FiberReports::awaited(const FiberReport& fiber) const {
  if (fiber.resuming) return find(m_by_resumer, fiber.id);
  if (!fiber.parked || fiber.wants.has_deadline) return nullptr;
  return fiber.wants.what == WaitsFor::kFiber ? find(m_by_id, fiber.wants.where) : holdersFor(fiber).first;
}

void FiberReports::write(std::ostream& os, std::span<const FiberReport> fibers) const {
  for (const FiberReport& fiber : fibers) {
    os << fmt::format("    fiber {} {}: {}", fiber.id, fiber.name, fiber.waits_for);
    const Holders holders = holdersFor(fiber);
    if (holders.count == 1) os << fmt::format(", which {} holds", nameOf(*holders.first));
    if (holders.count > 1) os << fmt::format(", which {} and {} more hold", nameOf(*holders.first), holders.count - 1);
    if (fiber.thread != 0) os << fmt::format(" (thread {})", fiber.thread);
    os << '\n';
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

}  // namespace sylar::detail
