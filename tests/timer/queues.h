// Every timer queue, as a list of types for typed tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

#include "sylar/timer/heap_queue.h"
#include "sylar/timer/ordered_set_queue.h"
#include "sylar/timer/wheel_queue.h"

namespace sylar::test {

using Queues = testing::Types<OrderedSetQueue, HeapQueue<2>, HeapQueue<4>, WheelQueue, WheelQueue10Ms>;

struct QueueNames {
  template <class Queue>
  static std::string GetName(int) {
    if (std::is_same_v<Queue, OrderedSetQueue>) return "Set";
    if (std::is_same_v<Queue, HeapQueue<2>>) return "Heap2";
    if (std::is_same_v<Queue, HeapQueue<4>>) return "Heap4";
    return std::is_same_v<Queue, WheelQueue> ? "Wheel" : "Wheel10Ms";
  }
};

inline std::vector<TimerNode*> popAll(TimerList& list) {
  std::vector<TimerNode*> nodes;
  while (TimerNode* node = list.pop()) nodes.push_back(node);
  return nodes;
}

}  // namespace sylar::test
