// A second opinion about patterns: it compares a request with one pattern, part by part, and knows no tree.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sylar/http/percent.h"

namespace sylar::http::test {

/// "/a/b/" is "a", "b" and "".
inline std::vector<std::string> segmentsOf(std::string_view path) {
  std::vector<std::string> segments;
  for (const char c : path) {
    if (c == '/') {
      segments.emplace_back();
    } else {
      segments.back().push_back(c);
    }
  }
  return segments;
}

/// The text without escapes; '%' stands for itself if it begins none.
inline std::string decoded(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto escape = text[i] == '%' ? percentDecode(text.substr(i, 3)) : std::nullopt;
    if (escape && escape->size() == 1) {
      plain += *escape;
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

inline bool matchesPath(std::string_view pattern, std::string_view path) {
  const auto parts = segmentsOf(pattern), segments = segmentsOf(path);
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool is_last = i + 1 == parts.size();
    if (i >= segments.size()) return false;
    if (parts[i].ends_with("...}") || (parts[i].empty() && is_last)) return true;
    if (parts[i] == "{$}") return segments[i].empty() && i + 1 == segments.size();
    if (parts[i].starts_with('{') ? segments[i].empty() : decoded(parts[i]) != decoded(segments[i])) return false;
  }
  return parts.size() == segments.size();
}

/// `pattern` must be well formed, with one space behind the method, and a host in lower case.
inline bool matches(std::string_view pattern, std::string_view method, std::string_view host, std::string_view path) {
  if (const size_t blank = pattern.find(' '); blank < pattern.find('/')) {
    const std::string_view asked = pattern.substr(0, blank);
    if (asked != method && !(asked == "GET" && method == "HEAD")) return false;
    pattern.remove_prefix(blank + 1);
  }
  const std::string_view asked_host = pattern.substr(0, pattern.find('/'));
  if (!asked_host.empty() && asked_host != host) return false;
  return matchesPath(pattern.substr(asked_host.size()), path);
}

}  // namespace sylar::http::test
