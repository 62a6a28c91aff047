#include "sylar/hook/thread/identity.h"

#include "sylar/fiber/thread_fibers.h"

#ifdef SYLAR_THREAD_POINTER

#include <dlfcn.h>
#include <locale.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <new>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"
#include "sylar/fiber.h"
#include "sylar/fiber/fiber_refused.h"
#include "sylar/fiber_local.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/thread/left_thread.h"
#include "sylar/sched/auto_advance.h"
#include "sylar/sched/park.h"
#include "sylar/sched/worker.h"
#include "sylar/sync/event.h"
#include "sylar/thread.h"

namespace sylar::detail {

constinit std::atomic<size_t> g_lending{0};

namespace {

constexpr size_t kSpare = 8;

void setMask(uint64_t mask) {
  if (keptSignalMask() == mask) return;
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
  keepSignalMask(mask);
}
uint64_t masksOfWorker() { return keptSignalMaskOf(ThreadFibers::current().ownThreadPointer()); }

/// Drops the signals and cancels that came while the thread was free. They were meant for its last task.
void beginTask() {
  FiberThread& me = FiberThread::mine();
  me.cancel_asked = me.cancel_disabled = false;
  me.cancel_anywhere = false;
  me.sent.store(0, std::memory_order_relaxed);
  me.state.store(FiberThread::kRuns, std::memory_order_release);
  setMask(masksOfWorker());
}

/// Sets back what belongs to a task. From here on the thread is free, and nobody signals it.
void endTask() {
  FiberThread::mine().name[0] = '\0';
  ::uselocale(LC_GLOBAL_LOCALE);
  setMask(masksOfWorker());
  FiberThread::mine().state.store(FiberThread::kLeft, std::memory_order_release);
}

/// The function of the thread. It ends with it if a task unwinds it.
void* serve(LeftThread* thread, void* /*unused*/) {
  if (thread == nullptr) return nullptr;
  for (;;) {
    beginTask();
    thread->isWhole(*thread->core) ? control(*thread->core->fiber).run() : thread->body(thread->argument);
    endTask();
    ThreadFibers::giveBack(*thread);
  }
}

/// The stacks of all. Those of threads that have ended are not used again, because nobody is told when the kernel thread has left.
class Stacks {
 public:
  static Stacks& all() {
    static Stacks& s_all = *new Stacks;  // for as long as fibers run
    return s_all;
  }
  Stack take(size_t size) {
    const Lock lock(m_lock);
    return m_pool.take(size);
  }
  /// Takes back one on which no thread has begun.
  void put(Stack stack) {
    const Lock lock(m_lock);
    m_pool.put(stack);
  }
  /// Returns the size to give to libc. The top is then at the end of a page, less a colour, so that the record of the thread with
  /// its variables is on one page and the frames of a fiber that waits on another.
  size_t sizeFor(const Stack& stack) {
    constexpr uint32_t kColours = 8;
    constexpr uint32_t kColour = 64;  // a cache line
    const auto to_end = static_cast<size_t>(-reinterpret_cast<uintptr_t>(stack.top()) % 4096);
    return stack.size + to_end - m_colour.fetch_add(1, std::memory_order_relaxed) % kColours * kColour;
  }

