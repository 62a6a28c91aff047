// sylar's free function for the id of the running fiber.
//
// Thread safety: all functions from any thread.
#pragma once

#include <cstdint>

#include "sylar/api.h"

namespace sylar {

/// Returns the id of the running fiber, or 0 outside fibers. It has 64 bits, as all fiber ids here. May suspend: no.
SYLAR_API uint64_t GetFiberId();

}  // namespace sylar
