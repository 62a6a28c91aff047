#include "sylar/fiber/context.h"

#include <cxxabi.h>

#include <cerrno>
#include <new>

#ifndef SYLAR_INLINE_SWITCH
#include <boost/context/detail/fcontext.hpp>
#endif
#ifdef SYLAR_TSAN
extern "C" {  // GCC 12's header does not declare them, its runtime has them
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}
#endif

namespace sylar::detail {

ThreadLocals ThreadLocals::ofThisThread() { return {&errno, reinterpret_cast<Exceptions*>(abi::__cxa_get_globals())}; }

void Context::adoptThread() {
  SYLAR_DCHECK(m_suspended == nullptr);
#ifdef SYLAR_TSAN
  m_tsan_fiber = __tsan_get_current_fiber();
#endif
}

#ifdef SYLAR_INLINE_SWITCH

void Context::makeWith(const Stack& stack, Start start) {
  SYLAR_DCHECK(stack && start != nullptr);
  m_suspended = ::new (stack.top() - sizeof(Suspended)) Suspended{};
  makeRegisters(m_suspended->registers, reinterpret_cast<char*>(m_suspended), start);
}

#else

#ifdef SYLAR_TSAN
#define SYLAR_TSAN_SWITCH_(to, no_sync) __tsan_switch_to_fiber((to).m_tsan_fiber, (no_sync) ? 1 : 0)  // in the frame that jumps
#else
#define SYLAR_TSAN_SWITCH_(to, no_sync) (void)(no_sync)
#endif

void Context::makeWith(const Stack& stack, Start start) {
  SYLAR_DCHECK(stack && start != nullptr);
  static_assert(sizeof(Transfer) == sizeof(boost::context::detail::transfer_t));
  using BoostStart = void (*)(boost::context::detail::transfer_t);
  m_suspended = ::new (stack.top() - sizeof(Suspended)) Suspended{};
  m_suspended->registers = boost::context::detail::make_fcontext(m_suspended, stack.size - sizeof(Suspended),
                                                                 reinterpret_cast<BoostStart>(reinterpret_cast<void*>(start)));
#ifdef SYLAR_TSAN
  m_tsan_fiber = __tsan_create_fiber(0);
#endif
}

void Context::arrive(Transfer arrival) {
  const tsan::Exempt handed_over;
  auto& left = *static_cast<Context*>(arrival.data);
  left.m_suspended->registers = arrival.context;
}

// `me` must lie on the true stack, not on ASan's fake one, which ends before the jump.
[[gnu::noinline, gnu::no_sanitize_address]] void Context::switchTo(Context& from, Context& to, const ThreadLocals& here,
                                                                   Kind kind) {
  Suspended me;
  leave(from, me, to, here);
  SYLAR_TSAN_SWITCH_(to, kind == Kind::kLoop && tsan::strict());
  const auto arrival = boost::context::detail::jump_fcontext(to.m_suspended->registers, &from);
  arrive({arrival.fctx, arrival.data});
}

[[gnu::noinline, gnu::no_sanitize_address]] void Context::exitTo(Context& from, Context& to, const ThreadLocals& here) {
  Suspended me;
  leave(from, me, to, here);
  SYLAR_TSAN_SWITCH_(to, false);  // synchronises, because others wait for this end
  boost::context::detail::jump_fcontext(to.m_suspended->registers, &from);
  checkFailed(__FILE__, __LINE__, "a context that was left for ever is entered");
}

#endif

void Context::release() {
#ifdef SYLAR_TSAN
  SYLAR_DCHECK(m_tsan_fiber != nullptr);
  __tsan_destroy_fiber(m_tsan_fiber);
  m_tsan_fiber = nullptr;
#endif
}

}  // namespace sylar::detail
