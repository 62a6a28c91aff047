// What idle_trace_test.py watches under strace: two managers' worth of workers after some traffic. Marks its phases with a system
// call that nothing else makes, and prints the ids of its workers, and how many seconds it was idle.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "sylar/base/sys.h"
#include "sylar/iomanager.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "tests/io/descriptors.h"
#include "tests/sched/gate.h"
#include "tests/support/thread_state.h"

namespace sylar {
namespace {

using test::Gate;

/// The parent's process id is asked for nowhere else.
void mark() { sys::call(SYS_getppid); }

/// Everybody has gone to sleep: nothing is left to do, so this is a matter of having the processor. Who says that it sleeps is on
/// the way there, and the kernel says who has arrived.
void settle(const Scheduler& scheduler) {
  (void)test::eventually([&] {
    for (const auto& worker : coreOf(scheduler).workers()) {
      if (!worker->slot().mailbox.sleeping() || test::stateOfThread(worker->threadId()) != 'S') return false;
    }
    return true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
}

void print(const char* name, const Scheduler& scheduler) {
  std::printf("%s", name);
  for (const auto& worker : coreOf(scheduler).workers()) std::printf(" %d", worker->threadId());
  std::printf("\n");
  std::fflush(stdout);
}

/// Tasks, timers, sleeps and bytes, from everywhere to everywhere.
void traffic(Scheduler& scheduler, IOManager& iom) {
  const test::Ends sockets = test::makeSockets();
  Gate done;
  for (int i = 0; i < 50; ++i) {
    scheduler.schedule([&] {
      parkUntil(Deadline::after(std::chrono::milliseconds(1)));
      iom.schedule([&] { done.open(); });
    });
    iom.addTimer(1, [&] { scheduler.schedule([&] { done.open(); }); });
  }
  (void)iom.addEvent(sockets[0], IOManager::READ, [&] { done.open(); });
  sockets.put(1);
  if (!done.wait(101)) std::abort();
  // A fiber whose deadline was pushed, disarmed and stays linked: it must wake nobody either.
  Gate over;
  iom.schedule([&] {
    for (const int ms : {1'000, 2'000}) {
      const Deadline deadline = Deadline::after(std::chrono::milliseconds(ms));
      if (!reserveTimeout(deadline)) std::abort();
      Wait wait;
      wait.waker().wake(WakeReason::kReady);
      wait.park(deadline);
    }
    over.open();
    Fiber::YieldToHold();
  });
  if (!over.wait()) std::abort();
}

int run(int idle_seconds, int max_wait_ms) {
  Scheduler scheduler(2, false, "plain");
  scheduler.start();
  IOManager iom({.threads = 8, .use_caller = false, .name = "io", .max_wait = std::chrono::milliseconds(max_wait_ms)});
  print("plain", scheduler);
  print("io", iom);
  traffic(scheduler, iom);
  settle(scheduler);
  settle(iom);

  const auto begin = std::chrono::steady_clock::now();
  mark();  // 1: nothing to do
  std::this_thread::sleep_for(std::chrono::seconds(idle_seconds));
  mark();  // 2: timers that move the front, and some that do not
  const std::chrono::duration<double> idle = std::chrono::steady_clock::now() - begin;
  std::vector<Timer::ptr> timers;
  for (uint64_t hours = 5; hours >= 2; --hours) timers.push_back(iom.addTimer(hours * 3'600'000, [] {}));
  for (uint64_t hours = 6; hours <= 9; ++hours) timers.push_back(iom.addTimer(hours * 3'600'000, [] {}));
  mark();  // 3: idle with timers
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  for (const Timer::ptr& timer : timers) timer->cancel();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  mark();  // 4: one timer expires
  Gate fired;
  iom.addTimer(100, [&] { fired.open(); });
  if (!fired.wait()) std::abort();
  settle(iom);
  mark();  // 5: the end
  scheduler.stop();
  iom.stop();
  std::printf("idle %f\n", idle.count());
  return 0;
}

}  // namespace
}  // namespace sylar

int main(int argc, char** argv) { return sylar::run(argc > 1 ? std::atoi(argv[1]) : 3, argc > 2 ? std::atoi(argv[2]) : 0); }