 private:
  OsMutex m_lock;
  StackPool m_pool SYLAR_GUARDED_BY(m_lock);
  std::atomic<uint32_t> m_colour{0};
};

/// Makes one. Returns 0, with `made` null if its kernel thread could not leave, or an error.
int makeOne(BorrowedThread** made, size_t room) {
  // The record of the thread and the static thread_local variables of the program come out of the stack. Source: HotSpot.
  using LeastStack = size_t (*)(const pthread_attr_t*);
  static const auto least_stack = reinterpret_cast<LeastStack>(::dlsym(RTLD_DEFAULT, "__pthread_get_minstack"));
  constexpr size_t kUsualRoom = 64 * 1024;
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  const Stack stack = Stacks::all().take(room + (least_stack != nullptr ? least_stack(&attributes) : kUsualRoom));
  if (!stack) return EAGAIN;
  ::pthread_attr_setstack(&attributes, stack.base, Stacks::all().sizeFor(stack));
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  static constexpr char kNoName[16]{};
  pthread_t id;
  LeftThread* thread = nullptr;
  const int error = makeLeftThread(&id, &thread, &attributes, {serve, nullptr, kNoName});
  ::pthread_attr_destroy(&attributes);
  if (error != 0) Stacks::all().put(stack);
  if (thread != nullptr) {
    thread->room = room;
    const size_t below = static_cast<size_t>(thread->context.lowest() - stack.base) & ~size_t{4095};
    (void)sys::adviseMemory(stack.base, below, MADV_DONTNEED);  // what its kernel thread has touched
  }
  *made = thread;
  return error;
}

/// A fiber that waits for a thread, for a call. Both sides keep it, because the fiber may be abandoned.
struct WantedThread {
  explicit WantedThread(size_t its_room) : room(its_room) {}

  const size_t room;
  BorrowedThread* thread = nullptr;
  Event decided;
  ClockHold hold{waitClock()};
};

/// Makes the threads, in a thread of its own that is there while schedulers lend some. A worker must not make any, because a new
/// thread may wait for a lock of the allocator that a fiber of the worker holds.
class Lender final : public ThreadLender {
 public:
  bool open() override;
  void close() override;
  void call() override;
  void isRunElsewhere() override;
  BorrowedThread* wait(size_t size);

 private:
  using Wants = std::list<std::shared_ptr<WantedThread>>;

  void run();
  bool step();
  static BorrowedThread* makeFor(size_t room);
  std::shared_ptr<WantedThread> firstWanted();

