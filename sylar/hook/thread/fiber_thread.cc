#include "sylar/hook/thread/fiber_thread.h"

#include "sylar/fiber.h"
#include "sylar/fiber_local.h"
#include "sylar/threads_are_fibers.h"

#ifdef SYLAR_THREAD_POINTER

#include <dlfcn.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "sylar/base/own_thread.h"
#include "sylar/base/sys.h"
#include "sylar/fiber/stack_watch.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/core/wait_loop.h"
#include "sylar/hook/lock/parking_lot.h"
#include "sylar/hook/thread/set_ids.h"
#include "sylar/sched/worker.h"
#include "sylar/scheduler.h"

extern "C" decltype(::pthread_create) __interceptor_pthread_create __attribute__((weak));  // a sanitizer's

namespace sylar::detail {

constinit OsMutex g_births;

namespace {

constinit real::Real<decltype(::pthread_create)> g_pthread_create("pthread_create", &__interceptor_pthread_create);

/// The fiber begins on it, and ends there when the thread has left.
constexpr size_t kFirstStackSize = size_t{16} << 10;
/// Below the frame from which a thread leaves its fiber, so that the kernel thread that follows can begin there.
constexpr size_t kBelowFrame = 4096;
constexpr size_t kLeaveStackSize = 4096;

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
  void* (*const function)(void*);
  void* const argument;
  std::atomic<uint32_t> stays{1};  ///< the kernel sets it to 0 when the kernel thread has left
  struct Handover* handover = nullptr;
  uint64_t signal_mask = 0;
  const char* name = nullptr;  ///< of the creator
};

/// Where the thread and its fiber stand while the other one runs. In the first frame of the thread.
struct Handover {
  Context thread;
  Context fiber;
  Stack stack;
  uintptr_t thread_pointer;
  int* id_address;  ///< what the kernel clears at the end of a kernel thread, for libc's joiners
  void* robust_list;
  size_t robust_size;
  pid_t id;
  char* below;           ///< free stack for the kernel thread that takes over
  bool refused = false;  ///< no fiber will run it, so it ends at once
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
bool learnThread(Handover& me) {
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
  constexpr uint32_t kUnknown = ~0u;  // RSEQ_CPU_ID_UNINITIALIZED
  constexpr uintptr_t kProcessor = 4;
  static const auto* const offset = static_cast<const ptrdiff_t*>(::dlsym(RTLD_DEFAULT, "__rseq_offset"));
  if (offset != nullptr) *reinterpret_cast<uint32_t*>(threadPointer() + static_cast<uintptr_t>(*offset) + kProcessor) = kUnknown;
}

/// Suspends the calling thread in `me.thread`, and ends the kernel thread. Returns when a fiber goes on.
SYLAR_SWITCHES void leaveToFiber(Handover& me, std::atomic<uint32_t>& stays) {
  alignas(16) char stack[kLeaveStackSize];
  me.below = static_cast<char*>(__builtin_frame_address(0)) - kBelowFrame - kLeaveStackSize;
  sys::call(SYS_set_tid_address, &stays);
  Context leaving;
  leaving.make<leaveKernelThread>({stack, sizeof stack});
  NothingKept nothing;
  Context::switchTo(me.thread, leaving, nothing.locals());
}

/// Gives the fiber back, which is told that the thread has left. Returns on the kernel thread that takes over.
SYLAR_SWITCHES void leaveToKernelThread(Handover& me) {
  me.below = static_cast<char*>(__builtin_frame_address(0)) - kBelowFrame;
  NothingKept nothing;
  becomeThread(ThreadFibers::current().ownThreadPointer());
  Context::switchTo(me.thread, me.fiber, nothing.locals());
}

/// Makes the calling kernel thread that of the thread, as far as libc can tell.
void endAsThread() {
  ThreadFibers::forgetThread();
  Worker::forgetThread();
  const uint64_t mask = keptSignalMask();
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
}

/// Lets the thread leave its fiber at the end of a scope, however that is left: pthread_exit and cancels unwind it. The child of a
/// fork has a kernel thread already.
class LeavesAtEnd {
 public:
  explicit LeavesAtEnd(Handover& handover) : m_handover(handover) {}
  ~LeavesAtEnd() {
    if (sys::inForkedChild()) return;
    leaveToKernelThread(m_handover);
    endAsThread();
  }
  LeavesAtEnd(const LeavesAtEnd&) = delete;
  LeavesAtEnd& operator=(const LeavesAtEnd&) = delete;

