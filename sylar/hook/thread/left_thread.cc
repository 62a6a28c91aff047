#include "sylar/hook/thread/left_thread.h"

#ifdef SYLAR_THREAD_POINTER

#include <dlfcn.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "sylar/base/sys.h"
#include "sylar/clock.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/fiber_local.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/thread/set_ids.h"
#include "sylar/sched/worker.h"

extern "C" decltype(::pthread_create) __interceptor_pthread_create __attribute__((weak));  // a sanitizer's

namespace sylar::detail {

constinit OsMutex g_births;

namespace {

constinit real::Real<decltype(::pthread_create)> g_pthread_create("pthread_create", &__interceptor_pthread_create);

/// Blocks the signals of the calling kernel thread for a scope. A kernel thread that is made there has them blocked as well. libc's
/// own two stay, since by these it cancels a thread, and changes the user and groups of each. Source: nptl(7).
class SignalsBlocked {
 public:
  SignalsBlocked() { sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &kAll, &m_before, sizeof kAll); }
  ~SignalsBlocked() { sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &m_before, nullptr, sizeof m_before); }
  uint64_t before() const { return m_before; }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  static constexpr uint64_t kAll = ~(uint64_t{1} << (32 - 1) | uint64_t{1} << (33 - 1));
  uint64_t m_before;
};

/// Stands in the creator's frame. It is over when the kernel thread has left.
struct Birth {
  ThreadStart start;
  uint64_t signal_mask;
  std::atomic<uint32_t> stays{1};  ///< the kernel sets it to 0 when the kernel thread has left
  alignas(16) char stack[1024]{};  ///< on which the kernel thread leaves
  LeftThread* thread = nullptr;
};

/// What a switch keeps for a thread (errno, exceptions) is in the thread's own memory, so there is nothing to be exchanged.
struct NothingKept {
  int error = 0;
  ThreadLocals::Exceptions exceptions{};
  ThreadLocals locals() { return {&error, &exceptions}; }
};

[[noreturn]] void leaveKernelThread() {
  for (;;) sys::call(SYS_exit, 0);
}

/// Returns an id that the kernel gives to no thread (PID_MAX_LIMIT), and that fits where locks note their owner (FUTEX_TID_MASK).
/// It begins anywhere, because processes share some locks. Source: pid_max in proc(5), the kernel's robust-futex-ABI.
pid_t newId() {
  constexpr uint32_t kFirst = uint32_t{1} << 22;
  constexpr uint32_t kEnd = uint32_t{1} << 30;
  static std::atomic<uint32_t> s_next = [] {
    uint32_t random = 0;
    sys::call(SYS_getrandom, &random, sizeof random, 0);
    return random;
  }();
  return static_cast<pid_t>(kFirst + s_next.fetch_add(1, std::memory_order_relaxed) % (kEnd - kFirst));
}

/// Notes what the kernel and libc have agreed on for the calling thread. Returns false if the kernel does not tell.
bool learnThread(LeftThread& me) {
  if (sys::call(SYS_prctl, PR_GET_TID_ADDRESS, &me.id_address) != 0 || me.id_address == nullptr) return false;
  if (*me.id_address != sys::threadId()) return false;
  if (sys::call(SYS_get_robust_list, 0, &me.robust_list, &me.robust_size) != 0) return false;
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return false;
  void* base;
  size_t size;
  ::pthread_attr_getstack(&attributes, &base, &size);
  ::pthread_attr_destroy(&attributes);
  me.id = newId();  // the kernel may give that of the kernel thread to another thread
  *me.id_address = me.id;
  sys::detail::t_thread_id = me.id;
  me.stack = stackBelow(static_cast<char*>(base) + size, size);
  me.thread_pointer = threadPointer();
  return true;
}

