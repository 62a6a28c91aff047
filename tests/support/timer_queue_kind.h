// The queue that a test's timers use: the default, or the one named in SYLAR_TEST_QUEUE.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "sylar/timer.h"

namespace sylar::test {

inline TimerQueueKind queueKind() {
  const char* given = std::getenv("SYLAR_TEST_QUEUE");
  if (given == nullptr) return kDefaultTimerQueue;
  const std::string name = given;
  if (name == "heap") return TimerQueueKind::kFourAryHeap;
  if (name == "binary_heap") return TimerQueueKind::kBinaryHeap;
  if (name == "set") return TimerQueueKind::kOrderedSet;
  if (name == "wheel") return TimerQueueKind::kWheel;
  if (name == "wheel_10ms") return TimerQueueKind::kWheel10Ms;
  throw std::invalid_argument("SYLAR_TEST_QUEUE=" + name + ": no such queue");
}

/// How late that queue may be.
inline int64_t queueLatenessMs() { return queueKind() == TimerQueueKind::kWheel ? 1 : 0; }

}  // namespace sylar::test
