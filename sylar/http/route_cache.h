// Internal. The routes that a connection has used last, so that its next request takes no lock.
#pragma once

#include <cstdint>
#include <memory>

#include "sylar/base/internal.h"

namespace sylar::http::detail {

struct RouteTable;

/// A table and its version. Belongs to one fiber.
struct RouteCache {
  uint64_t version = 0;
  std::shared_ptr<const RouteTable> table;
};

}  // namespace sylar::http::detail
