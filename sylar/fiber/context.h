// Internal. A suspended computation, and the switch between two of them. The only user of Boost.Context.
//
// A switch also carries what belongs to the computation and not to the thread: errno and the C++ exception globals (Debian's
// Boost 1.74 does not), and tells ASan and TSan. Source: Boost.Context fcontext; Itanium C++ ABI, __cxa_get_globals.
#pragma once

#include <cstddef>

#include "sylar/base/sanitizers.h"
#include "sylar/fiber/stack.h"

namespace sylar {

/// Thread safety: none; a context is resumed by one thread at a time.
class Context {
 public:
  /// Adopts the calling thread's own stack: a place to come back to.
  void adoptThread();

  /// Lets the first switch to this context call `Entry` on `stack`. `Entry` must not return: it leaves by exitTo.
  template <void (*Entry)()>
  void make(const Stack& stack) {
    makeWith(stack, &outermost<Entry>);
  }

  /// What a switch says about before and after, to TSan in its strict mode: a call from one to the other, as by hand, or turns
  /// that a loop gives to fibers, which have nothing to do with one another.
  enum class Kind { kCall, kTurn };

  /// Suspends the caller in `from` and goes on in `to`. Returns when somebody switches to `from`.
  static void switchTo(Context& from, Context& to, Kind kind = Kind::kCall);

  /// Leaves `from` for ever.
  [[noreturn]] static void exitTo(Context& from, Context& to);

  /// To be called, on another stack, for a context that was made and has been left for ever or will never be entered again.
  void release();

  /// Instead of release(), for a context that stays suspended on `stack` for ever: what that holds is no leak.
  static void keepForEver(const Stack& stack);

 private:
  struct Transfer {  // laid out as boost::context::detail::transfer_t
    void* context;
    void* data;
  };
  using Start = void (*)(Transfer);

  template <void (*Entry)()>
  static void outermost(Transfer arrival) {
    // Its caller's frame pointer: there is no caller, and what Boost left is a code address. The chain of frames ends here.
    *static_cast<void**>(__builtin_frame_address(0)) = nullptr;
    arrive(arrival, nullptr);
    Entry();
  }

  void makeWith(const Stack& stack, Start start);
  static void arrive(Transfer arrival, Context* self);

  void* m_suspended = nullptr;  // fcontext_t: valid while suspended
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
  const void* m_stack_bottom = nullptr;
  size_t m_stack_size = 0;
  void* m_fake_stack = nullptr;
  void* m_tsan_fiber = nullptr;
#endif
};

}  // namespace sylar
