#include "tests/hook/differential/compare.h"

#include <algorithm>

namespace sylar::test::differential {
namespace {

using namespace std::chrono_literals;  // NOLINT

constexpr auto kPatience = 10'000ms;
constexpr auto kShortPatience = 500ms;  // while a plan is made small
constexpr int kTimes = 3;

}  // namespace

Comparison::Comparison()
    : m_one(1, false, "one"),
      m_two(2, false, "two"),
      m_modes{{"one worker", &m_one, m_hooked, m_hooked},
              {"one worker, adopted descriptors", &m_one, libcCalls(), m_hooked},
              {"two workers, hook.close: posix", &m_two, m_hooked, m_hooked, HookClose::kPosix},
              {"two workers, adopted descriptors, hook.close: posix", &m_two, libcCalls(), m_hooked, HookClose::kPosix}} {}

std::optional<Transcript> Comparison::runOnLibc(const Plan& plan) const {
  Transcript first = run(plan, m_libc, nullptr, kPatience);
  if (run(plan, m_libc, &first, kPatience) != first) return std::nullopt;
  return first;
}

std::optional<Difference> Comparison::compareIn(const Mode& mode, const Plan& plan, const Transcript& libc,
                                                std::chrono::milliseconds patience) const {
  setHookClose(mode.closes);
  Transcript hooked = run(plan, mode, &libc, patience);
  if (hooked == libc) return std::nullopt;
  return Difference{&mode, plan, libc, std::move(hooked)};
}

std::optional<Difference> Comparison::compare(const Plan& plan) {
  const auto libc = runOnLibc(plan);
  if (!libc) {
    ++m_dropped;
    return std::nullopt;
  }
  for (const Outcome& one : *libc) m_steps += one.taken ? 1 : 0;
  for (const Mode& mode : m_modes) {
    std::optional<Difference> found = compareIn(mode, plan, *libc, kPatience / 5);
    for (int i = 1; i < kTimes && found; ++i) {
      const auto again = runOnLibc(plan);
      found = again == libc ? compareIn(mode, plan, *libc, kPatience / 5) : std::nullopt;
    }
    if (found) return found;
  }
  return std::nullopt;
}

Difference Comparison::shrink(Difference found) {
  for (size_t length = found.plan.size() / 2; length > 0; length /= 2) {
    for (size_t at = 0; at < found.plan.size();) {
      Plan less = found.plan;
      const size_t count = std::min(length, less.size() - at);
      less.erase(less.begin() + static_cast<ptrdiff_t>(at), less.begin() + static_cast<ptrdiff_t>(at + count));
      std::optional<Difference> still;
      if (const auto libc = runOnLibc(less)) {
        still = compareIn(*found.mode, less, *libc, kShortPatience);
        if (still) still = compareIn(*found.mode, less, *libc, kShortPatience);
      }
      if (still) {
        found = std::move(*still);
      } else {
        at += count;
      }
    }
  }
  return found;
}

std::string Comparison::tell(const Plan& plan) const {
  const Transcript libc = run(plan, m_libc, nullptr, kPatience);
  return describe({&m_libc, plan, libc, libc});
}

std::string describe(const Difference& difference) {
  std::string text = std::string("in: ") + difference.mode->name + "\n";
  const auto tell = [](const Outcome& one) {
    if (!one.taken) return std::string("not taken");
    return one.ended_at == Outcome::kWaits ? "waits" : one.gave + ", ends at " + std::to_string(one.ended_at);
  };
  for (size_t i = 0; i < difference.plan.size(); ++i) {
    const Outcome& libc = difference.libc[i];
    const Outcome& hooked = difference.hooked[i];
    if (!libc.taken && !hooked.taken) continue;
    text += "  " + std::to_string(i) + " " + describe(difference.plan[i]) + "\n      libc: " + tell(libc) + "\n";
    if (!(libc == hooked)) text += "    HOOKED: " + tell(hooked) + "\n";
  }
  return text;
}

}  // namespace sylar::test::differential
