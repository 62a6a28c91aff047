// Internal. Stacks of fibers: mapped memory with a guard area below, and a pool of them per thread.
//
// A frame that runs off the low end hits the guard (64 KiB; `-fstack-clash-protection` makes larger frames touch it, too) and
// faults instead of overwriting a neighbour; overflow.h reports it. The guard is MADV_GUARD_INSTALL where the kernel has it
// (Linux 6.13): no mapping of its own, so a million stacks fit under the default vm.max_map_count; else mprotect.
#pragma once

#include <array>
#include <bit>
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

/// Stacks of one mapped size, the free ones last in, first out: the warmest is used next. Not thread safe.
///
/// A change of the process's mappings is dear, and holds up the page faults of all its threads. So the more stacks were mapped,
/// the more are mapped at once, up to kMappedAtOnce bytes (what nobody touches costs addresses only, if neither mlockall nor a
/// strict limit says otherwise); and when one comes back to kCapacity free ones, the last kReturned are unmapped together. At the
/// limit of mappings the kernel may refuse that; then more are kept.
class StackClass {
 public:
  static constexpr size_t kCapacity = 1024;
  static constexpr size_t kReturned = 64;
  static constexpr size_t kMappedAtOnce = size_t{4} << 20;

  StackClass() = default;
  ~StackClass();
  StackClass(const StackClass&) = delete;
  StackClass& operator=(const StackClass&) = delete;

  /// A stack of `mapped_size` bytes less its colour; a false Stack if there is no memory or no mapping left.
  [[nodiscard]] Stack take(size_t mapped_size);
  void give(Stack stack);

 private:
  struct Free {
    Free* next;
    Stack stack;
  };

  bool mapMore(size_t size);
  void keep(Stack stack);
  template <class Refused>
  void unmapFree(Refused refused);

  Free* m_free = nullptr;
  size_t m_free_count = 0;
  char* m_untouched = nullptr;  // mapped, without guards yet
  char* m_untouched_end = nullptr;
  size_t m_at_once = 1;
  size_t m_limit = kCapacity;
  uint32_t m_colour = 0;
};

/// The stacks of one thread, by size. Not thread safe.
class StackPool {
 public:
  static constexpr size_t kMaxPooledSize = size_t{2} << 20;

  /// A stack of at least `size` bytes less a colour of under 2 KiB, which shifts its top. `size` is clamped to [kMinStackSize,
  /// kMaxStackSize] and rounded up: to a power of two as far as kMaxPooledSize, above to pages; those are unmapped when they come
  /// back. No memory or no mapping left: a false Stack.
  [[nodiscard]] Stack take(size_t size);

  /// Takes a stack back that nothing runs on any more.
  void give(Stack stack);

 private:
  static constexpr size_t kClasses = std::countr_zero(kMaxPooledSize / kMinStackSize) + 1;

  std::array<StackClass, kClasses> m_classes;
};

}  // namespace sylar
