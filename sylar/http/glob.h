// Internal. Shell patterns whose matching time is bounded for any text, since the program chooses the patterns but the peer the
// paths.
#pragma once

#include <bitset>
#include <string>
#include <string_view>
#include <vector>

#include "sylar/base/internal.h"

namespace sylar::http::detail {

/// A pattern as fnmatch(3) defines it without flags: *, ?, [sets], and \ before a byte that stands for itself. Matching takes at
/// most (bytes of the text) * (bytes of the pattern) steps. The one of glibc takes a power of them that grows with the number of
/// stars.
///
/// Thread safety: immutable.
class Glob {
 public:
  explicit Glob(std::string pattern);

  const std::string& pattern() const { return m_pattern; }
  bool matches(std::string_view text) const;

 private:
  /// Matches any number of bytes, or one byte out of a set.
  struct Step {
    bool star = false;
    std::bitset<256> set;
  };

  std::string m_pattern;
  std::vector<Step> m_steps;
  bool m_valid = true;  // if false, it matches nothing
};

}  // namespace sylar::http::detail