  std::atomic<uint32_t> m_calls{0};  // the maker sleeps on it
  std::atomic<bool> m_ends{false};
  OsMutex m_lock;
  Wants m_wanted SYLAR_GUARDED_BY(m_lock);
  OsMutex m_life;
  bool m_tried SYLAR_GUARDED_BY(m_life) = false;
  bool m_can SYLAR_GUARDED_BY(m_life) = false;
  size_t m_users SYLAR_GUARDED_BY(m_life) = 0;
  std::unique_ptr<Thread> m_maker SYLAR_GUARDED_BY(m_life);
};

/// The first thread of the process tells whether there can be any.
bool Lender::open() {
  const Lock lock(m_life);
  if (!m_tried) {
    m_tried = true;
    BorrowedThread* const first = makeFor(ThreadLists::roomFor(kDefaultStackSize));
    if (first == nullptr) log::warn("fibers cannot be threads here, so to libraries all fibers of a worker are one");
    if (first != nullptr) FreeThreads::putForAll(*first);
    m_can = first != nullptr;
  }
  if (!m_can) return false;
  if (m_users == 0) {
    try {
      m_ends.store(false, std::memory_order_relaxed);
      m_maker = std::make_unique<Thread>([this] { run(); }, "sylar_threads");
    } catch (const std::exception&) {
      return false;
    }
  }
  ++m_users;
  g_lending.store(m_users, std::memory_order_relaxed);
  return true;
}

void Lender::close() {
  const Lock lock(m_life);
  g_lending.store(--m_users, std::memory_order_relaxed);
  if (m_users > 0) return;
  m_ends.store(true, std::memory_order_relaxed);
  call();
  m_maker->join();
  m_maker = nullptr;
}

void Lender::call() {
  m_calls.fetch_add(1, std::memory_order_release);
  sys::futexWake(m_calls, 1);
}

void Lender::run() {
  constexpr uint64_t kAll = ~(uint64_t{1} << (32 - 1) | uint64_t{1} << (33 - 1));  // but libc's own
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &kAll, nullptr, sizeof kAll);
  Worker::dropTimerSlack();
  for (;;) {
    const uint32_t calls = m_calls.load(std::memory_order_acquire);
    if (m_ends.load(std::memory_order_relaxed)) return;
    if (!step()) sys::futexWait(m_calls, calls, kNever);
  }
}

std::shared_ptr<WantedThread> Lender::firstWanted() {
  Wants first;
  {
    const Lock lock(m_lock);
    if (!m_wanted.empty()) first.splice(first.begin(), m_wanted, m_wanted.begin());
  }
  return first.empty() ? nullptr : first.front();
}

/// Does one thing. Returns false if there is nothing to do.
bool Lender::step() {
  if (const std::shared_ptr<WantedThread> wanted = firstWanted()) {
    wanted->thread = makeFor(wanted->room);
    wanted->decided.set();
    wanted->hold = {};  // behind the wake-up, so that no virtual time passes in between
    return true;
  }
  ThreadAwaiter::Next next = ThreadAwaiter::next(ThreadLists::roomFor(kDefaultStackSize), kSpare);
  if (next.room > 0) {
    if (BorrowedThread* const made = makeFor(next.room)) {
      FreeThreads::putForAll(*made);
      return true;
    }
    next = ThreadAwaiter::refuse(next.room);
  }
  if (next.waiter == nullptr) return false;
  ThreadAwaiter::letGo(std::move(next));
  return true;
}

/// Returns null if there can be none now.
BorrowedThread* Lender::makeFor(size_t room) {
  BorrowedThread* made = nullptr;
  if (const int error = makeOne(&made, room)) noteRefused("pthread_create for fibers", error);
  return made;
}

/// For a fiber that borrows one for a call. Throws std::bad_alloc. May suspend: yes.
BorrowedThread* Lender::wait(size_t size) {
  const this_fiber::CancelShield shield;
  const auto wanted = std::make_shared<WantedThread>(ThreadLists::roomFor(size));
  Wants mine{wanted};  // made without the lock, because an allocator may suspend the fiber
  {
    const Lock lock(m_lock);
    m_wanted.splice(m_wanted.end(), mine);
  }
  call();
  while (!wanted->decided.wait()) continue;
  if (wanted->thread == nullptr) throw std::bad_alloc();
  return wanted->thread;
}

void Lender::isRunElsewhere() {
  FiberThread& me = FiberThread::mine();
  const Worker* const worker = Worker::current();
  me.worker.store(worker != nullptr ? worker->threadId() : 0, std::memory_order_release);
  me.worker_pointer.store(ThreadFibers::current().ownThreadPointer(), std::memory_order_relaxed);
}

Lender& lender() {
  static Lender& s_lender = *new Lender;  // for as long as fibers run
  return s_lender;
}

}  // namespace

void callAsBorrowedThread(void (*body)(void*), void* argument) {
  FiberCore& me = *runningFiber();
  const FiberHost* const host = ThreadFibers::current().host();
  if (me.ownsThreadPointer() || host == nullptr || !host->lends_threads || sys::inForkedChild()) return body(argument);
  BorrowedThread* thread = ThreadFibers::current().takeThread(control(*me.fiber).stackSize());
  if (thread == nullptr) thread = lender().wait(control(*me.fiber).stackSize());
  thread->body = body;
  thread->argument = argument;
  ThreadFibers::current().callOn(*thread, me, true);
  if (!thread->over) return ThreadFibers::current().putThread(*thread);
  auto& ended = static_cast<LeftThread&>(*thread);
  FiberThread::of(ended.thread_pointer).worker_pointer.store(0, std::memory_order_relaxed);
  FiberThread::of(ended.thread_pointer).state.store(FiberThread::kLeft, std::memory_order_release);
  ended.left = 1;
  endByKernelThread(ended);
}

namespace {
[[gnu::constructor]] void offer() { FiberHost::lender.store(&lender(), std::memory_order_relaxed); }
}  // namespace

}  // namespace sylar::detail

#endif
