#include "sylar/compat/fiber_id.h"

#include "sylar/fiber.h"

namespace sylar {

uint64_t GetFiberId() { return Fiber::GetFiberId(); }

}  // namespace sylar
