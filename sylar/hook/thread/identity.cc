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
#include <vector>

#include "sylar/base/log.h"
#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"
#include "sylar/fiber.h"
#include "sylar/fiber/fiber_refused.h"
#include "sylar/fiber/stack_watch.h"
#include "sylar/fiber_local.h"
#include "sylar/hook/core/sent_signals.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/thread/fiber_thread.h"
#include "sylar/hook/thread/left_thread.h"
#include "sylar/hook/thread/maker_calls.h"
#include "sylar/sched/auto_advance.h"
#include "sylar/sched/park.h"
#include "sylar/sched/worker.h"
#include "sylar/sync/event.h"
#include "sylar/thread.h"

namespace sylar::detail {

constinit std::atomic<size_t> g_lending{0};

namespace {

constexpr size_t kSpare = 8;
constexpr int64_t kSoonNs = 1'000'000;
constexpr size_t kUsualRoom = threadRoomFor(kDefaultStackSize);

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
  me.fiber.store(runningFiber()->fiber, std::memory_order_release);
}

/// Sets back what belongs to a task. From here on the thread is free, and nobody signals it.
void endTask() {
  FiberThread::mine().name[0] = '\0';
  ::uselocale(LC_GLOBAL_LOCALE);
  setMask(masksOfWorker());
  FiberThread::mine().state.store(FiberThread::kLeft, std::memory_order_release);
  FiberThread::mine().isLeft();
}

/// The function of the thread. It ends with it if a task unwinds it.
void* serve(LeftThread* thread, void* /*unused*/) {
  if (thread == nullptr) return nullptr;
  while (!thread->over) {
    beginTask();
    thread->isWhole(*thread->core) ? control(*thread->core->fiber).run() : thread->body(thread->argument);
    endTask();
    ThreadFibers::giveBack(*thread);
  }
  return nullptr;
}

/// The stacks of all.
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
  /// Takes back one on which there is no thread.
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
  constexpr size_t kUsualRecord = 64 * 1024;
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  const Stack stack = Stacks::all().take(room + (least_stack != nullptr ? least_stack(&attributes) : kUsualRecord));
  if (!stack) return EAGAIN;
  ::pthread_attr_setstack(&attributes, stack.base, Stacks::all().sizeFor(stack));
  static constexpr char kNoName[16]{};
  pthread_t id;
  LeftThread* thread = nullptr;
  const int error = makeLeftThread(&id, &thread, &attributes, {serve, nullptr, kNoName});
  ::pthread_attr_destroy(&attributes);
  if (error == 0 && thread == nullptr) ::pthread_join(id, nullptr);
  if (thread == nullptr) {
    Stacks::all().put(stack);
  } else {
    thread->room = room;
    thread->taken = stack;
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

/// The threads that end. Each has a kernel thread for that, which runs the destructors of its variables.
class Ending {
 public:
  bool any() const { return !m_all.empty(); }
  bool isFull() const { return m_all.size() == kMost; }
  /// Ends one that is over.
  void add(BorrowedThread& thread) {
    m_all.push_back({thread.thread_pointer, thread.taken});
    endByKernelThread(static_cast<LeftThread&>(thread));
  }
  /// Takes the stacks of those that have ended.
  void collect() {
    std::erase_if(m_all, [](const One& one) {
      const bool ended = ::pthread_tryjoin_np(one.id, nullptr) == 0;
      if (ended) Stacks::all().put(one.stack);
      return ended;
    });
  }

 private:
  static constexpr size_t kMost = 16;
  struct One {
    pthread_t id;
    Stack stack;
  };
  std::vector<One> m_all;
};

/// Makes the threads, and ends them, in a thread of its own that is there while schedulers lend some. A worker must not make any,
/// because a new thread may wait for a lock of the allocator that a fiber of the worker holds. Of the free ones it ends those that
/// nobody has needed for a while.
class Lender final : public ThreadLender {
 public:
  bool open() override;
  void close() override;
  void call() override { m_calls.call(); }
  void isRunElsewhere() override;
  void hear(uintptr_t thread_pointer) override { takeIfHere(thread_pointer); }
  BorrowedThread* wait(size_t size);
  void lookForUnused();

 private:
  using Wants = std::list<std::shared_ptr<WantedThread>>;

  void makeSpare();
  void run();
  bool step();
  bool end();
  Deadline nextLook();
  static BorrowedThread* makeFor(size_t room);
  std::shared_ptr<WantedThread> firstWanted();

  MakerCalls<> m_calls;
  OsMutex m_lock;
  Wants m_wanted SYLAR_GUARDED_BY(m_lock);
  Ending m_ending;      // the maker's, as what follows
  size_t m_unused = 0;  // so many of the free ones are to be ended
  std::atomic<int64_t> m_look_at{kNever};
  OsMutex m_life;
  bool m_tried SYLAR_GUARDED_BY(m_life) = false;
  bool m_can SYLAR_GUARDED_BY(m_life) = false;
  size_t m_users SYLAR_GUARDED_BY(m_life) = 0;
  std::unique_ptr<Thread> m_maker SYLAR_GUARDED_BY(m_life);
};

/// The first thread of the process tells whether there can be any. A sanitizer in the program would have to know their stacks.
bool Lender::open() {
  if (sys::inForkedChild()) return false;
  const Lock lock(m_life);
  if (!m_tried) {
    m_tried = true;
    BorrowedThread* const first = stack_watch::isOn() ? nullptr : makeFor(kUsualRoom);
    if (first == nullptr) log::warn("fibers cannot be threads here, so to libraries all fibers of a worker are one");
    if (first != nullptr) g_threads.put(*first);
    m_can = first != nullptr;
  }
  if (!m_can) return false;
  if (m_users == 0) {
    makeSpare();
    try {
      m_calls.begin();
      m_maker = std::make_unique<Thread>([this] { run(); }, "sylar_threads");
    } catch (const std::exception&) {
      return false;
    }
  }
  ++m_users;
  g_lending.store(m_users, std::memory_order_relaxed);
  return true;
}

/// The first fibers need not wait. A fiber makes none, for the reason for which there is a maker.
void Lender::makeSpare() {
  if (!onThreadStack()) return;
  while (g_threads.serve(kUsualRoom, kSpare, makeFor)) continue;
}

void Lender::close() {
  const Lock lock(m_life);
  g_lending.store(--m_users, std::memory_order_relaxed);
  if (m_users > 0) return;
  m_calls.end();
  m_maker->join();
  m_maker = nullptr;
}

void Lender::run() {
  constexpr uint64_t kAll = ~(uint64_t{1} << (32 - 1) | uint64_t{1} << (33 - 1));  // but libc's own
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &kAll, nullptr, sizeof kAll);
  Worker::dropTimerSlack();
  m_calls.run([this] { return step() || end(); }, [this] { return nextLook(); });
  while (end() || m_ending.isFull()) {
    m_ending.collect();
    if (m_ending.isFull()) sys::sleepFor(kSoonNs);
  }
}

/// Ends one thread. Returns false if there is none to be ended now.
bool Lender::end() {
  if (m_ending.isFull()) return false;
  BorrowedThread* one = g_threads.takeOver();
  if (one == nullptr && m_unused > 0) {
    --m_unused;
    one = g_threads.takeUnused();
    if (one != nullptr) one->over = true;
  }
  if (one != nullptr) m_ending.add(*one);
  return one != nullptr;
}

/// Returns when the maker is to look again, though nobody calls.
Deadline Lender::nextLook() {
  constexpr int64_t kUnusedForNs = 5'000'000'000;
  m_ending.collect();
  const int64_t now = steadyClock().nowNs();
  int64_t look_at = m_look_at.load(std::memory_order_relaxed);
  if (now >= look_at) m_unused = g_threads.unused();
  if (now >= look_at || look_at == kNever) {
    look_at = g_threads.count() > g_threads.kKept ? now + kUnusedForNs : kNever;
    m_look_at.store(look_at, std::memory_order_relaxed);
  }
  return Deadline::at(m_ending.any() || m_unused > 0 ? now + kSoonNs : look_at);
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
  return g_threads.serve(kUsualRoom, kSpare, makeFor);
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
  const auto wanted = std::make_shared<WantedThread>(threadRoomFor(size));
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

void Lender::lookForUnused() {
  m_look_at.store(0, std::memory_order_relaxed);
  call();
}

void Lender::isRunElsewhere() {
  FiberThread& me = FiberThread::mine();
  const Worker* const worker = Worker::current();
  me.worker.store(worker != nullptr ? worker->threadId() : 0, std::memory_order_release);
  me.worker_pointer.store(ThreadFibers::current().ownThreadPointer(), std::memory_order_relaxed);
  if (me.fiber.load(std::memory_order_relaxed) != nullptr) raiseSent();
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
  FiberThread::of(thread->thread_pointer).worker_pointer.store(0, std::memory_order_relaxed);
  FiberThread::of(thread->thread_pointer).state.store(FiberThread::kLeft, std::memory_order_release);
  FreeThreads::putOver(*thread);
}

void endUnusedThreads() { lender().lookForUnused(); }

namespace {
[[gnu::constructor]] void offer() { ThreadLender::set(&lender()); }
}  // namespace

}  // namespace sylar::detail

#endif
