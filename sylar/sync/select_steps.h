// Internal. How a select waits. It tries each case in the order of the arguments. If none can be done, it opens one wait and shows
// it to every case, and whoever claims that wait first has done its case, or says that it can be done.
//
// A select that has shown its wait may not do a case itself before it has withdrawn the wait, because somebody may have done
// another one meanwhile. So it withdraws, and begins again.
//
// It is a template, so that the model checker can run the very same code.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "sylar/base/internal.h"
#include "sylar/clock.h"
#include "sylar/sync/wait_queue.h"

namespace sylar::detail {

/// `Types` has, besides those of SyncSteps:
///
///   Case                                        as SelectCase
///   static bool hasPassed(Deadline deadline)
///   static bool isOwnTimeout(Deadline deadline)    true if `deadline` is what has ended a wait, and no cancel or scope
template <class Types>
struct SelectSteps {
  using Case = typename Types::Case;
  using OpenWait = typename Types::OpenWait;

  static bool select(std::span<Case* const> cases, std::span<Case*> ordered) {
    const auto earlier = [](const Case* a, const Case* b) { return a->deadline() < b->deadline(); };
    Case& timeout = **std::min_element(cases.begin(), cases.end(), earlier);
    const Deadline deadline = timeout.deadline();
    std::copy(cases.begin(), cases.end(), ordered.begin());
    const auto before = [](const Case* a, const Case* b) { return std::less<>()(a->place(), b->place()); };
    std::sort(ordered.begin(), ordered.end(), before);
    const auto done = [](Case& one) { return one.run(), true; };
    for (;;) {
      for (Case* const one : cases) {
        if (one->tryNow()) return done(*one);
      }
      if (Types::hasPassed(deadline)) return Types::isOwnTimeout(deadline) && done(timeout);
      Types::Queue::reserve(deadline);
      switch (waitOnce(ordered, deadline)) {
        case Ended::kNeedless: continue;
        case Ended::kInVain: return Types::isOwnTimeout(deadline) && done(timeout);
        case Ended::kClaimed: break;
      }
      for (Case* const one : cases) {
        if (one->isDone()) return done(*one);
      }
    }
  }

 private:
  enum class Ended : uint8_t { kClaimed, kInVain, kNeedless };

  /// The cases that have seen a wait. They forget it while it is still there, because somebody may look at it until then.
  class Shown {
   public:
    explicit Shown(std::span<Case* const> cases) : m_cases(cases) {}
    ~Shown() { takeBack(); }
    Shown(const Shown&) = delete;
    Shown& operator=(const Shown&) = delete;

    /// Returns false if a case need not wait.
    bool showAll(OpenWait& wait) {
      while (m_count < m_cases.size() && m_cases[m_count]->enqueue(wait)) ++m_count;
      return m_count == m_cases.size();
    }
    void takeBack() {
      while (m_count > 0) m_cases[--m_count]->dequeue();
    }

   private:
    const std::span<Case* const> m_cases;
    size_t m_count = 0;
  };

  static Ended waitOnce(std::span<Case* const> cases, Deadline deadline) {
    OpenWait wait(SyncKind::kSelect, nullptr);
    Shown shown(cases);
    bool all = false;
    try {
      all = shown.showAll(wait);
    } catch (...) {
      if (wait.withdraw()) throw;
      return Ended::kClaimed;  // somebody was faster than the failure
    }
    if (all) return wait.park(deadline) ? Ended::kClaimed : Ended::kInVain;
    return wait.withdraw() ? Ended::kNeedless : Ended::kClaimed;
  }
};

}  // namespace sylar::detail
