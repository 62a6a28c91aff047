// For tests of virtual time: the options of a scheduler that lives by it.
#pragma once

#include <cstddef>

#include "sylar/scheduler.h"
#include "sylar/testing/virtual_time.h"

namespace sylar::test {

inline SchedulerOptions on(const VirtualTime& time, size_t workers = 1) {
  return {.threads = workers, .use_caller = false, .name = "test", .clock = &time};
}

}  // namespace sylar::test
