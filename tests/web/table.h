// For tests of routes without a server: a table, and what a request leads to in it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sylar/web/path.h"
#include "sylar/web/pattern_table.h"

namespace sylar::http::test {

struct Table {
  Table() = default;
  explicit Table(const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) add(pattern);
  }

  void add(const std::string& text) {
    const Pattern pattern(text);
    const MethodSet methods = pattern.method() ? MethodSet{*pattern.method()} : MethodSet::ordinary();
    table.add(std::make_shared<RouteEntry>(RouteEntry{pattern, methods, nullptr}));
  }

  FoundRoute find(const std::string& method, const std::string& path, const std::string& host = "") const {
    HttpRequest request;
    request.setMethod(toHttpMethod(method));
    if (!host.empty()) request.setHeader("host", host);
    const CanonicalPath canonical(path);
    return table.find(request, canonical.text());
  }
  /// Returns the pattern that has the request, or none.
  std::string winner(const std::string& method, const std::string& path, const std::string& host = "") const {
    const FoundRoute found = find(method, path, host);
    return found.entry == nullptr ? "none" : found.entry->pattern.text();
  }

  PatternTable table;
};

}  // namespace sylar::http::test
