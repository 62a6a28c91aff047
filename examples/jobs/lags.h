// How late the latest runs have begun.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "job.h"

namespace jobs {

/// The last 4096 lags. Thread safety: none.
class Lags {
 public:
  void add(Micros lag) { m_lags[m_added++ % m_lags.size()] = lag; }

  /// The lag that a part `share` in [0, 1] of them does not exceed; 0 if there is none.
  Micros quantile(double share) const {
    std::vector<Micros> sorted(m_lags.begin(), m_lags.begin() + static_cast<std::ptrdiff_t>(std::min(m_added, m_lags.size())));
    if (sorted.empty()) return Micros(0);
    const auto place = sorted.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(sorted.size() - 1));
    std::nth_element(sorted.begin(), place, sorted.end());
    return *place;
  }

 private:
  std::array<Micros, 4096> m_lags{};
  size_t m_added = 0;
};

}  // namespace jobs
