// For tests of fibers: a fiber in a few letters.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "sylar/fiber.h"

namespace sylar::test {

/// A `stack_size` of 0 is the default's.
inline Fiber::ptr make(std::function<void()> cb, size_t stack_size = 0) {
  return std::make_shared<Fiber>(std::move(cb), stack_size);
}

/// Runs `body` in a fiber on the thread that calls this.
inline void byHand(std::function<void()> body) { make(std::move(body))->resume(); }

}  // namespace sylar::test
