#include "sylar/fiber/overflow.h"

#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "sylar/base/chained_handler.h"
#include "sylar/base/raw_line.h"
#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "sylar/fiber.h"
#include "sylar/fiber/fiber_core.h"

namespace sylar::detail {

#ifdef SYLAR_ASAN

OverflowReport::OverflowReport(const FiberCore* (*)(const void*)) {}
OverflowReport::~OverflowReport() = default;

#else

namespace {

constexpr size_t kSignalStackSize = 64 * 1024;
constexpr int kMaxFrames = 64;

constinit ChainedHandler g_segv;
constinit ChainedHandler g_bus;
constinit std::atomic<const FiberCore* (*)(const void*)> g_owner{nullptr};
constinit std::atomic<long> g_reporter{0};  // the thread that reports; the process ends with its report

[[noreturn]] void report(const FiberCore& core, const void* address) {
  const Stack& stack = core.stack;
  char name[128];
  const size_t name_size = core.fiber->copyName(name, sizeof name);
  RawLine line;
  line.text("sylar: stack overflow in fiber ").number(core.fiber->getId()).text(" \"").text({name, name_size});
  line.text("\": stack of ").number(stack.size).text(" bytes at [").address(stack.base).text(", ").address(stack.top());
  line.text("), fault at ").address(address).text("\n");
  line.writeTo(STDERR_FILENO);
  // From here on a fault is the report's own, because code without unwind tables can mislead it.
  unblockSignal(SIGSEGV);
  unblockSignal(SIGBUS);
  void* frames[kMaxFrames];
  backtrace_symbols_fd(frames, backtrace(frames, kMaxFrames), STDERR_FILENO);
  std::abort();
}

void onFault(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const long me = sys::call(SYS_gettid);
  if (g_reporter.load(std::memory_order_relaxed) == me) std::abort();
  if (const FiberCore* core = info->si_code > 0 ? g_owner.load(std::memory_order_relaxed)(info->si_addr) : nullptr) {
    long nobody = 0;
    if (g_reporter.compare_exchange_strong(nobody, me)) report(*core, info->si_addr);
    sys::haltThread();  // another fiber was first; there is one report, then the end
  }
  (signal == SIGSEGV ? g_segv : g_bus).passOn(signal, info, context);
  errno = saved_errno;
}

/// The first backtrace loads a library, which a handler must not do, nor the child of a fork that has met another thread at it.
[[gnu::constructor]] void loadUnwinder() {
  void* frame;
  backtrace(&frame, 1);
}

void installHandlers() {
  g_segv.install(SIGSEGV, onFault);
  g_bus.install(SIGBUS, onFault);
}

}  // namespace

OverflowReport::OverflowReport(const FiberCore* (*owner)(const void* address)) {
  // Not a static variable, whose initialization by another thread would never end in the child of a fork.
  static pthread_once_t s_installed = PTHREAD_ONCE_INIT;
  g_owner.store(owner, std::memory_order_relaxed);  // the same by whoever it is
  ::pthread_once(&s_installed, &installHandlers);
  stack_t present{};
  if (sys::signalStack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
  int error = 0;
  m_signal_stack = sys::mapMemory(kSignalStackSize, &error);
  if (m_signal_stack == nullptr) return;
  stack_t mine{};
  mine.ss_sp = m_signal_stack;
  mine.ss_size = kSignalStackSize;
  sys::signalStack(&mine, nullptr);
}

OverflowReport::~OverflowReport() {
  if (m_signal_stack == nullptr) return;
  stack_t present{};
  if (sys::signalStack(nullptr, &present) == 0 && present.ss_sp == m_signal_stack) {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sys::signalStack(&none, nullptr);
  }
  sys::unmapMemory(m_signal_stack, kSignalStackSize);
}

#endif

}  // namespace sylar::detail
