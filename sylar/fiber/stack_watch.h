// Internal. What AddressSanitizer and LeakSanitizer are told of the stacks of fibers.
//
// The program's sanitizer has to know on which stack a thread is, or an exception is an overflow to it, and what only a fiber's
// stack points to is a leak. Its functions are weak here, so a library that was compiled without it tells it as well, and in a
// program without it they are null. A fiber notes at its start whether there is one to tell (FiberCore::watched), so that other
// programs do not look at each switch.
//
// ThreadSanitizer cannot be served in this way, because it has to see how the library orders what its threads do.
//
// Source: compiler-rt, sanitizer/common_interface_defs.h, asan_interface.h, lsan_interface.h.
#pragma once

#include <cstddef>

#include "sylar/base/internal.h"
#include "sylar/fiber/stack.h"

extern "C" {
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, size_t size);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom_before, size_t* size_before);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* address, size_t size);
[[gnu::weak]] void __lsan_register_root_region(const void* address, size_t size);
[[gnu::weak]] void __lsan_unregister_root_region(const void* address, size_t size);
}

namespace sylar::detail::stack_watch {

/// Returns true if the program has one of the two. AddressSanitizer brings LeakSanitizer with it.
inline bool isOn() { return &__lsan_register_root_region != nullptr; }

/// Must be called for memory in which there may be the only pointer to an object. Only if isOn().
inline void hold(const void* memory, size_t size) { __lsan_register_root_region(memory, size); }

/// Takes back hold().
inline void release(const void* memory, size_t size) { __lsan_unregister_root_region(memory, size); }

/// Must be called before a fiber begins on `stack`. Only if isOn().
inline void begin(const Stack& stack) { hold(stack.base, stack.size); }

/// Must be called when a fiber has left `stack` for good. Its last frames have never returned, so they are still poisoned.
inline void end(const Stack& stack) {
  release(stack.base, stack.size);
  if (&__asan_unpoison_memory_region != nullptr) __asan_unpoison_memory_region(stack.base, stack.size);
}

/// Must be called before a switch to `target`, in a function that is not instrumented. `fake_stack` keeps the frames that
/// AddressSanitizer has moved aside, and is null if the caller's stack is left for good.
[[gnu::always_inline]] inline void leave(void** fake_stack, const Stack& target) {
  if (&__sanitizer_start_switch_fiber != nullptr) __sanitizer_start_switch_fiber(fake_stack, target.base, target.size);
}

/// Must be called after the switch, with what leave() has kept, or null on a stack's first frame. Returns the stack that was left.
[[gnu::always_inline]] inline Stack arrive(void* fake_stack) {
  const void* base = nullptr;
  size_t size = 0;
  if (&__sanitizer_finish_switch_fiber != nullptr) __sanitizer_finish_switch_fiber(fake_stack, &base, &size);
  return {static_cast<char*>(const_cast<void*>(base)), static_cast<uint32_t>(size)};  // of at most 1 GiB for a sanitizer
}

}  // namespace sylar::detail::stack_watch
