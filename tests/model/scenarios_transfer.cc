// P3, transfers: a worker hands receives to the kernel in batches, with the real entry. Who waits for one is woken by its end, a
// close, wakeAll(), a timeout or a cancel.
//
// The kernel is written here: one number, the files that were open there, and what each worker has handed over. Each of its calls
// is one step. A file lives on while an operation has it. The worker's list and a receiving call are written here too, in short.
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "sylar/io/fd_entry.h"
#include "tests/model/house.h"
#include "tests/model/scenarios.h"

namespace sylar::model {
namespace {

constexpr int kFd = 7;
constexpr size_t kMostFiles = 4;

struct Kernel;
struct Ring;

/// The part that lies on the stack of a call. `gone` is the call's last access.
struct OnStack {
  void touch() const { require(!gone.get(), "nobody touches what lies on the stack of a call that has gone on"); }
  Var<bool> gone;
  bool told = false;  // somebody has tried to end the wait
};

/// As the house's, for a wait whose waker lies on a stack.
struct Waker {
  Core* core = nullptr;
  uint64_t epoch = 0;
  OnStack* place = nullptr;

  bool claim(WakeReason reason) const {
    place->touch();
    place->told = true;
    return ModelWaker{core, epoch}.claim(reason);
  }
  static void deliver(Core& core) { ModelWaker::deliver(core); }
  static void deliverByMail(Core& core) { ModelWaker::deliverByMail(core); }
};

struct Engine {
  using Waker = model::Waker;
  static int add(int, uint32_t, uint32_t) { return 0; }
  static int modify(int, uint32_t, uint32_t) { return 0; }
  static void remove(int) {}
  static bool retired() { return false; }
  static void closeNumber(int fd);
  static bool isOpen(int fd);
  static void closing(int, uint32_t) {}
};
using Entry = FdEntry<Engine, ModelMemory>;

/// One receive. For its worker, but for the bytes that the kernel puts there.
struct Operation : OnStack {
  enum class State : uint8_t { kBegun, kHandedOver, kDone };

  uint32_t generation = 0;
  size_t file_at_begin = 0;  // 0: none
  Waker waker;
  State state = State::kBegun;
  int result = 0;
  size_t file = 0;  // that the kernel took
};

/// The attempt of a call: what lies on its stack.
struct Attempt {
  Operation operation;
  FdWaiter<Engine> waiter;
  bool queued = false;
};

struct Kernel {
  Kernel() { g_kernel = this; }

  /// Every call is one step, and seen by all later ones.
  void enter() { m_calls.fetch_add(1, std::memory_order_acq_rel); }

  // ---- The number. -----------------------------------------------------------------------------------------------------------

  bool isOpen() const {
    (void)m_calls.load(std::memory_order_acquire);
    return file != 0;
  }
  int close() {
    enter();
    require(pinned == 0, "no real close between a pin and the moment at which the kernel has the file");
    if (file == 0) return -EBADF;
    for (const Attempt& attempt : attempts) {
      require(!attempt.queued || attempt.operation.told, "who waits for a number is told before it is closed");
    }
    file = 0;
    return 0;
  }
  void open() {
    enter();
    require(file == 0, "the number was free");
    file = ++files;
  }
  void send(size_t to) {
    enter();
    ++bytes[to];
  }

  // ---- What was handed over. -------------------------------------------------------------------------------------------------

  struct Request {
    Operation* operation;
    Ring* ring;
    size_t file;
    bool cancelled = false;
    bool answered = false;

    bool isReady(const Kernel& kernel) const { return !answered && (cancelled || file == 0 || kernel.bytes[file] > 0); }
  };

