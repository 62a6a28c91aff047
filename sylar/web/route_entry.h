// Internal. A route as it is published.
#pragma once

#include <cstddef>
#include <memory>

#include "sylar/base/internal.h"
#include "sylar/http/method_set.h"
#include "sylar/http/servlet.h"
#include "sylar/web/pattern.h"

namespace sylar::http::detail {

/// Never changes. A change of a route publishes another entry of the same pattern.
struct RouteEntry {
  Pattern pattern;
  MethodSet methods;     // that of the pattern, or those of the servlet if the pattern has none
  Servlet::ptr servlet;  // allows all methods
  size_t group = 0;      // of PatternTable
};

using RouteEntryPtr = std::shared_ptr<const RouteEntry>;

}  // namespace sylar::http::detail
