// For tests: a scenario is run again and again, with the first call of a kind failing, then the second, and so on, until a run in
// which nothing failed passes clean. After each run nothing is left behind, and all work has one fate.
// Source: seastar's allocation failure injector; SQLite's anomaly tests.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <initializer_list>
#include <new>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "sylar/fiber.h"
#include "tests/faults/injector.h"

namespace sylar::faults {

/// One run of a scenario: what it was refused, and what became of the work that was accepted. Thread safety: all calls.
class Trial {
 public:
  explicit Trial(const Fault& fault);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  /// Calls `step`, which may throw what `fault` excuses. False: it threw, or gave false: the run is not complete.
  template <class Step>
  bool passes(Step step) {
    try {
      if constexpr (std::is_void_v<decltype(step())>) {
        step();
        return true;
      } else {
        return note(step());
      }
    } catch (const std::bad_alloc&) {
      return note(false);
    } catch (const std::system_error& error) {
      const Exempt exempt;
      EXPECT_EQ(error.code().value(), m_fault.error);
      return note(false);
    }
  }

  /// Passes on the result of a system-shaped call. Less than 0: errno is one that `fault` excuses, or one of `also`.
  long checked(long result, std::initializer_list<int> also = {});

  /// Work that counts its trial.
  template <class Body>
  auto work(Body body) {
    return [this, body = std::move(body)]() mutable {
      m_ran.fetch_add(1);
      body();
    };
  }
  auto work() {
    return work([] {});
  }

  /// Calls `offer`, which offers one piece of work() and says whether it was accepted.
  template <class Offer>
  bool accepts(Offer offer) {
    const bool accepted = passes(std::move(offer));
    m_accepted.fetch_add(accepted);
    return accepted;
  }

  /// Joins a fiber of accepted work().
  void join(Fiber& fiber);

  /// Accepted work runs in the end, whatever was reported.
  void triesAgain() { m_tries_again = true; }
  /// Accepted work is destroyed without a trial, as promised, because the scheduler could not start.
  void dropsWork() { m_drops = true; }

  bool complete() const { return m_complete; }
  /// Each piece of accepted work ran once, or had no memory for its stack and was reported.
  void verify() const;

 private:
  bool note(bool passed) {
    if (!passed) m_complete = false;
    return passed;
  }

  const Fault m_fault;
  std::atomic<bool> m_complete{true};
  std::atomic<bool> m_drops{false};
  std::atomic<bool> m_tries_again{false};
  std::atomic<long> m_accepted{0};
  std::atomic<long> m_ran{0};
  std::atomic<long> m_unstarted{0};
};

using Scenario = std::function<void(Trial&)>;

/// The surroundings of each scenario.
std::vector<Fault> usualFaults();
/// The same but for those that never pass: for what is tried again until it succeeds.
std::vector<Fault> passingFaults();

/// Fails each call of `fault`'s kind in turn; returns how many that were.
long enumerate(const Fault& fault, const Scenario& scenario);
/// The same for all of `faults`.
void enumerate(std::span<const Fault> faults, const Scenario& scenario);
/// The same, each run in a process of its own, which is a copy of this one: for what a process does once. No worker may have run
/// in this one: in its forks the library stands still.
long enumerateCold(const Fault& fault, const Scenario& scenario);

}  // namespace sylar::faults
