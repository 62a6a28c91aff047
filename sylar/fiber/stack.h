// Internal. Stacks of fibers: mapped memory with a guard area below, and a pool of them per thread.
//
// A frame that runs off the low end hits the guard (64 KiB; `-fstack-clash-protection` makes larger frames touch it, too) and
// faults instead of overwriting a neighbour; overflow.h reports it. The guard is MADV_GUARD_INSTALL where the kernel has it
// (Linux 6.13): no mapping of its own, so a million stacks fit under the default vm.max_map_count; else mprotect.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sylar/base/sanitizers.h"

namespace sylar {

inline constexpr size_t kGuardSize = 64 * 1024;
inline constexpr size_t kMinStackSize = 16 * 1024;
inline constexpr size_t kMaxStackSize = size_t{1} << 30;
#ifdef SYLAR_ASAN
inline constexpr size_t kDefaultStackSize = 256 * 1024;  // its frames are up to 1.7 times as large
#else
inline constexpr size_t kDefaultStackSize = 128 * 1024;
#endif

/// A usable range of memory; the guard lies below `base`.
struct Stack {
  char* base = nullptr;
  size_t size = 0;

  char* top() const { return base + size; }
  bool guards(const void* address) const { return base - kGuardSize <= address && address < base; }
  explicit operator bool() const { return base != nullptr; }
};

/// The free stacks of one thread, last in, first out: the warmest is used next. Not thread safe.
///
/// Keeps at most kCapacity stacks, all of one mapped size; stacks of other sizes, and those above the cap, are unmapped at once.
class StackPool {
 public:
  static constexpr size_t kCapacity = 1024;

  StackPool() = default;
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  /// A stack of at least `size` bytes less a colour of under 2 KiB; `size` is clamped to [kMinStackSize, kMaxStackSize] and
  /// rounded up to pages. No memory or no mapping left: a false Stack.
  [[nodiscard]] Stack take(size_t size);

  /// Takes a stack back that nothing runs on any more.
  void give(Stack stack);

 private:
  struct Free {
    Free* next;
    Stack stack;
  };

  Stack map(size_t mapped_size);

  Free* m_free = nullptr;
  size_t m_count = 0;
  size_t m_mapped_size = 0;  // of the pooled stacks
  uint32_t m_colour = 0;
};

}  // namespace sylar
