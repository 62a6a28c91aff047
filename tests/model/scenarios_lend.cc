// The threads that fibers borrow. Each fiber that waits for one begins, fails or is left, once, and nobody is forgotten while the
// maker sleeps. A thread has one borrower. A scheduler is not destroyed while the maker still uses it.
#include <string>
#include <vector>

#include "tests/model/inn.h"
#include "tests/model/scenarios.h"

namespace sylar::model {
namespace {

// ---- Lending. ------------------------------------------------------------------------------------------------------------------

// A worker that finds no thread queues the fiber and calls the maker, which keeps one ahead.
void findsNone() {
  Threads threads;
  threads.spare = 1;
  Inn inn(threads, 1);
  for (int i = 0; i < 2; ++i) inn.offer();
  inn.startWorkers();
  threads.startMaker();
  runThreads();
  inn.requireOver();
  threads.requireAll();
}

// Another worker gives its thread back to all while one finds none. Then it takes one again, perhaps before who has waited for it.
void givenBackMeanwhile() {
  Threads threads;
  Lent& lent = *threads.made(kRoom);
  Inn inn(threads, 1);
  inn.offer();
  inn.startWorkers();
  threads.startMaker();
  addThread("other worker", [&] {
    threads.use(lent);
    threads.lending.put(lent);
    Lent* const again = threads.lending.take(kRoom);
    if (again == nullptr) return;
    threads.use(*again);
    threads.lending.put(*again);
  });
  runThreads();
  inn.requireOver();
  threads.requireAll();
}

// Fibers of two schedulers wait, for threads of different sizes.
void twoSchedulers() {
  Threads threads;
  threads.users = 2;
  Inn one(threads, 1), other(threads, 1);
  one.offer();
  other.offer(kOddRoom);
  one.startWorkers();
  other.startWorkers();
  threads.startMaker();
  runThreads();
  for (const Inn* const inn : {&one, &other}) inn->requireOver();
  threads.requireAll();
}

// No thread can be made for the first. It fails, and the next one has its turn.
void refused() {
  Threads threads;
  threads.make = [&](size_t room) -> Lent* {
    threads.make = [&](size_t its_room) { return threads.made(its_room); };
    return choose(2) == 0 ? nullptr : threads.made(room);
  };
  Inn inn(threads, 1);
  for (int i = 0; i < 2; ++i) inn.offer();
  inn.startWorkers();
  threads.startMaker();
  runThreads();
  inn.requireOver();
  threads.requireAll();
}

// A thread comes back while none can be made: who waits gets that.
void refusedButGivenBack() {
  Threads threads;
  bool back = false;
  threads.make = [&](size_t) -> Lent* {
    await("a thread that comes back", [&] { return back; });
    return nullptr;
  };
  Inn inn(threads, 1);
  const Guest& waits = inn.await();
  Lent& lent = *threads.made(kRoom);
  inn.startWorkers();
  threads.startMaker();
  addThread("borrower", [&] {
    threads.lending.put(lent);
    back = true;
  });
  runThreads();
  inn.requireOver();
  threads.requireAll();
  require(waits.begun == 1, "nobody fails for whom there is a thread");
}

// No thread can be made for the first, which a stop has taken meanwhile: the maker looks for others before it sleeps.
void refusedAndTaken() {
  Threads threads;
  threads.make = [&](size_t room) { return room == kOddRoom ? nullptr : threads.made(room); };
  Inn ends(threads, 1), other(threads, 1);
  ends.await(kOddRoom);
  other.await();
  other.startWorkers();
  threads.startMaker();
  addThread("stopper", [&] { ends.stopWithoutWorkers(); });
  runThreads();
  for (const Inn* const inn : {&ends, &other}) inn->requireOver();
  threads.requireAll();
}

// ---- The stop. -----------------------------------------------------------------------------------------------------------------

// Fibers that wait for a thread keep the scheduler from ending. It is destroyed when the maker has said that they do not any more.
void stopWaits() {
  Threads threads;
  Inn inn(threads, 1);
  const Guest& waits = inn.await();
  inn.startWorkersUntilTheEnd();
  threads.startMaker();
  addThread("stopper", [&] {
    inn.stop(false);
    inn.windUp();
    threads.leave();
  });
  runThreads();
  require(waits.begun == 1, "it has begun");
  inn.requireOver();
  threads.requireAll();
}

// The last worker is left out, and all that wait are taken, while the maker lets them go on.
void stopTakesAll() {
  Threads threads;
  Inn inn(threads, 1);
  for (int i = 0; i < 2; ++i) inn.await();
  threads.startMaker();
  addThread("stopper", [&] {
    inn.stopWithoutWorkers();
    inn.windUp();
    threads.leave();
  });
  runThreads();
  inn.requireOver();
  threads.requireAll();
}

// At the deadline of a stop all that wait go on without a thread, each to the worker to which it is pinned, and are left there.
void cancelled() {
  Threads threads;
  Inn inn(threads, 1);
  Worker& worker = inn.house().worker(0);
  Guest* const guests[] = {&inn.await(kRoom, &worker), &inn.await()};
  worker.on_cancel_phase = [&](CancelPhase) {
    for (Guest* const guest : guests) guest->cancelled = true;
  };
  inn.startWorkersUntilTheEnd();
  threads.startMaker();
  addThread("stopper", [&] {
    inn.stop(true);
    inn.house().idle().raisePhase(CancelPhase::kShields);
    threads.lending.releaseAll(inn);
    inn.windUp();
    threads.leave();
  });
  runThreads();
  inn.requireOver();
  threads.requireAll();
}

// ---- The maker's life. ---------------------------------------------------------------------------------------------------------

// The last scheduler closes while a call is on its way, and another one opens: its fiber is served, by whichever maker is there.
void closeAgainstACall() {
  Threads threads;
  Inn next(threads, 1);
  const Guest& guest = next.offer();
  Mutex life;
  Atomic<int> started(1), over;
  bool opened = false;
  const auto close = [&] {
    Lock lock(life);
    if (--threads.users > 0) return;
    threads.calls.end();
    await("the maker's end", [&] { return over.peek() == started.peek(); });
    over.fetch_add(0, std::memory_order_acquire);
  };
  addThread("maker", [&] {  // first and second, one after the other
    while (over.peek() < started.fetch_add(0, std::memory_order_acquire)) {
      threads.runMaker();
      over.fetch_add(1, std::memory_order_release);
      await("another beginning", [&] { return over.peek() < started.peek() || (opened && threads.users == 0); });
    }
  });
  addThread("closer", close);
  addThread("caller", [&] { threads.calls.call(); });
  addThread("opener", [&] {
    {
      Lock lock(life);
      if (threads.users++ == 0) {
        threads.calls.begin();
        started.fetch_add(1, std::memory_order_release);
      }
      opened = true;
    }
    next.house().worker(0).runUntil([&] { return next.allOver(); });
    close();
  });
  runThreads();
  require(guest.begun == 1, "it has begun");
  next.requireOver();
  threads.requireAll();
}

// A fork while the maker is at work. In the child nobody holds the lock who could let it go, so what ends there gives nothing back.
void forkedChild() {
  Threads threads;
  Inn inn(threads, 1);
  inn.await();
  Lent& lent = *threads.made(kRoom);
  bool ended = false;
  LendingTypes::s_at_lock = [&] { await("the child, in which this thread is not", [&] { return ended; }); };
  addThread("maker", [&] { threads.lending.serve(kRoom, 0, [](size_t) { return nullptr; }); });
  addThread("child", [&] {
    LendingTypes::s_child = self();
    threads.lending.put(lent);
    ended = true;
  });
  runThreads();
  require(threads.lending.take(kRoom) == nullptr, "nothing came from the child");
}

}  // namespace

std::vector<Scenario> lendScenarios() {
  return {
      {"lend/finds_none", findsNone},
      {"lend/given_back_meanwhile", givenBackMeanwhile},
      {"lend/two_schedulers", twoSchedulers},
      {"lend/refused", refused},
      {"lend/refused_but_given_back", refusedButGivenBack},
      {"lend/refused_and_taken", refusedAndTaken},
      {"lend/stop_waits", stopWaits},
      {"lend/stop_takes_all", stopTakesAll},
      {"lend/cancelled", cancelled},
      {"lend/close_against_a_call", closeAgainstACall},
      {"lend/forked_child", forkedChild},
  };
}

}  // namespace sylar::model