  void accept(Ring& ring, Operation& operation) {
    require(file == operation.file_at_begin || operation.file_at_begin == 0, "the file that had the number when the call began");
    operation.file = file;
    requests.push_back({&operation, &ring, file});
    runPromptly();
  }
  void cancel(const Operation& operation) {
    enter();
    for (Request& request : requests) request.cancelled = request.cancelled || request.operation == &operation;
    runPromptly();
  }
  Request* firstReady() {
    const auto found = std::find_if(requests.begin(), requests.end(), [this](const Request& one) { return one.isReady(*this); });
    return found == requests.end() ? nullptr : &*found;
  }
  int complete(Request& request);
  static void answer(const Request& request, int result);
  /// Completes what is handed over, until all calls are over.
  void run();
  /// If it has no thread: in the step that makes something ready.
  void runPromptly();

  Entry entry{};
  std::deque<Attempt> attempts;  // all that were made: these are not reused
  std::deque<Request> requests;
  size_t files = 1;
  size_t file = 1;
  int bytes[kMostFiles] = {};
  int taken[kMostFiles] = {};
  int returned[kMostFiles] = {};
  int pinned = 0;
  int calls = 0;          // that are not over
  bool together = false;  // a batch is pinned, handed over and unpinned as one
  bool prompt = false;    // see runPromptly(); not with a sender

  static Kernel* g_kernel;

 private:
  Atomic<int> m_calls;
};
Kernel* Kernel::g_kernel = nullptr;

void Engine::closeNumber(int) { Kernel::g_kernel->close(); }
bool Engine::isOpen(int) { return Kernel::g_kernel->isOpen(); }

/// The operations that the fibers of a worker have begun, and the answers of the kernel.
struct Ring final : Driver {
  explicit Ring(Kernel& its_kernel) : kernel(its_kernel), worker(nullptr, this) {}

  bool ready() const override { return !begun.empty() || !answers.empty(); }
  void serve() override {
    handOver();
    if (answers.empty()) return;
    kernel.enter();
    for (const auto& [operation, result] : std::exchange(answers, {})) end(*operation, result);
  }

  void handOver() {
    std::vector<Operation*> pinned;
    for (Operation* const operation : std::exchange(begun, {})) {
      operation->touch();
      if (!kernel.entry.pin(operation->generation)) {
        end(*operation, -ECANCELED);
        continue;
      }
      ++kernel.pinned;
      pinned.push_back(operation);
      if (!kernel.together) giveTo(pinned);
    }
    giveTo(pinned);
  }
  void giveTo(std::vector<Operation*>& operations) {
    if (operations.empty()) return;
    kernel.enter();
    for (Operation* const operation : operations) {
      operation->state = Operation::State::kHandedOver;
      kernel.accept(*this, *operation);
      --kernel.pinned;
    }
    for (size_t i = 0; i < operations.size(); ++i) kernel.entry.unpin();
    operations.clear();
  }
  static void end(Operation& operation, int result) {
    operation.touch();
    require(operation.state != Operation::State::kDone, "an operation ends once");
    operation.state = Operation::State::kDone;
    operation.result = result;
    Core& core = *operation.waker.core;
    if (operation.waker.claim(WakeReason::kReady)) Waker::deliver(core);
  }

  Kernel& kernel;
  Engine engine;  // that a waiter would be registered with
  Worker worker;
  std::vector<Operation*> begun;
  std::vector<std::pair<Operation*, int>> answers;
};

int Kernel::complete(Request& request) {
  int result = -EBADF;
  if (request.cancelled && (bytes[request.file] == 0 || choose(2) == 1)) {
    result = -ECANCELED;
  } else if (request.file != 0) {
    request.operation->touch();
    --bytes[request.file];
    ++taken[request.file];
    result = 1;
  }
  request.answered = true;
  return result;
}
void Kernel::answer(const Request& request, int result) { request.ring->answers.emplace_back(request.operation, result); }

/// A byte is taken and its operation answered in two steps: a cancel may come between.
void Kernel::run() {
  for (;;) {
    await("something to complete", [&] { return calls == 0 || firstReady() != nullptr; });
    if (firstReady() == nullptr) return;
    enter();
    Request& request = *firstReady();
    const int result = complete(request);
    enter();
    answer(request, result);
  }
}
void Kernel::runPromptly() {
  while (Request* const request = prompt ? firstReady() : nullptr) answer(*request, complete(*request));
}

/// A fiber that receives. Its call is cut at its waits, so that a worker can have two.
struct Fiber {
  explicit Fiber(Ring& its_ring, Direction its_direction = Direction::kRead)
      : ring(its_ring), kernel(its_ring.kernel), core(its_ring.worker.slot()), direction(its_direction) {
    ++kernel.calls;
  }

