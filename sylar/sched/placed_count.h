// Internal. Counts the functions that are placed on a worker (Scheduler::place()).
//
// Thread safety: any thread may make and end one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Adds one to a worker's count for as long as it exists, even beyond the worker. A copy adds one more.
class PlacedCount {
 public:
  explicit PlacedCount(std::shared_ptr<std::atomic<uint32_t>> count) : m_count(std::move(count)) { m_count->fetch_add(1); }
  PlacedCount(const PlacedCount& other) : PlacedCount(other.m_count) {}
  PlacedCount(PlacedCount&&) noexcept = default;
  PlacedCount& operator=(const PlacedCount&) = delete;
  PlacedCount& operator=(PlacedCount&&) = delete;
  ~PlacedCount() {
    if (m_count != nullptr) m_count->fetch_sub(1);
  }

 private:
  std::shared_ptr<std::atomic<uint32_t>> m_count;
};

}  // namespace sylar::detail
