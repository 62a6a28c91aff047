// For tests: a fiber that is seen to wait.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "sylar/fiber/fiber_control.h"
#include "sylar/iomanager.h"
#include "tests/sched/gate.h"

namespace sylar::test {

/// Schedules a fiber that runs `body`, and returns it when it waits.
template <class Body>
Fiber::ptr waiterOn(Scheduler& scheduler, Body body) {
  auto fiber = std::make_shared<Fiber>(std::move(body));
  scheduler.schedule(fiber);
  EXPECT_TRUE(eventually([&] { return stateOf(*fiber) == FiberState::kParked; }));
  return fiber;
}

}  // namespace sylar::test