/// Says that the calling thread does not know its processor, which the kernel has told the kernel thread that has left. Source:
/// rseq(2).
void forgetProcessor() {
  constexpr uint32_t kUnknown = ~1u;  // RSEQ_CPU_ID_REGISTRATION_FAILED: nobody will register it
  constexpr uintptr_t kProcessor = 4;
  static const auto* const offset = static_cast<const ptrdiff_t*>(::dlsym(RTLD_DEFAULT, "__rseq_offset"));
  if (offset != nullptr) *reinterpret_cast<uint32_t*>(threadPointer() + static_cast<uintptr_t>(*offset) + kProcessor) = kUnknown;
}

/// Suspends the calling thread in `me.context`, and ends the kernel thread. Returns when a fiber goes on.
SYLAR_SWITCHES void leaveToFiber(LeftThread& me, Birth& birth) {
  sys::call(SYS_set_tid_address, &birth.stays);
  Context leaving;
  leaving.make<leaveKernelThread>({birth.stack, sizeof birth.stack});
  NothingKept nothing;
  Context::switchTo(me.context, leaving, nothing.locals());
}

/// Gives the fiber back for good, or ends it if it began as this thread. Returns on the kernel thread that takes over.
[[gnu::noinline]] void leaveToKernelThread(LeftThread& me) {
  me.over = true;
  FiberThread::mine().isLeft();
  if (me.isWhole(*me.core)) {
    FiberLocals::endHere();
    FiberThread::mine().state.store(FiberThread::kLeft, std::memory_order_release);
  }
  ThreadFibers::giveBack(me);
}

/// Makes the calling kernel thread that of the thread, as far as libc can tell.
void endAsThread() {
  ThreadFibers::forgetThread();
  Worker::forgetThread();
  const uint64_t mask = keptSignalMask();
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
}

/// Lets the thread leave its fiber at the end of a scope, however that is left: pthread_exit and cancels unwind it. The child of a
/// fork has a kernel thread already, and so has one that was over while it was free.
class LeavesAtEnd {
 public:
  explicit LeavesAtEnd(LeftThread& handover) : m_thread(handover) {}
  ~LeavesAtEnd() {
    if (sys::inForkedChild()) return;
    if (!m_thread.over) leaveToKernelThread(m_thread);
    endAsThread();
  }
  LeavesAtEnd(const LeavesAtEnd&) = delete;
  LeavesAtEnd& operator=(const LeavesAtEnd&) = delete;

 private:
  LeftThread& m_thread;
};

/// The function of the thread, on its own stack.
void* begin(void* argument) {
  Birth& birth = *static_cast<Birth*>(argument);
  const ThreadStart start = birth.start;
  LeftThread thread;
  if (!learnThread(thread)) {  // it stays a thread
    const uint64_t mask = birth.signal_mask;
    sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
    birth.stays.store(0, std::memory_order_release);
    sys::call(SYS_futex, &birth.stays, FUTEX_WAKE, 1);
    return start.function(nullptr, start.argument);
  }
  birth.thread = &thread;
  keepSignalMask(birth.signal_mask);
  FiberThread::mine().libc_id = thread.id_address;
  std::memcpy(FiberThread::mine().name, start.name, sizeof FiberThread::mine().name);
  int before;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);  // see isCancelled()
  FiberThread::mine().hears_cancel = true;
  leaveToFiber(thread, birth);
  if (thread.over) {
    endAsThread();
    return nullptr;
  }
  ThreadFibers::arriveOn(thread);
  forgetProcessor();
  const LeavesAtEnd leaves(thread);
  return start.function(&thread, start.argument);
}

