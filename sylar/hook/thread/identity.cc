#include "sylar/hook/thread/identity.h"

#include "sylar/fiber/thread_fibers.h"

#ifdef SYLAR_THREAD_POINTER

#include <dlfcn.h>
#include <locale.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"
#include "sylar/fiber.h"
#include "sylar/fiber_local.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/thread/left_thread.h"
#include "sylar/mutex.h"
#include "sylar/sync/blocking_pool.h"

namespace sylar::detail {
namespace {

constexpr size_t kKeptByWorker = 64;
constexpr size_t kMadeAtOnce = 4;

struct Identity {
  void (*body)(void*) = nullptr;
  void* argument = nullptr;
  uint64_t mask = 0;  ///< of signals, of the borrower's worker
  LeftThread* thread = nullptr;
  pthread_t id{};
  Identity* next = nullptr;
};

constinit std::atomic<bool> g_cannot{false};  // libc's threads cannot be run by fibers here

void setMask(uint64_t mask) {
  if (keptSignalMask() == mask) return;
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
  keepSignalMask(mask);
}

/// Drops the signals and cancels that came while the thread was free. They were meant for its last task.
void beginTask(uint64_t mask) {
  FiberThread& me = FiberThread::mine();
  me.cancel_asked = me.cancel_disabled = false;
  me.cancel_anywhere = false;
  me.sent.store(0, std::memory_order_relaxed);
  me.state.store(FiberThread::kRuns, std::memory_order_release);
  setMask(mask);
}

/// Sets back what belongs to a task. From here on the thread is free, and nobody signals it.
void endTask(uint64_t mask) {
  FiberThread::mine().name[0] = '\0';
  ::uselocale(LC_GLOBAL_LOCALE);
  setMask(mask);
  FiberThread::mine().state.store(FiberThread::kLeft, std::memory_order_release);
}

/// The function of the thread. It ends with it if `body` unwinds it.
void* serve(void* argument) {
  if (FiberThread::mine().libc_id == nullptr) return nullptr;  // its kernel thread could not leave
  Identity& me = *static_cast<Identity*>(argument);
  for (;;) {
    beginTask(me.mask);
    me.body(me.argument);
    endTask(me.mask);
    giveFiberBack(*me.thread);
  }
}

/// The free ones of a worker's thread, the one that was given back last in front, and those of all threads behind them.
class Free {
 public:
  constexpr Free() = default;
  ~Free() {
    while (m_first != nullptr) putForAll(*std::exchange(m_first, m_first->next));
  }

  /// Returns one with a stack of at least `size` bytes, or null.
  Identity* take(size_t size) {
    if (Identity* const mine = takeFrom(&m_first, size)) {
      --m_count;
      return mine;
    }
    if (!s_any.load(std::memory_order_relaxed)) return nullptr;
    const Lock lock(s_lock);
    Identity* const one = takeFrom(&s_first, size);
    s_any.store(s_first != nullptr, std::memory_order_relaxed);
    return one;
  }
  void put(Identity& one) {
    if (m_count == kKeptByWorker) return putForAll(one);
    one.next = m_first;
    m_first = &one;
    ++m_count;
  }

 private:
  static Identity* takeFrom(Identity** at, size_t size) {
    while (*at != nullptr && (*at)->thread->stack.size < size) at = &(*at)->next;
    return *at != nullptr ? std::exchange(*at, (*at)->next) : nullptr;
  }
  static void putForAll(Identity& one) {
    const Lock lock(s_lock);
    one.next = std::exchange(s_first, &one);
    s_any.store(true, std::memory_order_relaxed);
  }

  static constinit OsMutex s_lock;
  static constinit Identity* s_first SYLAR_GUARDED_BY(s_lock);
  static constinit std::atomic<bool> s_any;  // whether it is worth to lock