 private:
  Handover& m_handover;
};

/// The function of the thread, on its own stack.
void* begin(void* argument) {
  Birth& birth = *static_cast<Birth*>(argument);
  void* (*const function)(void*) = birth.function;
  void* const value = birth.argument;
  Handover handover;
  if (!learnThread(handover)) {  // it stays a thread
    const uint64_t mask = birth.signal_mask;
    sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
    birth.stays.store(0, std::memory_order_release);
    sys::call(SYS_futex, &birth.stays, FUTEX_WAKE, 1);
    return function(value);
  }
  birth.handover = &handover;
  keepSignalMask(birth.signal_mask);
  FiberThread::mine().libc_id = handover.id_address;
  std::memcpy(FiberThread::mine().name, birth.name, sizeof FiberThread::mine().name);
  int before;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);  // see isCancelled()
  FiberThread::mine().hears_cancel = true;
  leaveToFiber(handover, birth.stays);
  if (handover.refused) {
    endAsThread();
    return nullptr;
  }
  forgetProcessor();
  const LeavesAtEnd leaves(handover);
  raiseSent();
  return function(value);
}

/// Makes the robust mutexes that the thread has locked those of the calling kernel thread, so that the kernel releases them at its
/// end. Source: get_robust_list(2), the kernel's robust-futex-ABI.
void inheritRobustMutexes(Handover& thread) {
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
  Handover& thread = *static_cast<Handover*>(argument);
  inheritRobustMutexes(thread);
  sys::call(SYS_set_robust_list, thread.robust_list, thread.robust_size);
  *thread.id_address = thread.id;  // by which locks know the thread
  NothingKept nothing;
  Context beginning;
  Context::exitTo(beginning, thread.thread, nothing.locals());
}

/// The kernel threads that end threads. libc knows these by the threads' ids, so its signals do not reach them. Guarded by
/// g_births.
constinit std::array<pid_t, 64> g_ending{};

/// Returns a free entry of g_ending, or null.
pid_t* entryForEnd() SYLAR_REQUIRES(g_births) {
  const auto found = std::ranges::find_if(g_ending, [](pid_t id) { return id == 0 || !exists(id); });
  return found != g_ending.end() ? found : nullptr;
}

/// Makes a kernel thread for what is left of the thread. `thread` must not be used afterwards.
void endByKernelThread(Handover& thread) {
  constexpr int kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | CLONE_THREAD | CLONE_SETTLS |
                         CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;  // as libc has it
  char* const below = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(thread.below) & ~uintptr_t{15});
  const auto made = [&] {
    const SignalsBlocked blocked;
    const Lock lock(g_births);
    pid_t* const entry = entryForEnd();
    if (entry == nullptr) return false;
    const int id = ::clone(takeOver, below, kFlags, &thread, thread.id_address, thread.thread_pointer, thread.id_address);
    if (id != -1) *entry = id;
    return id != -1;
  };
  while (!made()) ::usleep(1000);  // there may be too many threads now; the fiber waits
}

