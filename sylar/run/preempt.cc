#include "sylar/run/preempt.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <sys/auxv.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "sylar/base/sys.h"
#include "sylar/fiber.h"
#include "sylar/hook/core/handler_scope.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/core/wait_loop.h"
#include "sylar/sched/worker.h"

namespace sylar::detail {

#ifdef SYLAR_THREAD_POINTER

namespace {

constexpr int64_t kIntervalNs = 1'000'000;  // the kernel looks at the clock at its ticks only, every 4 ms or so

int signalNumber() { return SIGRTMAX - 4; }

struct Range {
  uintptr_t begin = 0, end = 0;
  bool contains(uintptr_t address) const { return address >= begin && address < end; }
};

/// Where the program is not preempted. Written before the first signal.
struct Spared {
  std::array<Range, 8> ranges;
  size_t count = 0;

  void add(Range range) {
    if (count < ranges.size()) ranges[count++] = range;
  }
  bool contains(uintptr_t address) const {
    return std::any_of(ranges.begin(), ranges.begin() + count, [=](const Range& one) { return one.contains(address); });
  }
};
Spared g_spared;

/// Spares the object that contains `address`.
void spare(uintptr_t address) {
  struct Search {
    uintptr_t address;
    Range found;
  } search{address, {}};
  const auto look = [](dl_phdr_info* object, size_t, void* argument) {
    Search& wanted = *static_cast<Search*>(argument);
    Range all{~uintptr_t{0}, 0};
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = object->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD) continue;
      all.begin = std::min<uintptr_t>(all.begin, object->dlpi_addr + segment.p_vaddr);
      all.end = std::max<uintptr_t>(all.end, object->dlpi_addr + segment.p_vaddr + segment.p_memsz);
    }
    if (!all.contains(wanted.address)) return 0;
    wanted.found = all;
    return 1;
  };
  if (::dl_iterate_phdr(look, &search) != 0) g_spared.add(search.found);
}

/// Returns the program's malloc. dlsym may find a stub for it in the program, which is no definition.
void* allocator() {
  void* const found = ::dlsym(RTLD_DEFAULT, "malloc");
  Dl_info info;
  ElfW(Sym)* symbol = nullptr;
  const bool known = ::dladdr1(found, &info, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) != 0 && symbol != nullptr;
  return known && symbol->st_shndx == SHN_UNDEF ? ::dlsym(RTLD_NEXT, "malloc") : found;
}

void spareAll() {
  spare(reinterpret_cast<uintptr_t>(&preemptFiberThreads));
  spare(::getauxval(AT_BASE));          // the loader
  spare(::getauxval(AT_SYSINFO_EHDR));  // the kernel's code for clocks
  spare(reinterpret_cast<uintptr_t>(::dlsym(RTLD_NEXT, "gnu_get_libc_version")));
  spare(reinterpret_cast<uintptr_t>(allocator()));
  if (void* const unwinder = ::dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD); unwinder != nullptr) {
    spare(reinterpret_cast<uintptr_t>(::dlsym(unwinder, "_Unwind_Resume")));
    ::dlclose(unwinder);
  }
}

bool mayBePreempted(const ucontext_t& at) {
  const FiberCore* const me = t_running;
  if (me == nullptr || !me->live || !me->hook_enabled || me->resumer != nullptr) return false;
  if (sys::inForkedChild() || HandlerScope::running() || onSignalStack()) return false;
  return !g_spared.contains(static_cast<uintptr_t>(at.uc_mcontext.gregs[REG_RIP]));
}

void giveWay(int, siginfo_t*, void* context) {
  auto& at = *static_cast<ucontext_t*>(context);
  if (FiberThread::count().load(std::memory_order_relaxed) == 0 || !mayBePreempted(at)) return;
  const int error = sys::errnoRef();
  Worker::current()->endBatch();  // timers and descriptors come first, for which the others wait
  Fiber::YieldToReady();
  if (FiberThread::mine().cancel_anywhere && FiberThread::mine().isCancelled()) unwindCancelled();
  sys::errnoRef() = error;
  // What the return sets again is the thread's, and others may have changed it meanwhile.
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, nullptr, &at.uc_sigmask, sizeof(uint64_t));
  sys::signalStack(nullptr, &at.uc_stack);
}

}  // namespace

void preemptFiberThreads() {
  spareAll();
  struct sigaction action {};
  action.sa_sigaction = giveWay;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;  // the handler may suspend, and the next one comes in another fiber
  if (real::sigaction(signalNumber(), &action, nullptr) != 0) return;
  const uint64_t bit = uint64_t{1} << (signalNumber() - 1);
  g_never_blocked.store(bit, std::memory_order_relaxed);
  sys::call(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, nullptr, sizeof bit);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signalNumber();
  event._sigev_un._tid = static_cast<pid_t>(sys::call(SYS_gettid));
  timer_t timer;
  if (::timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0) return;
  const itimerspec every{{0, kIntervalNs}, {0, kIntervalNs}};
  ::timer_settime(timer, 0, &every, nullptr);
}

#else

void preemptFiberThreads() {}

#endif

}  // namespace sylar::detail
