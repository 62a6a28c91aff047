// Internal. The record of the fibers that a scheduler abandoned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/fiber/fiber_control.h"
#include "sylar/scheduler.h"

namespace sylar::detail {

/// Records fibers on the way to the end, where nothing may fail. A fiber for which there is no memory is only counted.
///
/// Thread safety: none.
class AbandonedFibers {
 public:
  void note(const Fiber& fiber) noexcept {
    ++m_count;
    try {
      m_fibers.push_back({fiber.getId(), fiber.getName(), control(fiber).describe() + control(fiber).describeHeld()});
    } catch (const std::bad_alloc&) {
    }
  }

  void takeAll(AbandonedFibers& from) noexcept {
    m_fibers.splice(m_fibers.end(), from.m_fibers);
    m_count += std::exchange(from.m_count, 0);
  }

  size_t count() const { return m_count; }
  /// Returns those for which there was memory, in order. Throws std::bad_alloc.
  std::vector<FiberInfo> list() const { return {m_fibers.begin(), m_fibers.end()}; }

 private:
  std::list<FiberInfo> m_fibers;
  size_t m_count = 0;
};

}  // namespace sylar::detail
