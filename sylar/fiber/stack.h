// Internal. Stacks of fibers: mapped memory with a guard area below, and a pool of them per thread.
//
// A frame that runs off the low end hits the guard and faults instead of overwriting a neighbour; overflow.h reports it.
// `-fstack-clash-protection` makes a frame of any size touch the guard. The wide guard of 1 MiB is for code that was compiled
// without, and costs page tables, so only the first kWideGuards stacks have it. Where the kernel has MADV_GUARD_INSTALL (Linux
// 6.13), a guard needs no mapping of its own, so a million stacks fit under the default vm.max_map_count. Elsewhere it is made by
// mprotect.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "sylar/base/internal.h"
#include "sylar/check.h"

namespace sylar::detail {

inline constexpr size_t kGuardSize = size_t{1} << 20;
inline constexpr size_t kLeastGuardSize = 64 * 1024;
/// How many stacks of a process have a guard of kGuardSize at once. The others have kLeastGuardSize.
inline constexpr long kWideGuards = 16 * 1024;
inline constexpr size_t kMinStackSize = 16 * 1024;
inline constexpr size_t kMaxStackSize = size_t{1} << 30;
inline constexpr size_t kDefaultStackSize = 128 * 1024;

/// A usable range of memory; the guard lies below `base`. Of 16 bytes, because each fiber has one.
struct Stack {
  char* base = nullptr;
  uint32_t size = 0;
  uint32_t guard = kLeastGuardSize;

  char* top() const { return base + size; }
  bool contains(const void* address) const { return base <= address && address < top(); }
  bool guards(const void* address) const { return base - guard <= address && address < base; }
  explicit operator bool() const { return base != nullptr; }
};

/// Returns the stack of a thread of libc's, which ends at `top` and has `size` bytes. If it is larger than any of a fiber, the part
/// that is further down does not count.
inline Stack stackBelow(char* top, size_t size) {
  size = std::min(size, kMaxStackSize);
  return {top - size, static_cast<uint32_t>(size)};
}

/// The stacks of one mapped size. Free ones are reused last in, first out, so the warmest comes next. Not thread safe.
///
/// Changing the process's mappings is expensive, and holds up the page faults of all its threads. So the more stacks were
/// mapped, the more are mapped at once, up to kMappedAtOnce bytes, and kReturned are unmapped together. Memory that nobody
/// touches costs addresses only, unless mlockall or a strict limit says otherwise.
class StackClass {
 public:
  static constexpr size_t kReturned = 64;
  static constexpr size_t kMappedAtOnce = 32 * (kGuardSize + kDefaultStackSize);

  StackClass() = default;
  ~StackClass();
  StackClass(const StackClass&) = delete;
  StackClass& operator=(const StackClass&) = delete;

  size_t free() const { return m_free_count; }
  /// Returns how many of the free stacks, those that came last, may have the pages that their fibers touched. The others have
  /// one page.
  size_t warm() const { return m_warm_count; }

  /// Returns a new stack of `mapped_size` bytes less its colour, or a false Stack if there is no memory or no mapping left.
  [[nodiscard]] Stack map(size_t mapped_size);
  /// Returns the free stack that came last. There must be one.
  [[nodiscard]] Stack take() {
    SYLAR_DCHECK(m_free_count > 0 && m_free != nullptr);
    --m_free_count;
    if (m_warm_count > 0) --m_warm_count;
    return std::exchange(m_free, m_free->next)->stack;
  }
  void put(Stack stack) {
    SYLAR_DCHECK(stack.base != nullptr && stack.size > sizeof(Free));
    // The list entry lies where the next fiber's first frame will be, on a page that is resident anyway.
    m_free = ::new (stack.top() - sizeof(Free)) Free{m_free, stack};
    ++m_free_count;
    ++m_warm_count;
  }
  /// Gives back the memory of the older half of the warm stacks, except the page of their next first frame.
  void cool();
  /// Unmaps the kReturned stacks that came last. At the limit of mappings the kernel may refuse some; then those stay, and this
  /// returns false.
  bool unmapSome();

 private:
  struct Free {
    Free* next;
    Stack stack;
  };

  bool mapMore(size_t mapped_size);
  template <class Refused>
  void unmapFree(Refused refused);

  Free* m_free = nullptr;
  size_t m_free_count = 0;
  size_t m_warm_count = 0;
  char* m_untouched = nullptr;  // mapped, without guards yet
  char* m_untouched_end = nullptr;
  size_t m_untouched_guard = 0;
  size_t m_at_once = 1;
  uint32_t m_colour = 0;
};

/// The stacks of one thread, by size. Not thread safe.
///
/// Free stacks of all sizes together are bounded by kKeptBytes of addresses, guards included. Of these, at most kWarmBytes keep
/// the memory that fibers have touched; each of the others has one page. Beyond either bound, the size that has most gives back.
/// If the kernel refuses to unmap, the pool keeps up to half as many more before it asks again.
class StackPool {
 public:
  static constexpr size_t kMaxPooledSize = size_t{2} << 20;
  static constexpr size_t kKeptBytes = 1024 * (kGuardSize + kDefaultStackSize);
  static constexpr size_t kWarmBytes = size_t{16} << 20;

  /// Returns a stack of at least `size` bytes less a colour of under 1.5 KiB, which shifts its top. `size` is clamped to
  /// [kMinStackSize, kMaxStackSize] and rounded up, to a power of two as far as kMaxPooledSize and to pages above it. Stacks
  /// above kMaxPooledSize are unmapped when they come back. Returns a false Stack if there is no memory or no mapping left.
  [[nodiscard]] Stack take(size_t size);

  /// Takes back a stack on which nothing runs any more.
  void put(Stack stack);

 private:
  static constexpr size_t kClasses = std::countr_zero(kMaxPooledSize / kMinStackSize) + 1;

  static Stack mapAlone(size_t mapped_size);
  static void unmapAlone(Stack stack);
  template <class Bytes>
  size_t most(Bytes bytes) const;
  size_t keptBytes(size_t i) const;
  size_t warmBytes(size_t i) const;
  void cool();
  void unmapSome();

  std::array<StackClass, kClasses> m_classes;
  size_t m_kept_bytes = 0;
  size_t m_warm_bytes = 0;
  size_t m_limit = kKeptBytes;
};

}  // namespace sylar::detail
