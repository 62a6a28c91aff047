// Internal. A route as its owner changes it.
#pragma once

#include <cstddef>

#include "sylar/base/internal.h"
#include "sylar/http/router.h"
#include "sylar/web/pattern.h"
#include "sylar/web/route_entry.h"
#include "sylar/web/router_core.h"

namespace sylar::http::detail {

struct RouteState {
  /// Returns the route as it is published with the options `with`.
  RouteEntryPtr entry(const RouteOptions& with) const;
  /// Publishes the route with other options. Throws std::bad_alloc, and then nothing has changed.
  void change(RouteOptions changed);

  RouterCore& core;
  const Pattern pattern;
  const Servlet::ptr target;
  const size_t group;
  RouteOptions options;
};

}  // namespace sylar::http::detail
