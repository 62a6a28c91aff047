#include "sylar/fiber/overflow.h"

#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "sylar/base/raw_line.h"
#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "sylar/fiber/thread_fibers.h"

namespace sylar {

#ifdef SYLAR_ASAN

OverflowReport::OverflowReport() = default;
OverflowReport::~OverflowReport() = default;

#else

namespace {

constexpr size_t kSignalStackSize = 64 * 1024;
constexpr int kMaxFrames = 64;

struct sigaction g_previous_segv;
struct sigaction g_previous_bus;
constinit std::atomic<long> g_reporter{0};  // the thread that reports; the process ends with its report

struct sigaction& previousOf(int signal) {
  return signal == SIGSEGV ? g_previous_segv : g_previous_bus;
}

void unblock(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

[[noreturn]] void report(const FiberCore& core, const void* address) {
  const Stack& stack = core.stack;
  char name[128];
  const size_t name_size = core.fiber->copyName(name, sizeof name);
  RawLine line;
  line.text("sylar: stack overflow in fiber ").number(core.fiber->getId()).text(" \"").text({name, name_size});
  line.text("\": stack of ").number(stack.size).text(" bytes at [").address(stack.base).text(", ").address(stack.top());
  line.text("), fault at ").address(address).text("\n");
  line.writeTo(STDERR_FILENO);
  // From here on a fault is the report's own: code without unwind tables can mislead it.
  unblock(SIGSEGV);
  unblock(SIGBUS);
  void* frames[kMaxFrames];
  backtrace_symbols_fd(frames, backtrace(frames, kMaxFrames), STDERR_FILENO);
  std::abort();
}

void passOn(int signal, siginfo_t* info, void* context) {
  struct sigaction& previous = previousOf(signal);
  const struct sigaction action = previous;
  const bool sent = info->si_code <= 0;  // by a process; what the kernel raised cannot be ignored
  if (action.sa_handler == SIG_IGN && sent) return;
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) {
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(signal, &standard, nullptr);
    raise(signal);  // taken on the return from here, where the fault was
    return;
  }
  if ((action.sa_flags & SA_RESETHAND) != 0) previous.sa_handler = SIG_DFL;
  if ((action.sa_flags & SA_NODEFER) != 0) unblock(signal);
  pthread_sigmask(SIG_BLOCK, &action.sa_mask, nullptr);  // the return from the signal restores it
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal, info, context);
  } else {
    action.sa_handler(signal);
  }
}

void onFault(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const long me = sys::call(SYS_gettid);
  if (g_reporter.load(std::memory_order_relaxed) == me) std::abort();
  if (const FiberCore* core = info->si_code > 0 ? ThreadFibers::ownerOfGuard(info->si_addr) : nullptr) {
    long nobody = 0;
    if (g_reporter.compare_exchange_strong(nobody, me)) report(*core, info->si_addr);
    sys::haltThread();  // another fiber was first: one report, then the end
  }
  passOn(signal, info, context);
  errno = saved_errno;
}

void installHandlers() {
  void* frame;
  backtrace(&frame, 1);  // its first call loads a library: not in the handler
  struct sigaction ours {};
  ours.sa_sigaction = onFault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS}) {
    sigaction(signal, nullptr, &previousOf(signal));  // known before ours can be called
    sigaction(signal, &ours, nullptr);
  }
}

}  // namespace

OverflowReport::OverflowReport() {
  static const bool installed = (installHandlers(), true);
  (void)installed;
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

}  // namespace sylar
