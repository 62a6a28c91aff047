// Switches that a sanitizer is told of (stack_watch.h), and what becomes of a program whose sanitizer cannot be told.
//
// AddressSanitizer frees the moved frames of a stack that is left for good, so no function may have its own there between its two
// calls.
#include <pthread.h>

#include <string_view>
#include <utility>

#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "sylar/fiber/thread_fibers.h"

extern "C" {
[[gnu::weak]] void __tsan_init();
[[gnu::weak]] void __msan_init();
}

namespace sylar::detail {

/// Switches to `to`, or to the thread's own stack if that is null.
SYLAR_SWITCHES SYLAR_UNINSTRUMENTED void ThreadFibers::switchTelling(Context& from, FiberCore* to, Context::Kind kind) {
  void* fake_stack = nullptr;
  m_leaves_own_stack = &from == &m_own_stack;
  stack_watch::leave(&fake_stack, to != nullptr ? to->stack : m_own_bounds);
  Context::switchTo(from, contextOf(to), m_thread_locals, kind);
  arriveTelling(fake_stack);
}

SYLAR_SWITCHES SYLAR_UNINSTRUMENTED void ThreadFibers::exitTelling(FiberCore& me) {
  m_leaves_own_stack = false;
  stack_watch::leave(nullptr, me.resumer != nullptr ? me.resumer->stack : m_own_bounds);
  Context::exitTo(me.context, contextOf(me.resumer), m_thread_locals);
}

/// The fiber may have been moved, so the thread is looked up here.
[[gnu::noinline]] SYLAR_UNINSTRUMENTED void ThreadFibers::arriveTelling(void* fake_stack) {
  const Stack left = stack_watch::arrive(fake_stack);
  ThreadFibers& here = current();
  if (std::exchange(here.m_leaves_own_stack, false)) here.m_own_bounds = left;
}

/// Lets the leak checker see the frames under which the thread runs fibers, because in exit() they are not on its present stack.
void ThreadFibers::holdOwnStack() const {
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return;
  void* base = nullptr;
  size_t size = 0;
  ::pthread_attr_getstack(&attributes, &base, &size);
  ::pthread_attr_destroy(&attributes);
  const char* const lowest = m_own_stack.lowest();
  const char* const top = static_cast<const char*>(base) + size;
  if (lowest >= base && lowest < top) stack_watch::hold(lowest, static_cast<size_t>(top - lowest));
}

#ifndef SYLAR_TSAN
namespace {

/// Ends a program that would report errors of the library that are none, before its first report. ThreadSanitizer does not see what
/// orders the threads of a library that was compiled without it, and MemorySanitizer not what such a library writes.
[[gnu::constructor(101)]] void refuseSanitizer() {
  const bool races = &__tsan_init != nullptr;
  if (!races && &__msan_init == nullptr) return;
  constexpr std::string_view kRaces =
      "sylar: the program is built with ThreadSanitizer and the library is not, so all reports would be wrong. Link it with a "
      "build of the "
      "library with -DSYLAR_SANITIZE=thread (docs/guide/8-testing-with-virtual-time.md)\n";
  constexpr std::string_view kMemory =
      "sylar: the library does not work with MemorySanitizer, because all reports would be wrong\n";
  const std::string_view why = races ? kRaces : kMemory;
  sys::writeAll(STDERR_FILENO, why.data(), why.size());
  sys::call(SYS_exit_group, 1);
}

}  // namespace
#endif

}  // namespace sylar::detail