/// Makes the robust mutexes that the thread has locked those of the calling kernel thread, so that the kernel releases them at its
/// end. Source: get_robust_list(2), the kernel's robust-futex-ABI.
void inheritRobustMutexes(LeftThread& thread) {
  constexpr uint32_t kIdBits = FUTEX_TID_MASK;
  constexpr int kMost = 2048;  // the kernel goes no further either
  auto* const head = static_cast<robust_list_head*>(thread.robust_list);
  const auto own = static_cast<uint32_t>(sys::call(SYS_gettid));
  const auto addressOf = [](const robust_list* entry) { return reinterpret_cast<uintptr_t>(entry) & ~uintptr_t{1}; };
  uintptr_t entry = addressOf(head->list.next);
  for (int i = 0; i < kMost && entry != reinterpret_cast<uintptr_t>(&head->list); ++i) {
    const std::atomic_ref word(*reinterpret_cast<uint32_t*>(entry + static_cast<uintptr_t>(head->futex_offset)));
    uint32_t value = word.load();
    while ((value & kIdBits) == static_cast<uint32_t>(thread.id) &&
           !word.compare_exchange_weak(value, (value & ~kIdBits) | own)) {
    }
    entry = addressOf(reinterpret_cast<robust_list*>(entry)->next);
  }
}

/// The first function of the kernel thread that ends the thread. It has libc's record and the thread pointer from the beginning.
SYLAR_SWITCHES int takeOver(void* argument) {
  LeftThread& thread = *static_cast<LeftThread*>(argument);
  inheritRobustMutexes(thread);
  sys::call(SYS_set_robust_list, thread.robust_list, thread.robust_size);
  *thread.id_address = thread.id;  // by which locks know the thread
  NothingKept nothing;
  Context beginning;
  Context::exitTo(beginning, thread.context, nothing.locals());
}

/// The kernel threads that end threads. libc knows these by the threads' ids, so its signals do not reach them. Guarded by
/// g_births.
constinit std::array<pid_t, 64> g_ending{};

/// Returns a free entry of g_ending, or null.
pid_t* entryForEnd() SYLAR_REQUIRES(g_births) {
  const auto found = std::ranges::find_if(g_ending, [](pid_t id) { return id == 0 || !exists(id); });
  return found != g_ending.end() ? found : nullptr;
}

/// Returns the mask with which a thread begins.
uint64_t maskFor(const pthread_attr_t* attributes, uint64_t creators) {
  sigset_t set;
  if (attributes == nullptr || ::pthread_attr_getsigmask_np(attributes, &set) != 0) return creators;
  uint64_t mask;
  std::memcpy(&mask, &set, sizeof mask);
  return mask;
}

}  // namespace

std::span<const pid_t> endingThreads() { return g_ending; }
bool exists(pid_t kernel_thread) { return sys::call(SYS_tgkill, sys::call(SYS_getpid), kernel_thread, 0) == 0; }

int makeLeftThread(pthread_t* id, LeftThread** thread, const pthread_attr_t* attributes, const ThreadStart& start) {
  const SignalsBlocked blocked;
  const Lock birth_lasts(g_births);
  keepSignalMask(blocked.before());
  Birth birth{.start = start, .signal_mask = maskFor(attributes, blocked.before())};
  if (const int error = g_pthread_create(id, attributes, begin, &birth)) return error;
  hearSetIdsAsWorker();
  while (const uint32_t stays = birth.stays.load(std::memory_order_acquire)) {
    sys::call(SYS_futex, &birth.stays, FUTEX_WAIT, stays, nullptr);  // not FUTEX_PRIVATE_FLAG, which the kernel's wake has not
  }
  *thread = birth.thread;
  return 0;
}

void endByKernelThread(LeftThread& thread) {
  constexpr int kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | CLONE_THREAD | CLONE_SETTLS |
                         CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;  // as libc has it
  const auto below = reinterpret_cast<uintptr_t>(thread.context.lowest()) & ~uintptr_t{15};
  const auto made = [&] {
    const SignalsBlocked blocked;
    const Lock lock(g_births);
    pid_t* const entry = entryForEnd();
    if (entry == nullptr) return false;
    const int id = ::clone(takeOver, reinterpret_cast<char*>(below), kFlags, &thread, thread.id_address, thread.thread_pointer,
                           thread.id_address);
    if (id != -1) *entry = id;
    return id != -1;
  };
  while (!made()) ::usleep(1000);  // there may be too many threads now; the fiber waits
}

}  // namespace sylar::detail

#endif