  /// One byte, -EBADF, -EAGAIN for a timeout, or -ECANCELED.
  int receive(bool timer = false) {
    for (bool over = begin(); !over;) over = goOn(ring.worker.park(core, timer && !ending));
    return result;
  }
  /// One more call is to come, so that the kernel stays.
  void again() { ++kernel.calls; }

  /// False: it waits, and goOn() follows.
  bool begin() {
    const uint32_t generation = Entry::generationOf(kernel.entry.life());
    Attempt& attempt = kernel.attempts.emplace_back();
    mine = &attempt;
    Operation& operation = attempt.operation;
    operation.file_at_begin = kernel.file;
    operation.generation = generation;
    operation.waker = attempt.waiter.waker = {&core, core.wait.prepare(), &operation};
    attempt.waiter.engine = &ring.engine;
    if (const int error = kernel.entry.enqueueForClose(kFd, generation, direction, attempt.waiter); error != 0) {
      require(core.wait.withdraw(operation.waker.epoch), "who was not queued is not woken");
      return leave(error);
    }
    require(kernel.file == operation.file_at_begin || operation.file_at_begin == 0 || operation.told,
            "nobody begins to wait after a close");
    attempt.queued = true;
    ring.begun.push_back(&operation);
    return false;
  }

  bool goOn(WakeReason reason) {
    Operation& operation = mine->operation;
    if (!ending) {
      why = reason;
      mine->queued = false;
      kernel.entry.dequeue(direction, mine->waiter);
      if (operation.state == Operation::State::kBegun) {
        std::erase(ring.begun, &operation);
        operation.result = -ECANCELED;
      } else if (operation.state == Operation::State::kHandedOver) {
        ending = true;
        operation.waker.epoch = core.wait.prepare();
        kernel.cancel(operation);
        return false;
      }
    }
    require(!std::exchange(ending, false) || operation.state == Operation::State::kDone, "nothing else ends a shielded wait");
    if (operation.result != -ECANCELED) {
      if (operation.result == 1) ++kernel.returned[operation.file];
      return leave(operation.result);
    }
    if (why == WakeReason::kReady) {
      leaveAttempt();
      return begin();
    }
    return leave(why == WakeReason::kClosed ? -EBADF : why == WakeReason::kTimeout ? -EAGAIN : -ECANCELED);
  }

  bool leave(int its_result) {
    result = its_result;
    leaveAttempt();
    --kernel.calls;
    return true;
  }
  void leaveAttempt() { std::exchange(mine, nullptr)->operation.gone.set(true); }

  /// For another fiber, a timer or a cancel: true while a wait can be ended.
  bool waits() const { return mine != nullptr && mine->queued; }
  /// From any thread, or by a task of the worker. May come too late.
  void wake(WakeReason reason) const { ModelWaker{&const_cast<Core&>(core), mine->operation.waker.epoch}.wake(reason); }

