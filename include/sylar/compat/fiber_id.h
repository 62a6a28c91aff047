// sylar's free function for the id of the running fiber.
//
// Thread safety: all functions from any thread.
#pragma once

#include <cstdint>

namespace sylar {

/// Returns the id of the running fiber, or 0 outside fibers. It has 64 bits, as all fiber ids here. May suspend: no.
uint64_t GetFiberId();

}  // namespace sylar
