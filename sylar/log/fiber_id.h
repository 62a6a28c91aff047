// sylar's free function for the id of the running fiber.
//
// Thread safety: all.
#pragma once

#include <cstdint>

#include "sylar/fiber/fiber.h"

namespace sylar {

/// 0 outside of fibers. 64 bits, as ids have here. Suspends: no.
inline uint64_t GetFiberId() { return Fiber::GetFiberId(); }

}  // namespace sylar