  Ring& ring;
  Kernel& kernel;
  Core core;
  const Direction direction;
  Attempt* mine = nullptr;
  bool ending = false;
  WakeReason why = WakeReason::kReady;
  int result = 0;
};

void closeNumber(Kernel& kernel) {
  kernel.entry.close(kFd, [&] { return kernel.close(); });
}
void openNumber(Kernel& kernel) {
  kernel.open();
  kernel.entry.open(kFd, FdKind::kTcp, true, false);
}

/// Runs the threads and the kernel.
void run(Kernel& kernel) {
  if (!kernel.prompt) addThread("kernel", [&] { kernel.run(); });
  runThreads();
  require(kernel.calls == 0, "every call ends");
  for (size_t i = 0; i < kMostFiles; ++i) require(kernel.taken[i] == kernel.returned[i], "no byte is lost");
  for (const Attempt& attempt : kernel.attempts) {
    const FdWaiter<Engine>& waiter = attempt.waiter;
    require(!waiter.linked && !attempt.queued, "no waiter is left over");
  }
}

// A byte before the call, and one at any time.
void receive() {
  Kernel kernel;
  Ring ring(kernel);
  Fiber fiber(ring);
  kernel.bytes[1] = 1;
  addThread("fiber", [&] {
    fiber.again();
    for (int i = 0; i < 2; ++i) require(fiber.receive() == 1, "it gets the byte");
  });
  addThread("sender", [&] { kernel.send(1); });
  run(kernel);
}

// Nothing but the close ends the call, wherever its operation is.
void close() {
  Kernel kernel;
  Ring ring(kernel);
  Fiber fiber(ring);
  addThread("fiber", [&] { require(fiber.receive() == -EBADF, "closed"); });
  addThread("closer", [&] { closeNumber(kernel); });
  run(kernel);
}

// A close against the byte: the operation keeps the file, and gets the byte even after the close.
void closeAgainstAByte() {
  Kernel kernel;
  Ring ring(kernel);
  Fiber fiber(ring);
  addThread("fiber", [&] {
    const int result = fiber.receive();
    require(result == 1 || result == -EBADF, "the byte, or closed");
  });
  addThread("closer", [&] { closeNumber(kernel); });
  addThread("sender", [&] { kernel.send(1); });
  run(kernel);
}

// Another file under the number at once. Each call gets the byte of its own file, or is told of the close.
void reuse() {
  Kernel kernel;
  Ring old_ring(kernel), ring(kernel);
  Fiber old(old_ring), fresh(ring, Direction::kWrite);
  kernel.bytes[2] = 2;
  addThread("old", [&] {
    const int result = old.receive();
    require(result == -EBADF || (result == 1 && kernel.returned[2] > 0), "closed, or it has begun late");
  });
  addThread("owner", [&] {
    closeNumber(kernel);
    openNumber(kernel);
    require(fresh.receive() == 1, "the byte of the new file");
  });
  run(kernel);
}

// The same, with a byte for the old file as well.
void reuseAgainstAByte() {
  Kernel kernel;
  Ring old_ring(kernel), ring(kernel);
  Fiber old(old_ring), fresh(ring, Direction::kWrite);
  kernel.bytes[1] = 1;
  kernel.bytes[2] = 2;
  addThread("old", [&] {
    const int result = old.receive();
    require(result == -EBADF || result == 1, "a byte, or closed");
  });
  addThread("owner", [&] {
    closeNumber(kernel);
    openNumber(kernel);
    require(fresh.receive() == 1, "the byte of the new file");
  });
  run(kernel);
}

// The opener is another thread, and faster than the end of the close.
void openedByAnother() {
  Kernel kernel;
  Ring ring(kernel);
  Fiber old(ring);
  kernel.bytes[2] = 1;
  addThread("old", [&] {
    const int result = old.receive();
    require(result == -EBADF || (result == 1 && kernel.returned[2] > 0), "closed, or it has begun late");
  });
  addThread("closer", [&] { closeNumber(kernel); });
  addThread("opener", [&] {
    await("a free number", [&] { return kernel.file == 0; });
    openNumber(kernel);
  });
  run(kernel);
}

// No hook tells of the new file.
void adoption() {
  Kernel kernel;
  Ring old_ring(kernel), ring(kernel);
  Fiber old(old_ring), fresh(ring, Direction::kWrite);
  kernel.bytes[2] = 2;
  addThread("old", [&] {
    const int result = old.receive();
    require(result == -EBADF || (result == 1 && kernel.returned[2] > 0), "closed, or it has begun late");
  });
  addThread("owner", [&] {
    closeNumber(kernel);
    kernel.open();
    require(fresh.receive() == 1, "the byte of the new file");
  });
  run(kernel);
}

// Each call meets a close of its own file, and the next one begins on any of them.
void closedTwice() {
  Kernel kernel;
  Ring ring(kernel);
  Fiber fiber(ring);
  addThread("fiber", [&] {
    fiber.again();
    for (int i = 0; i < 2; ++i) require(fiber.receive() == -EBADF, "closed");
  });
  addThread("owner", [&] {
    closeNumber(kernel);
    openNumber(kernel);
    closeNumber(kernel);
  });
  run(kernel);
}

// FM-41: a timeout and the byte: the byte, or the timeout and then the byte.
void timeout() {
  Kernel kernel;
  Ring ring(kernel);
  Fiber fiber(ring);
  addThread("fiber", [&] {
    const int result = fiber.receive(true);
    require(result == 1 || result == -EAGAIN, "the byte, or a timeout");
    if (result == 1) return;
    fiber.again();
    require(fiber.receive() == 1, "the next call gets the byte");
  });
  addThread("sender", [&] { kernel.send(1); });
  run(kernel);
}

// A timeout that another thread tells, against a close and a byte.
void timeoutElsewhere() {
  Kernel kernel;
  Ring ring(kernel);
  Fiber fiber(ring);
  kernel.bytes[1] = 1;
  addThread("fiber", [&] {
    const int result = fiber.receive();
    require(result == 1 || result == -EAGAIN || result == -EBADF, "the byte, a timeout, or closed");
  });
  addThread("timer", [&] {
    await("a call", [&] { return fiber.waits() || kernel.calls == 0; });
    if (fiber.waits()) fiber.wake(WakeReason::kTimeout);
  });
  addThread("closer", [&] { closeNumber(kernel); });
  run(kernel);
}

// A cancel comes by mail: it does not end the wait for the end of the operation.
void cancel() {
  Kernel kernel;
  Ring ring(kernel);
  Fiber fiber(ring);
  kernel.bytes[1] = 1;
  Task cancel([&] {
    if (fiber.waits()) fiber.wake(WakeReason::kCanceled);
  });
  addThread("fiber", [&] {
    const int result = fiber.receive();
    require(result == 1 || result == -ECANCELED || result == -EBADF, "the byte, cancelled, or closed");
  });
  addThread("canceller", [&] { ring.worker.slot().push(&cancel); });
  addThread("closer", [&] { closeNumber(kernel); });
  run(kernel);
}

// wakeAll() makes the call begin again, on the file that the number has then.
void wakeAll() {
  Kernel kernel;
  Ring ring(kernel);
  Fiber fiber(ring);
  addThread("fiber", [&] { require(fiber.receive() == 1, "it gets the byte"); });
  addThread("waker", [&] {
    kernel.entry.wakeAll(Direction::kRead);
    kernel.send(1);
  });
  run(kernel);
}

// The same, and a close by another thread.
void wakeAllAgainstAClose() {
  Kernel kernel;
  Ring ring(kernel);
  Fiber fiber(ring);
  addThread("fiber", [&] { require(fiber.receive() == -EBADF, "closed"); });
  addThread("waker", [&] { kernel.entry.wakeAll(Direction::kRead); });
  addThread("closer", [&] { closeNumber(kernel); });
  run(kernel);
}

// No event of the number wakes the call.
void event() {
  Kernel kernel;
  Ring ring(kernel);
  Fiber fiber(ring);
  addThread("fiber", [&] {
    require(fiber.receive() == 1, "it gets the byte");
    require(kernel.attempts.size() == 1, "nothing else has woken it");
  });
  addThread("another worker", [&] {
    kernel.entry.onEvent(0, EPOLLIN);
    kernel.send(1);
  });
  run(kernel);
}

/// Two fibers of one worker, whose calls are cut at their waits. Returns when both are over.
void receiveBoth(Fiber& first, Fiber& second) {
  Worker& worker = first.ring.worker;
  worker.adoptThread();
  bool over[2] = {first.begin(), second.begin()};
  Core main(worker.slot());
  const ModelWaker both{&main, main.wait.prepare()};
  const auto look = [&] {
    if (over[0] && over[1] && both.claim(WakeReason::kReady)) worker.makeRunnable(main);
  };
  first.core.resume = [&] { over[0] = first.goOn(first.core.wait.reason()), look(); };
  second.core.resume = [&] { over[1] = second.goOn(second.core.wait.reason()), look(); };
  look();
  worker.park(main);
}

// Two fibers of one worker in one batch, against a close: pinned one by one, handed over at once, then unpinned.
void batch() {
  Kernel kernel;
  kernel.together = true;
  Ring ring(kernel);
  Fiber first(ring), second(ring, Direction::kWrite);
  kernel.bytes[1] = 1;
  addThread("fibers", [&] {
    receiveBoth(first, second);
    require(first.result == -EBADF || second.result == -EBADF, "one byte is not for two");
  });
  addThread("closer", [&] { closeNumber(kernel); });
  run(kernel);
}

// The same, and another file under the number.
void batchAgainstReuse() {
  Kernel kernel;
  kernel.together = true;
  Ring ring(kernel), its_ring(kernel);
  Fiber first(ring), second(ring, Direction::kWrite);
  kernel.bytes[2] = 2;
  addThread("fibers", [&] { receiveBoth(first, second); });
  addThread("owner", [&] {
    closeNumber(kernel);
    openNumber(kernel);
  });
  run(kernel);
}

// Two workers wait for one number. One close tells both.
void twoWorkers() {
  Kernel kernel;
  kernel.prompt = true;
  Ring one(kernel), other(kernel);
  Fiber first(one), second(other, Direction::kWrite);
  for (Fiber* const fiber : {&first, &second}) {
    addThread(fiber == &first ? "first" : "second", [fiber] { require(fiber->receive() == -EBADF, "closed"); });
  }
  addThread("closer", [&] { closeNumber(kernel); });
  run(kernel);
}

// Another fiber of the worker closes the number, and opens the next file there, between the call and the hand-over or after it.
void ownWorkerReuses() {
  Kernel kernel;
  Ring ring(kernel);
  Fiber fiber(ring);
  kernel.bytes[1] = 1;
  kernel.bytes[2] = 1;
  Task reuse([&] {
    closeNumber(kernel);
    openNumber(kernel);
  });
  addThread("fiber", [&] {
    const int result = fiber.receive();
    require(result == 1 || result == -EBADF, "a byte, or closed");
  });
  addThread("sender of work", [&] {
    ring.worker.slot().push(&reuse);
    await("the end of the call", [&] { return kernel.calls == 0; });
  });
  run(kernel);
}

// A signal handler closes the number over any step of the worker.
void closeInAHandler() {
  Kernel kernel;
  Ring ring(kernel);
  Fiber fiber(ring);
  bool closed = false;
  const auto handler = [&] {
    closed = true;
    if (Entry::interrupting()) {
      kernel.entry.closeLater(kFd);
    } else {
      closeNumber(kernel);
    }
  };
  addThread("fiber", [&] {
    mayBeInterruptedBy(handler);
    const int result = fiber.receive();
    require(result == 1 || (closed && result == -EBADF), "the byte, or closed");
  });
  addThread("sender", [&] { kernel.send(1); });
  run(kernel);
  require(closed == (kernel.file == 0), "what the handler closed is closed");
}

// Two close the number, and one call is told.
void twoClosers() {
  Kernel kernel;
  kernel.prompt = true;
  Ring ring(kernel);
  Fiber fiber(ring);
  addThread("fiber", [&] { require(fiber.receive() == -EBADF, "closed"); });
  addThread("closer", [&] { closeNumber(kernel); });
  addThread("other closer", [&] { closeNumber(kernel); });
  run(kernel);
}

// ---- How the kernel notifies the worker of work for its thread. ----------------------------------------------------------------

/// Both sides. `flag_is_in_order`: the kernel's OR is fully ordered, as on x86.
struct Notifications {
  explicit Notifications(bool its_flag_is_in_order) : flag_is_in_order(its_flag_is_in_order) {}

