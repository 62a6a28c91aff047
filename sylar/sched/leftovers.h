// Fibers that a scheduler gave up: what a user is told of one, and how they are noted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "sylar/fiber/fiber.h"

namespace sylar {

/// A fiber, for reports.
struct FiberInfo {
  uint64_t id;
  std::string name;
  std::string waits_for;  ///< what it is doing, in words
};

/// Internal. Notes them on the way to the end, where nothing may fail: without memory for one it only counts it.
///
/// Thread safety: none.
class Leftovers {
 public:
  void note(const Fiber& fiber) noexcept {
    ++m_count;
    try {
      m_fibers.push_back({fiber.getId(), fiber.getName(), fiber.describe()});
    } catch (const std::bad_alloc&) {
    }
  }

  void takeAll(Leftovers& from) noexcept {
    m_fibers.splice(m_fibers.end(), from.m_fibers);
    m_count += std::exchange(from.m_count, 0);
  }

  size_t count() const { return m_count; }
  /// Those for which there was memory, in order. Throws std::bad_alloc.
  std::vector<FiberInfo> list() const { return {m_fibers.begin(), m_fibers.end()}; }

 private:
  std::list<FiberInfo> m_fibers;
  size_t m_count = 0;
};

}  // namespace sylar
