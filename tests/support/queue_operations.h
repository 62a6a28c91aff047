// Counts what the program does to its timer queues, public and private ones, without a change of the library: the linker hands
// each call to the functions here. For programs that are linked statically and with the options of sylar_counts_queue_operations
// (tests/CMakeLists.txt). Include it in one file of the program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sylar/timer.h"

static_assert(sylar::kDefaultTimerQueue == sylar::TimerQueueKind::kFourAryHeap, "count the queue that is used");

namespace sylar::test {

inline std::atomic<uint64_t> g_queue_operations{0};

/// Nodes that were inserted, moved or erased so far, in all queues that are HeapQueue<4>. Those that were handed out as due are
/// not counted: an expiry.
inline uint64_t queueOperations() { return g_queue_operations.load(std::memory_order_relaxed); }

}  // namespace sylar::test

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" {
bool __real__ZN5sylar6detail9HeapQueueILm4EE6insertERNS0_9TimerNodeEl(void* queue, void* node, int64_t deadline_ns);
bool __real__ZN5sylar6detail9HeapQueueILm4EE6updateERNS0_9TimerNodeEl(void* queue, void* node, int64_t deadline_ns);
void __real__ZN5sylar6detail9HeapQueueILm4EE5eraseERNS0_9TimerNodeE(void* queue, void* node);

bool __wrap__ZN5sylar6detail9HeapQueueILm4EE6insertERNS0_9TimerNodeEl(void* queue, void* node, int64_t deadline_ns) {
  sylar::test::g_queue_operations.fetch_add(1, std::memory_order_relaxed);
  return __real__ZN5sylar6detail9HeapQueueILm4EE6insertERNS0_9TimerNodeEl(queue, node, deadline_ns);
}
bool __wrap__ZN5sylar6detail9HeapQueueILm4EE6updateERNS0_9TimerNodeEl(void* queue, void* node, int64_t deadline_ns) {
  sylar::test::g_queue_operations.fetch_add(1, std::memory_order_relaxed);
  return __real__ZN5sylar6detail9HeapQueueILm4EE6updateERNS0_9TimerNodeEl(queue, node, deadline_ns);
}
void __wrap__ZN5sylar6detail9HeapQueueILm4EE5eraseERNS0_9TimerNodeE(void* queue, void* node) {
  sylar::test::g_queue_operations.fetch_add(1, std::memory_order_relaxed);
  __real__ZN5sylar6detail9HeapQueueILm4EE5eraseERNS0_9TimerNodeE(queue, node);
}
}
// NOLINTEND(bugprone-reserved-identifier)