  /// Work arrives.
  void arrive() {
    const bool first = list.fetch_add(1, std::memory_order_acq_rel) == 0;
    fence();
    if (!first) return;
    (void)flag.fetch_or(true, std::memory_order_relaxed);
    if (flag_is_in_order) fence();
    if (notifies.load(std::memory_order_relaxed)) event.fetch_add(1, std::memory_order_acq_rel);
  }
  /// The worker enters the kernel. Returns true if that has woken a fiber, which may begin a transfer.
  bool enter() {
    (void)flag.exchange(false, std::memory_order_relaxed);
    const int taken = list.exchange(0, std::memory_order_acq_rel);
    done += taken;
    const unsigned what = taken == 0 ? 0 : choose(3);
    begun = what == 2;
    return what > 0;
  }
  /// Returns true if it has woken a fiber. As Ring::serve().
  bool serve() {
    if (worker_notifies && !begun && !hasMore()) return false;
    letNotify(false);
    if ((begun || hasMore()) && enter()) return true;
    letNotify(true);
    bool asks = !flag_is_in_order || hasMore();
    for (int left = 2; asks && left > 0; --left) {
      if (enter()) return true;
      asks = hasMore();
    }
    return false;
  }
  void letNotify(bool on) {
    worker_notifies = on;
    notifies.store(on, std::memory_order_relaxed);
    fence();
  }
  bool hasMore() const { return flag.load(std::memory_order_relaxed); }
  /// Both sides change one word, so the later one sees what the earlier one did before.
  void fence() { fenced.fetch_add(0, std::memory_order_acq_rel); }

