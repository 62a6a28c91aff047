#include "sylar/fiber/thread_fibers.h"

#include <new>

#include "sylar/base/check.h"
#include "sylar/base/log.h"
#include "sylar/base/sys.h"

namespace sylar {
namespace {

[[gnu::tls_model("initial-exec")]] constinit thread_local FiberCore* t_running = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadFibers* t_this = nullptr;

}  // namespace

[[gnu::noinline]] FiberCore* runningFiber() {
  __asm__ volatile("");
  return t_running;
}

struct ThreadFibers::AtThreadExit {
  ~AtThreadExit() {
    delete t_this;
    t_this = nullptr;  // thread_local destructors that run later make another one
  }
};

[[gnu::noinline]] ThreadFibers& ThreadFibers::current() {
  __asm__ volatile("");
  if (t_this == nullptr) {
    t_this = new ThreadFibers;
    static thread_local AtThreadExit at_exit;
    (void)&at_exit;
  }
  return *t_this;
}

ThreadFibers::ThreadFibers() { m_own_stack.adoptThread(); }

ThreadFibers::~ThreadFibers() { SYLAR_CHECK(t_running == nullptr); }

void ThreadFibers::setHost(FiberHost* host, WorkerSlot* home, uint64_t worker_id) {
  m_host = host;
  m_home = home;
  m_worker_id = worker_id;
}

bool ThreadFibers::start(Fiber& fiber) {
  const Stack stack = m_stacks.take(fiber.m_stack_size);
  if (!stack) return false;
  FiberCore* core = m_cores.take();
  if (core == nullptr) {
    m_stacks.give(stack);
    return false;
  }
  core->request = Request::kReady;
  core->permit = false;
  core->hook_enabled = true;
  core->cancelled = false;
  core->shielded = false;
  core->home = m_home;
  core->fiber = &fiber;
  core->resumer = nullptr;
  core->stack = stack;
  core->deadline_ns = kNever;
  core->context.make<&ThreadFibers::fiberMain>(stack);
  fiber.m_core = core;
  fiber.m_thread_id = sys::threadId();
  fiber.m_worker_id.store(m_worker_id, std::memory_order_release);
  return true;
}

void ThreadFibers::adopt(Fiber& fiber) {
  fiber.m_thread_id = sys::threadId();
  fiber.m_core->home = m_home;
  fiber.m_core->resumer = nullptr;
  fiber.m_worker_id.store(m_worker_id, std::memory_order_release);
}

FiberCore& ThreadFibers::enter(FiberCore& core) {
  FiberCore* const me = t_running;
  t_running = &core;
  Context::switchTo(me != nullptr ? me->context : m_own_stack, core.context);
  return *m_came_back;
}

void ThreadFibers::switchOut(FiberCore& me, FiberCore* to) {
  t_running = to;
  m_came_back = &me;
  Context::switchTo(me.context, to != nullptr ? to->context : m_own_stack);
}

void ThreadFibers::yield(Request request) {
  FiberCore& me = *t_running;
  me.request = request;
  if (me.timer_linked) m_host->unlinkTimer(me);
  switchOut(me, me.resumer);
}

void ThreadFibers::park() {
  FiberCore& me = *t_running;
  me.request = Request::kParked;
  me.fiber->move(Fiber::Life::kRunning, Fiber::Life::kParked);
  switchOut(me, nullptr);
}

void ThreadFibers::fiberMain() {
  t_running->fiber->run();
  // The fiber may have been moved meanwhile: look anew whose thread this is.
  ThreadFibers& thread = current();
  FiberCore& me = *runningFiber();
  me.request = Request::kDone;
  t_running = me.resumer;
  thread.m_came_back = &me;
  Context::exitTo(me.context, me.resumer != nullptr ? me.resumer->context : thread.m_own_stack);
}

void ThreadFibers::recycle(FiberCore& core) {
  if (core.timer_linked) m_host->unlinkTimer(core);
  core.context.release();
  m_stacks.give(core.stack);
  core.fiber = nullptr;
  m_cores.give(&core);
}

void ThreadFibers::finish(FiberCore& core) {
  Fiber& fiber = *core.fiber;
  const Fiber::ptr last = std::move(fiber.m_self);
  fiber.m_core = nullptr;
  recycle(core);
  fiber.end();
}

void ThreadFibers::failToStart(Fiber& fiber) {
  const Fiber::ptr last = std::move(fiber.m_self);
  fiber.m_cb = nullptr;
  fiber.m_exception = std::make_exception_ptr(std::bad_alloc());
  fiber.move(Fiber::Life::kQueued, Fiber::Life::kRunning);
  fiber.end();
}

void ThreadFibers::discard(Fiber& fiber) {
  log::warn("fiber {} is dropped while suspended: its stack is reclaimed, destructors on it do not run", fiber.getId());
  recycle(*fiber.m_core);
}

Fiber::ptr ThreadFibers::ownStackHandle() {
  if (m_own_handle == nullptr) m_own_handle.reset(new Fiber(Fiber::OwnStack{}));
  return m_own_handle;
}

}  // namespace sylar
