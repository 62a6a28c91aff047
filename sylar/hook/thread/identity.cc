#include "sylar/hook/thread/identity.h"

#include "sylar/fiber/thread_fibers.h"

#ifdef SYLAR_THREAD_POINTER

#include <locale.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <memory>
#include <new>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/thread/left_thread.h"
#include "sylar/mutex.h"
#include "sylar/sync/blocking_pool.h"

namespace sylar::detail {
namespace {

/// libc's record, its static thread_local variables and the library's share the stack with the fiber's frames.
constexpr size_t kRoomForThread = 32 * 1024;
constexpr size_t kKeptByWorker = 64;

struct Identity {
  void (*body)(void*) = nullptr;
  void* argument = nullptr;
  LeftThread* thread = nullptr;
  Identity* next = nullptr;
};

constinit std::atomic<bool> g_cannot{false};  // libc's threads cannot be run by fibers here

/// Sets back what belongs to a task, for the next one.
void forgetTask(uint64_t mask) {
  FiberThread& me = FiberThread::mine();
  me.cancel_asked = me.cancel_disabled = false;
  me.cancel_anywhere = false;
  me.sent.store(0, std::memory_order_relaxed);
  me.name[0] = '\0';
  ::uselocale(LC_GLOBAL_LOCALE);
  if (keptSignalMask() == mask) return;
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
  keepSignalMask(mask);
}

/// The function of the thread. It ends with it if `body` unwinds it.
void* serve(void* argument) {
  if (FiberThread::mine().libc_id == nullptr) return nullptr;  // its kernel thread could not leave
  Identity& me = *static_cast<Identity*>(argument);
  const uint64_t mask = keptSignalMask();
  for (;;) {
    me.body(me.argument);
    forgetTask(mask);
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
    for (Identity** at = &m_first; *at != nullptr; at = &(*at)->next) {
      if ((*at)->thread->stack.size < size) continue;
      --m_count;
      return std::exchange(*at, (*at)->next);
    }
    return takeOfAll(size);
  }
  void put(Identity& one) {
    if (m_count == kKeptByWorker) return putForAll(one);
    one.next = m_first;
    m_first = &one;
    ++m_count;
  }

 private:
  static Identity* takeOfAll(size_t size) {
    if (s_first.load(std::memory_order_relaxed) == nullptr) return nullptr;
    const Lock lock(s_lock);
    Identity* const one = s_first.load(std::memory_order_relaxed);
    if (one == nullptr || one->thread->stack.size < size) return nullptr;
    s_first.store(one->next, std::memory_order_relaxed);
    return one;
  }
  static void putForAll(Identity& one) {
    const Lock lock(s_lock);
    one.next = s_first.load(std::memory_order_relaxed);
    s_first.store(&one, std::memory_order_relaxed);
  }

  static constinit OsMutex s_lock;
  static constinit std::atomic<Identity*> s_first;

  Identity* m_first = nullptr;
  size_t m_count = 0;
};

constinit OsMutex Free::s_lock;
constinit std::atomic<Identity*> Free::s_first{nullptr};
thread_local Free t_free;  // the worker's: nobody who has borrowed a thread asks for it

/// Makes one, with a mask of signals. Returns 0, with `thread` null if libc's threads cannot be run by fibers here, or an error.
int make(Identity& made, size_t stack_size, const sigset_t& mask) {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setsigmask_np(&attributes, &mask);
  const size_t size = std::max<size_t>(stack_size, PTHREAD_STACK_MIN) + kRoomForThread;
  ::pthread_attr_setstacksize(&attributes, (size + 4095) & ~size_t{4095});
  ::pthread_attr_setguardsize(&attributes, kLeastGuardSize);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  static constexpr char kNoName[16]{};
  pthread_t id;
  const int error = makeLeftThread(&id, &made.thread, &attributes, {serve, &made, kNoName});
  ::pthread_attr_destroy(&attributes);
  if (error == 0 && made.thread != nullptr) FiberThread::of(id).state.store(FiberThread::kRuns, std::memory_order_release);
  return error;
}

// Never inlined: the fiber may have changed its thread in between.
[[gnu::noinline]] Identity* takeFree(size_t size) { return t_free.take(size); }
[[gnu::noinline]] void putFree(Identity& one) { t_free.put(one); }

/// How many are made at a time. The others wait, for one that is made or given back.
class Makers {
 public:
  Makers() { (void)turns().wait(); }
  ~Makers() { turns().notify(); }
  Makers(const Makers&) = delete;
  Makers& operator=(const Makers&) = delete;

 private:
  static Semaphore& turns() {
    constexpr size_t kAtOnce = 4;
    static Semaphore& s_turns = *new Semaphore(kAtOnce);  // for as long as fibers run
    return s_turns;
  }
  const this_fiber::CancelShield m_shield;  // the function of a fiber that was cancelled runs, and is told then
};

/// Makes one on a helper thread, because the new thread may wait for a lock of the allocator, which a fiber of this worker may
/// hold. Returns null if libc's threads cannot be run by fibers here. Throws std::bad_alloc if it cannot be made now. May suspend:
/// yes.
Identity* makeBeside(size_t stack_size) {
  const Makers turn;
  if (Identity* const given_back = takeFree(stack_size)) return given_back;
  auto made = std::make_unique<Identity>();
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  int error = EAGAIN;
  const int refused = BlockingPool::process().run([&] { error = make(*made, stack_size, mask); });
  if (refused != 0 || error != 0) throw std::bad_alloc();
  if (made->thread != nullptr) return made.release();
  if (!g_cannot.exchange(true)) {
    log::warn("fibers cannot be threads here, so to libraries all fibers of a worker are one");
  }
  return nullptr;
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
  runAsThread(*identity->thread, me);
  if (!identity->thread->over) return putFree(*identity);
  endByKernelThread(*identity->thread);
  delete identity;
}

namespace {
[[gnu::constructor]] void offer() { FiberHost::borrow_thread.store(&callAsBorrowedThread, std::memory_order_relaxed); }
}  // namespace

}  // namespace sylar::detail

#endif
