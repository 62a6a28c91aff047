// Internal. A suspended computation, and the switch between two of them.
//
// A switch also carries what belongs to the computation and not to the thread: floating-point control words, errno and the C++
// exception globals (Debian's Boost 1.74 does not). The thread's copies are exchanged before the jump, so nothing has to be
// looked up afterwards, on whatever thread that is.
//
// There are two backends. jump_x86_64.h is inlined. Boost.Context's fcontext is for other processors, for sanitizers, and where
// SYLAR_CONTEXT=boost is configured. Source: Boost.Context fcontext; Itanium C++ ABI, __cxa_get_globals.
#pragma once

#include <cstddef>
#include <utility>

#include "sylar/base/internal.h"
#include "sylar/base/sanitizers.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/fiber/stack.h"

#if defined(__x86_64__) && defined(__LP64__) && !defined(SYLAR_ASAN) && !defined(SYLAR_TSAN) && !defined(SYLAR_CONTEXT_BOOST)
#define SYLAR_INLINE_SWITCH 1
#include "sylar/fiber/jump_x86_64.h"
#endif

// Marks functions into which a switch is inlined, so that a call of them follows the ABI. Otherwise GCC analyses what it
// compiles together, and a caller with more registers than these functions know of (AVX-512, link-time optimisation) might keep
// some of them across the switch.
#if defined(__GNUC__) && !defined(__clang__)
#define SYLAR_SWITCHES [[gnu::noipa]]
#else
#define SYLAR_SWITCHES [[gnu::noinline]]
#endif

namespace sylar::detail {

/// Holds the addresses at which a thread keeps what belongs to the computation running on it. Look them up once per thread,
/// because that is slow.
struct ThreadLocals {
  /// Itanium C++ ABI 2.2.2: the exceptions that are being handled and those in flight.
  struct Exceptions {
    void* caught;
    unsigned uncaught;
  };

  static ThreadLocals ofThisThread();

  int* error;
  Exceptions* exceptions;
};

/// One end of a switch: a computation that is suspended or runs.
///
/// Thread safety: none. A context is resumed by one thread at a time.
class Context {
 public:
  /// Adopts the calling thread's own stack as a context to come back to.
  void adoptThread();

  /// Makes the first switch to this context call `Entry` on `stack`. `Entry` must not return; it leaves by exitTo().
  template <void (*Entry)()>
  void make(const Stack& stack) {
#ifdef SYLAR_INLINE_SWITCH
    makeWith(stack, Entry);
#else
    makeWith(stack, &outermost<Entry>);
#endif
  }

  /// Tells TSan, in its strict mode, how the code before a switch relates to the code after it. kCall: one calls the other, as
  /// in a resume by hand. kLoop: a loop enters one fiber after the other, which have nothing to do with one another.
  enum class Kind { kCall, kLoop };

  /// Suspends the caller in `from` and continues in `to`. Returns when somebody switches to `from`. `here` is the calling
  /// thread's. Where this is inlined, a computation that may have changed its thread must not touch thread_local variables
  /// afterwards.
  static void switchTo(Context& from, Context& to, const ThreadLocals& here, Kind kind = Kind::kCall);

  /// Leaves `from` permanently.
  [[noreturn]] static void exitTo(Context& from, Context& to, const ThreadLocals& here);

  /// Returns the lowest address of its stack that a suspended computation may still use.
  const char* lowest() const {
    SYLAR_DCHECK(m_suspended != nullptr);
    constexpr size_t kRedZone = 512;  // x86-64: 128; the most of all, 64-bit POWER: 512
#ifdef SYLAR_INLINE_SWITCH
    return static_cast<const char*>(m_suspended->registers.stack) - kRedZone;
#else
    return static_cast<const char*>(m_suspended->registers) - kRedZone;
#endif
  }

  /// Must be called, on another stack, for a context that was made and then left permanently or will never be entered again.
  void release();

 private:
#ifdef SYLAR_INLINE_SWITCH
  using Registers = SavedRegisters;
  using Start = void (*)();
#else
  using Registers = void*;  // fcontext_t
  struct Transfer {         // laid out as boost::context::detail::transfer_t
    void* context;
    void* data;
  };
  using Start = void (*)(Transfer);

  template <void (*Entry)()>
  static void outermost(Transfer arrival) {
    // Clears the saved frame pointer, where Boost left a code address. There is no caller, so the chain of frames ends here.
    *static_cast<void**>(__builtin_frame_address(0)) = nullptr;
    arrive(arrival);
    Entry();
  }
  static void arrive(Transfer arrival);
#endif

  /// Lies on the stack that it describes.
  struct alignas(16) Suspended {
    Registers registers;
    int error;
    ThreadLocals::Exceptions exceptions;
  };

  void makeWith(const Stack& stack, Start start);
  /// Records in `me`, which lies on the caller's stack, that `from` is suspended, loads what the thread keeps from `to`, and
  /// returns what is kept of that.
  static const Suspended& leave(Context& from, Suspended& me, const Context& to, const ThreadLocals& here);

  Suspended* m_suspended = nullptr;  // valid while suspended
#ifdef SYLAR_TSAN
  void* m_tsan_fiber = nullptr;
#endif
};

inline const Context::Suspended& Context::leave(Context& from, Suspended& me, const Context& to, const ThreadLocals& here) {
  SYLAR_DCHECK(&from != &to && to.m_suspended != nullptr);
  const tsan::Exempt of_this_thread;
  Suspended* kept = &me;
  __asm__("" : "+r"(kept));  // or compilers warn of its address, though nobody enters a context that has returned
  from.m_suspended = kept;
  const Suspended& entered = *to.m_suspended;
  ThreadLocals::Exceptions& exceptions = *here.exceptions;
  kept->error = std::exchange(*here.error, entered.error);
  kept->exceptions.caught = std::exchange(exceptions.caught, entered.exceptions.caught);
  kept->exceptions.uncaught = std::exchange(exceptions.uncaught, entered.exceptions.uncaught);
  return entered;
}

/// Returns `object` as if it were another one. A reference that is alive across an inlined switch lies in memory, from where each
/// use, before and after, would load it.
template <class T>
[[gnu::always_inline]] inline T& inRegister(T& object) {
  T* address = &object;
  __asm__ volatile("" : "+r"(address));
  return *address;
}

#ifdef SYLAR_INLINE_SWITCH

[[gnu::always_inline]] inline void Context::switchTo(Context& from, Context& to, const ThreadLocals& here, Kind /*kind*/) {
  Suspended me;
  const Suspended& entered = leave(from, me, to, here);
  jump(from.m_suspended->registers, entered.registers);
}

[[gnu::always_inline]] inline void Context::exitTo(Context& from, Context& to, const ThreadLocals& here) {
  switchTo(from, to, here);
  checkFailed(__FILE__, __LINE__, "a context that was left for ever is entered");
}

#endif

}  // namespace sylar::detail
