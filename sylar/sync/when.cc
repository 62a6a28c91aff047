#include "sylar/sync/when.h"

#include <deque>

#include "sylar/sync/select.h"

namespace sylar {
namespace {

struct Note {
  std::optional<size_t>& which;
  const size_t index;
  void operator()() const { which = index; }
};

template <class Case, class Things>
std::optional<size_t> anyOf(const Things& things, Deadline deadline) {
  std::optional<size_t> which;
  std::deque<Note> notes;
  std::deque<detail::PlainCase<Case, const Note&>> cases;
  std::vector<detail::SelectCase*> all;
  for (size_t i = 0; i < things.size(); ++i) {
    if (things[i] != nullptr) all.push_back(&cases.emplace_back(notes.emplace_back(Note{which, i}), things[i]));
  }
  if (all.empty()) return std::nullopt;
  auto timeout = onTimeout(deadline, [] {});
  all.push_back(&timeout);
  std::vector<detail::SelectCase*> ordered(all.size());
  detail::select(all, ordered);
  return which;
}

}  // namespace

std::optional<size_t> detail::whenAny(std::span<Event* const> events, Deadline deadline) {
  return anyOf<EventCase>(events, deadline);
}

std::optional<size_t> detail::whenAny(std::span<const Fiber::ptr> fibers, Deadline deadline) {
  return anyOf<FiberCase>(fibers, deadline);
}

bool whenAll(const std::vector<Fiber::ptr>& fibers, Deadline deadline) {
  for (const Fiber::ptr& fiber : fibers) {
    if (fiber == nullptr) continue;
    bool ended = false;
    select(onEnd(fiber, [&] { ended = true; }), onTimeout(deadline, [] {}));
    if (!ended) return false;
  }
  return true;
}

}  // namespace sylar
