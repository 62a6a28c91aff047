#include "glob.h"

#include <cstddef>
#include <utility>

namespace ttlkv {

namespace {

/// Takes a set off `pattern`, which begins behind its '[', and returns whether it has `c`. A set that is not closed ends with the
/// pattern, as in Redis.
bool takeSet(std::string_view& pattern, char c) {
  const bool negated = pattern.starts_with('^');
  if (negated) pattern.remove_prefix(1);
  bool found = false;
  while (!pattern.empty() && pattern[0] != ']') {
    if (pattern[0] == '\\' && pattern.size() >= 2) {
      found = found || pattern[1] == c;
      pattern.remove_prefix(2);
    } else if (pattern.size() >= 3 && pattern[1] == '-') {
      char low = pattern[0], high = pattern[2];
      if (low > high) std::swap(low, high);
      found = found || (low <= c && c <= high);
      pattern.remove_prefix(3);
    } else {
      found = found || pattern[0] == c;
      pattern.remove_prefix(1);
    }
  }
  if (!pattern.empty()) pattern.remove_prefix(1);
  return found != negated;
}

/// Takes the part that stands for one character off `pattern`, which is not empty and does not begin with '*'. Returns whether it
/// matches `c`.
bool takeOne(std::string_view& pattern, char c) {
  const char kind = pattern[0];
  pattern.remove_prefix(1);
  if (kind == '?') return true;
  if (kind == '[') return takeSet(pattern, c);
  if (kind != '\\' || pattern.empty()) return kind == c;
  const char literal = pattern[0];
  pattern.remove_prefix(1);
  return literal == c;
}

}  // namespace

bool globMatches(std::string_view pattern, std::string_view text) {
  if (text.empty()) return pattern.empty();  // so it is in Redis, even for a star
  // If the pattern fails behind a star, the star takes one character more. An earlier star need not be tried again: the last
  // one can take everything that the earlier could.
  std::string_view behind_star, text_at_star;
  bool has_star = false;
  while (!text.empty()) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      behind_star = pattern;
      text_at_star = text;
      has_star = true;
    } else if (!pattern.empty() && takeOne(pattern, text[0])) {
      text.remove_prefix(1);
    } else if (has_star) {
      text_at_star.remove_prefix(1);
      pattern = behind_star;
      text = text_at_star;
    } else {
      return false;
    }
  }
  while (pattern.starts_with('*')) pattern.remove_prefix(1);
  return pattern.empty();
}

}  // namespace ttlkv
