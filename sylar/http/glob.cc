#include "sylar/http/glob.h"

#include <fnmatch.h>

#include <cstddef>
#include <utility>

namespace sylar::http::detail {

namespace {

/// Returns the position after the set that begins at `begin` with '['. Returns npos if the set has no end, and then '[' stands
/// for itself. Source: glob(7).
size_t endOfSet(const std::string& pattern, size_t begin) {
  size_t at = begin + 1;
  if (at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^')) ++at;
  for (bool first = true; at < pattern.size(); first = false) {
    const char c = pattern[at];
    if (c == ']' && !first) return at + 1;
    const char kind = at + 1 < pattern.size() ? pattern[at + 1] : '\0';
    if (c == '[' && (kind == ':' || kind == '.' || kind == '=')) {
      const char close[] = {kind, ']', '\0'};
      const size_t end = pattern.find(close, at + 2);
      at = end == std::string::npos ? at + 1 : end + 2;
    } else {
      at += c == '\\' ? 2 : 1;
    }
  }
  return std::string::npos;
}

}  // namespace

Glob::Glob(std::string pattern) : m_pattern(std::move(pattern)) {
  for (size_t at = 0; at < m_pattern.size();) {
    Step step;
    size_t end = at + 1;
    if (m_pattern[at] == '*') {
      step.star = true;
    } else if (m_pattern[at] == '?') {
      step.set.set();
    } else if (const size_t behind = m_pattern[at] == '[' ? endOfSet(m_pattern, at) : std::string::npos;
               behind != std::string::npos) {
      end = behind;
      const std::string set = m_pattern.substr(at, end - at);
      for (unsigned c = 1; c < step.set.size(); ++c) {
        const char text[] = {static_cast<char>(c), '\0'};
        step.set[c] = ::fnmatch(set.c_str(), text, 0) == 0;
      }
    } else {
      if (m_pattern[at] == '\\') end = ++at + 1;
      m_valid = at < m_pattern.size();
      if (m_valid) step.set.set(static_cast<unsigned char>(m_pattern[at]));
    }
    at = end;
    m_steps.push_back(step);
  }
}

// Each star takes as little as it can. When the rest does not fit, only the last star takes more. An earlier star need not take
// more, since the last one has already passed the positions that this would add.
bool Glob::matches(std::string_view text) const {
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t step = 0, at = 0, star = kNone, taken_to = 0;
  while (at < text.size()) {
    if (step < m_steps.size() && m_steps[step].star) {
      star = step++;
      taken_to = at;
    } else if (step < m_steps.size() && m_steps[step].set[static_cast<unsigned char>(text[at])]) {
      ++step;
      ++at;
    } else if (star != kNone) {
      step = star + 1;
      at = ++taken_to;
    } else {
      return false;
    }
  }
  while (step < m_steps.size() && m_steps[step].star) ++step;
  return m_valid && step == m_steps.size();
}

}  // namespace sylar::http::detail
