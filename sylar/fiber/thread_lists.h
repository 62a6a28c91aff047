// Internal. Free threads (sylar/fiber/borrowed_thread.h), by room: how large the stack is without what libc has there.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "sylar/base/internal.h"
#include "sylar/check.h"
#include "sylar/fiber/stack.h"

namespace sylar::detail {

/// Returns how much room a thread has that is made for a stack of `size` bytes: a power of two.
constexpr size_t threadRoomFor(size_t size) { return std::bit_ceil(std::clamp(size, kMinStackSize, kMaxStackSize)); }

/// Last in, first out. Not thread safe. A `Thread` has a `room`, and `next`, which leads to another.
template <class Thread>
class ThreadLists {
 public:
  size_t count() const { return m_count; }
  bool has(size_t room) const { return m_first[placeOf(room)] != nullptr; }

  /// Returns one with that room, or null.
  Thread* take(size_t room) {
    Link& first = m_first[placeOf(room)];
    Thread* const one = first;
    if (one == nullptr) return nullptr;
    SYLAR_DCHECK(m_count > 0 && one->room == room);
    --m_count;
    first = one->next;
    return one;
  }
  /// Returns one of the largest, or null.
  Thread* takeLargest() {
    for (size_t room = kMaxStackSize; room >= kMinStackSize; room /= 2) {
      if (Thread* const one = take(room)) return one;
    }
    return nullptr;
  }
  void put(Thread& one) {
    Link& first = m_first[placeOf(one.room)];
    one.next = first;
    first = &one;
    ++m_count;
  }

 private:
  using Link = decltype(Thread::next);

  static size_t placeOf(size_t room) { return static_cast<size_t>(std::bit_width(room / kMinStackSize)) - 1; }

  std::array<Link, std::bit_width(kMaxStackSize / kMinStackSize)> m_first{};
  size_t m_count = 0;
};

}  // namespace sylar::detail