SYLAR_SWITCHES void switchToThread(Handover& thread, FiberCore& me) {
  ThreadFibers& fibers = ThreadFibers::current();
  Worker& worker = *Worker::current();
  const Stack first = std::exchange(me.stack, thread.stack);
  NothingKept nothing;
  FiberThread::of(thread.thread_pointer).worker_pointer.store(fibers.ownThreadPointer(), std::memory_order_relaxed);
  becomeThread(thread.thread_pointer);
  fibers.adoptThreadPointer(me);
  worker.adoptThreadPointer();
  FiberThread::mine().worker.store(worker.threadId(), std::memory_order_release);
  if (me.isWatched()) stack_watch::hold(me.stack.base, me.stack.size);
  Context::switchTo(thread.fiber, thread.thread, nothing.locals());
  if (me.isWatched()) stack_watch::release(me.stack.base, me.stack.size);
  me.setOwnThreadPointer(false);
  me.stack = first;
}

/// The function of the fiber.
void runThread(Handover& thread, pthread_t id) {
  switchToThread(thread, *runningFiber());
  FiberLocals::endHere();
  FiberThread::of(id).worker_pointer.store(0, std::memory_order_relaxed);
  FiberThread::of(id).state.store(FiberThread::kLeft, std::memory_order_release);
  endByKernelThread(thread);
  ParkingLot::wakeAll(reinterpret_cast<void*>(id));
  if (FiberThread::count().fetch_sub(1, std::memory_order_acq_rel) == 1) ParkingLot::wakeAll(&FiberThread::count());
}

}  // namespace

namespace {

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

bool makesFiberThreads() {
  return g_threads_are_fibers.load(std::memory_order_relaxed) != 0 && !sys::detail::t_makes_own_thread && maySuspendHere() &&
         Scheduler::GetThis() != nullptr;
}

int createFiberThread(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*), void* argument) {
  Birth birth{.function = function, .argument = argument, .name = FiberThread::mine().name};
  Fiber::ptr fiber;
  Handover** const handover = &birth.handover;
  pthread_t id;
  try {
    struct Start {
      Handover* thread;
      pthread_t id;
    };
    const auto start = std::make_shared<Start>();
    fiber = std::make_shared<Fiber>([start] { runThread(*start->thread, start->id); }, kFirstStackSize);
    const SignalsBlocked blocked;
    const Lock birth_lasts(g_births);
    keepSignalMask(blocked.before());
    birth.signal_mask = maskFor(attributes, blocked.before());
    const int error = g_pthread_create(&id, attributes, begin, &birth);
    if (error != 0) return error;
    hearSetIdsAsWorker();
    while (const uint32_t stays = birth.stays.load(std::memory_order_acquire)) {
      sys::call(SYS_futex, &birth.stays, FUTEX_WAIT, stays, nullptr);  // not FUTEX_PRIVATE_FLAG, which the kernel's wake has not
    }
    *start = {*handover, id};
  } catch (const std::bad_alloc&) {
    return EAGAIN;
  }
  *thread = id;
  if (*handover == nullptr) return 0;  // it is a thread
  FiberThread::of(id).state.store(FiberThread::kRuns, std::memory_order_release);
  FiberThread::count().fetch_add(1, std::memory_order_relaxed);
  if (Scheduler::GetThis()->trySchedule(fiber)) return 0;
  FiberThread::of(id).state.store(FiberThread::kLeft, std::memory_order_release);
  ::pthread_detach(id);
  (*handover)->refused = true;
  endByKernelThread(**handover);
  FiberThread::count().fetch_sub(1, std::memory_order_acq_rel);
  return EAGAIN;
}

}  // namespace sylar::detail

namespace sylar {

ThreadsAreFibers::ThreadsAreFibers() { g_threads_are_fibers.fetch_add(1, std::memory_order_relaxed); }
ThreadsAreFibers::~ThreadsAreFibers() { g_threads_are_fibers.fetch_sub(1, std::memory_order_relaxed); }
bool ThreadsAreFibers::supported() { return true; }

}  // namespace sylar

#else

namespace sylar {

ThreadsAreFibers::ThreadsAreFibers() = default;
ThreadsAreFibers::~ThreadsAreFibers() = default;
bool ThreadsAreFibers::supported() { return false; }

}  // namespace sylar

#endif
