// For tests: how often a race is tried.
#pragma once

#include <chrono>

namespace sylar::test {

/// Counts `most` rounds. On a machine that is too busy for them it ends after 10 seconds, with at least one round.
///   for (Rounds rounds(50'000); rounds.next();) ...
class Rounds {
 public:
  explicit Rounds(int most) : m_most(most) {}

  /// True if one more round begins.
  bool next() {
    if (m_begun == m_most || (m_begun > 0 && std::chrono::steady_clock::now() >= m_end)) return false;
    ++m_begun;
    return true;
  }
  /// Those that have begun.
  int begun() const { return m_begun; }

 private:
  const std::chrono::steady_clock::time_point m_end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const int m_most;
  int m_begun = 0;
};

}  // namespace sylar::test