  /// The turns of the worker, until all work has come.
  void run(int all) {
    while (done < all) {
      if (!serve()) await("asleep", [&] { return event.peek() != 0 || mail.peek() != 0 || done == all; });
      (void)mail.exchange(0, std::memory_order_acq_rel);
      if (event.exchange(0, std::memory_order_acq_rel) != 0) serve();
    }
  }

  const bool flag_is_in_order;
  Atomic<int> list;
  Atomic<bool> flag, notifies = true;
  Atomic<int> event, mail;  // what wakes the worker, of which `mail` is for another reason
  Atomic<int> fenced;
  bool worker_notifies = true;  // as the worker knows it
  bool begun = true;
  int done = 0;
};

// Work that arrives while its worker falls asleep wakes it. Where the flag is out of order the worker enters the kernel once more.
void notify(bool flag_is_in_order) {
  Notifications ring(flag_is_in_order);
  addThread("worker", [&] { ring.run(2); });
  addThread("kernel", [&] { ring.arrive(); });
  addThread("kernel elsewhere", [&] { ring.arrive(); });
  addThread("sender of mail", [&] { ring.mail.fetch_add(1, std::memory_order_acq_rel); });
  runThreads();
}

}  // namespace

std::vector<Scenario> transferScenarios() {
  return {
      {"transfer/receive", receive},
      {"transfer/close", close},
      {"transfer/close_against_a_byte", closeAgainstAByte},
      {"transfer/reuse", reuse},
      {"transfer/reuse_against_a_byte", reuseAgainstAByte},
      {"transfer/opened_by_another", openedByAnother},
      {"transfer/adoption", adoption},
      {"transfer/closed_twice", closedTwice},
      {"transfer/timeout", timeout},
      {"transfer/timeout_elsewhere", timeoutElsewhere},
      {"transfer/cancel", cancel},
      {"transfer/wake_all", wakeAll},
      {"transfer/wake_all_against_a_close", wakeAllAgainstAClose},
      {"transfer/event", event},
      {"transfer/batch", batch},
      {"transfer/batch_against_reuse", batchAgainstReuse},
      {"transfer/two_workers", twoWorkers},
      {"transfer/own_worker_reuses", ownWorkerReuses},
      {"transfer/close_in_a_handler", closeInAHandler},
      {"transfer/two_closers", twoClosers},
      {"transfer/notify_in_order", [] { notify(true); }},
      {"transfer/notify_out_of_order", [] { notify(false); }},
  };
}

}  // namespace sylar::model
