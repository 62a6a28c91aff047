#include "sylar/hook/thread/identity.h"

#include "sylar/fiber/thread_fibers.h"

#ifdef SYLAR_THREAD_POINTER

#include <dlfcn.h>
#include <locale.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
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
#include "sylar/sched/worker.h"
#include "sylar/sync/blocking_pool.h"

namespace sylar::detail {
namespace {

constexpr size_t kMadeAtOnce = 16;
constexpr size_t kMakers = 2;

constinit std::atomic<bool> g_cannot{false};  // libc's threads cannot be run by fibers here

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
struct Stacks {
  OsMutex lock;
  StackPool pool SYLAR_GUARDED_BY(lock);
  uint32_t colour SYLAR_GUARDED_BY(lock) = 0;
};
/// The top is at the end of a page, less a colour, so that the record of the thread with its variables is on one page and the frames
/// of a fiber that waits on another.
Stack takeStack(size_t size) {
  constexpr uint32_t kColours = 8;
  constexpr uint32_t kColour = 64;        // a cache line
  static Stacks& s_stacks = *new Stacks;  // for as long as fibers run
  const Lock lock(s_stacks.lock);
  Stack stack = s_stacks.pool.take(size);
  const auto to_end = static_cast<uint32_t>(-reinterpret_cast<uintptr_t>(stack.top()) % 4096);
  stack.size += to_end - s_stacks.colour++ % kColours * kColour;
  return stack;
}

/// Makes one. Returns 0, with `made` null if its kernel thread could not leave, or an error.
int makeOne(BorrowedThread** made, size_t room) {
  // The record of the thread and the static thread_local variables of the program come out of the stack. Source: HotSpot.
  using LeastStack = size_t (*)(const pthread_attr_t*);
  static const auto least_stack = reinterpret_cast<LeastStack>(::dlsym(RTLD_DEFAULT, "__pthread_get_minstack"));
  constexpr size_t kUsualRoom = 64 * 1024;
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  const Stack stack = takeStack(room + (least_stack != nullptr ? least_stack(&attributes) : kUsualRoom));
  if (!stack) return EAGAIN;
  ::pthread_attr_setstack(&attributes, stack.base, stack.size);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  static constexpr char kNoName[16]{};
  pthread_t id;
  LeftThread* thread = nullptr;
  const int error = makeLeftThread(&id, &thread, &attributes, {serve, nullptr, kNoName});
  ::pthread_attr_destroy(&attributes);
  if (thread != nullptr) {
    thread->room = room;
    const size_t below = static_cast<size_t>(thread->context.lowest() - stack.base) & ~size_t{4095};
    (void)sys::adviseMemory(stack.base, below, MADV_DONTNEED);  // what its kernel thread has touched
  }
  *made = thread;
  return error;
}

/// Makes threads for fibers that find none free. Those who have some made take turns, so who waits finds what was made before.
class Lender final : public ThreadLender {
 public:
  BorrowedThread* make(size_t room) override;
  void isRunElsewhere() override;

 private:
  static Semaphore& turns() {
    static Semaphore& s_turns = *new Semaphore(kMakers);  // for as long as fibers run
    return s_turns;
  }
  std::atomic<size_t> m_waiting{0};
};

BorrowedThread* Lender::make(size_t room) {
  const this_fiber::CancelShield shield;  // the function of a fiber that was cancelled runs, and is told then
  if (g_cannot.load(std::memory_order_relaxed)) return nullptr;
  ++m_waiting;
  (void)turns().wait();
  if (BorrowedThread* const free = FreeThreads::takeOfAll(room)) {
    --m_waiting;
    turns().notify();
    return free;
  }
  BorrowedThread* made = nullptr;
  int error = EAGAIN;
  const auto make_some = [&, this] {
    error = makeOne(&made, room);
    --m_waiting;
    for (size_t i = 1; i < kMadeAtOnce && error == 0 && m_waiting.load() >= i; ++i) {
      BorrowedThread* more = nullptr;
      if (makeOne(&more, room) != 0 || more == nullptr) break;
      FreeThreads::putForAll(*more);
    }
    turns().notify();  // here, because the fiber may have been abandoned
  };
  while (BlockingPool::process().run(make_some) != 0) ::usleep(1000);  // it has too much to do
  if (error != 0 && error != EINVAL) throw std::bad_alloc();
  if (made == nullptr && !g_cannot.exchange(true)) {
    log::warn("fibers cannot be threads here, so to libraries all fibers of a worker are one");
  }
  return made;
}

void Lender::isRunElsewhere() {
  FiberThread& me = FiberThread::mine();
  const Worker* const worker = Worker::current();
  me.worker.store(worker != nullptr ? worker->threadId() : 0, std::memory_order_release);
  me.worker_pointer.store(ThreadFibers::current().ownThreadPointer(), std::memory_order_relaxed);
}

}  // namespace

void callAsBorrowedThread(void (*body)(void*), void* argument) {
  FiberCore& me = *runningFiber();
  const FiberHost* const host = ThreadFibers::current().host();
  if (me.ownsThreadPointer() || host == nullptr || !host->lends_threads) return body(argument);
  BorrowedThread* thread = ThreadFibers::current().takeThread(me.stack.size);
  if (thread == nullptr) thread = FiberHost::lender.load(std::memory_order_relaxed)->make(me.stack.size);
  if (thread == nullptr) return body(argument);
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
[[gnu::constructor]] void offer() {
  static Lender s_lender;
  FiberHost::lender.store(&s_lender, std::memory_order_relaxed);
}
}  // namespace

}  // namespace sylar::detail

#endif