  Identity* m_first = nullptr;
  size_t m_count = 0;
};

constinit OsMutex Free::s_lock;
constinit Identity* Free::s_first = nullptr;
constinit std::atomic<bool> Free::s_any{false};
thread_local Free t_free;  // the worker's: nobody who has borrowed a thread asks for it

/// Makes one. Returns 0, with `thread` null if its kernel thread could not leave, or an error.
int make(Identity& made, size_t stack_size) {
  // The record of the thread and the static thread_local variables of the program come out of the stack. Source: HotSpot.
  using LeastStack = size_t (*)(const pthread_attr_t*);
  static const auto least_stack = reinterpret_cast<LeastStack>(::dlsym(RTLD_DEFAULT, "__pthread_get_minstack"));
  constexpr size_t kUsualRoom = 64 * 1024;
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  const size_t size = stack_size + (least_stack != nullptr ? least_stack(&attributes) : kUsualRoom);
  ::pthread_attr_setstacksize(&attributes, (size + 4095) & ~size_t{4095});
  ::pthread_attr_setguardsize(&attributes, kLeastGuardSize);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  static constexpr char kNoName[16]{};
  const int error = makeLeftThread(&made.id, &made.thread, &attributes, {serve, &made, kNoName});
  ::pthread_attr_destroy(&attributes);
  return error;
}

// Never inlined: the fiber may have changed its thread in between.
[[gnu::noinline]] Identity* takeFree(size_t size) { return t_free.take(size); }
[[gnu::noinline]] void putFree(Identity& one) { t_free.put(one); }

/// Those who make one take turns.
Semaphore& turns() {
  static Semaphore& s_turns = *new Semaphore(kMadeAtOnce);  // for as long as fibers run
  return s_turns;
}

/// Makes one on a helper thread, because the new thread may wait for a lock of the allocator, which a fiber of this worker may
/// hold. Returns null if libc's threads cannot be run by fibers here. Throws std::bad_alloc if it cannot be made now. May suspend:
/// yes.
Identity* makeBeside(size_t stack_size) {
  const this_fiber::CancelShield shield;  // the function of a fiber that was cancelled runs, and is told then
  (void)turns().wait();
  if (Identity* const given_back = takeFree(stack_size)) {
    turns().notify();
    return given_back;
  }
  auto made = std::make_unique<Identity>();
  int error = EAGAIN;
  const auto make_it = [&] {
    error = make(*made, stack_size);
    turns().notify();  // here, because the fiber may have been abandoned
  };
  while (BlockingPool::process().run(make_it) != 0) ::usleep(1000);  // it has too much to do
  if (error != 0 && error != EINVAL) throw std::bad_alloc();
  if (error == 0 && made->thread != nullptr) return made.release();
  if (!g_cannot.exchange(true)) {
    log::warn("fibers cannot be threads here, so to libraries all fibers of a worker are one");
  }
  return nullptr;
}

/// Ends one that its borrower has left by pthread_exit.
void end(Identity& identity) {
  FiberLocals::endHere();
  FiberThread& thread = FiberThread::of(identity.id);
  thread.worker_pointer.store(0, std::memory_order_relaxed);
  thread.state.store(FiberThread::kLeft, std::memory_order_release);
  endByKernelThread(*identity.thread);
  delete &identity;
}

}  // namespace

void callAsBorrowedThread(void (*body)(void*), void* argument) {
  FiberCore& me = *runningFiber();
  SYLAR_DCHECK(!me.ownsThreadPointer());
  if (g_cannot.load(std::memory_order_relaxed)) return body(argument);
  Identity* identity = takeFree(me.stack.size);
  if (identity == nullptr) identity = makeBeside(me.stack.size);
  if (identity == nullptr) return body(argument);
  identity->body = body;
  identity->argument = argument;
  identity->mask = keptSignalMask();
  runAsThread(*identity->thread, me);
  identity->thread->over ? end(*identity) : putFree(*identity);
}

namespace {
[[gnu::constructor]] void offer() { FiberHost::borrow_thread.store(&callAsBorrowedThread, std::memory_order_relaxed); }
}  // namespace

}  // namespace sylar::detail

#endif
