// P3: who waits for a descriptor is woken by its events and by its close, and by nothing of another file under the same number.
//
// The kernel is written here: one number, the file that is open there, and an epoll per worker. Each of its calls is one step.
// The loop around an attempt is that of IoCall, in short.
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <string>
#include <vector>

#include "sylar/io/fd_entry.h"
#include "tests/model/house.h"
#include "tests/model/scenarios.h"

namespace sylar::model {
namespace {

constexpr int kFd = 7;
constexpr int kAgain = -EAGAIN;

struct Kernel;

/// As the house's, for a wait that says when what lies on its stack is gone.
struct Waker : ModelWaker {
  const Var<bool>* gone = nullptr;
  bool claim(WakeReason reason) const {
    require(gone == nullptr || !gone->get(), "nobody touches what lies on the stack of a wait that is over");
    return ModelWaker::claim(reason);
  }
};

/// A worker's epoll, as FdEntry and as the worker see it, and its ring, which takes one receive.
struct Engine final : Driver {
  using Waker = model::Waker;

  explicit Engine(Kernel& its_kernel) : kernel(its_kernel) {}

  int add(int fd, uint32_t generation, uint32_t events);
  int modify(int fd, uint32_t generation, uint32_t events);
  void remove(int fd);
  static void closeNumber(int fd);
  static bool isOpen(int fd);
  static void closing(int, uint32_t) {}
  bool retired() const { return false; }

  bool ready() const override;
  void serve() override;

  Kernel& kernel;
  Waker receiver;           // by the ring
  int wanted = 0, got = 0;  // by it
  int file = 0;             // registered; 0: none
  uint32_t generation = 0;  // of the registration
  bool reported = false;    // an edge that nobody has collected
};

using Entry = FdEntry<Engine, ModelMemory>;

struct Kernel {
  Kernel() { g_kernel = this; }

  /// Every call is one step, and seen by all later ones.
  void enter() { m_calls.fetch_add(1, std::memory_order_acq_rel); }

  void report() {
    for (Engine* engine : engines) {
      if (engine->file == file && file != 0 && bytes > 0) engine->reported = true;
    }
  }
  void send() { sendTo(file); }
  /// The other end of `target`, which may be closed here.
  void sendTo(int target) {
    enter();
    if (file != target) return;
    ++bytes;
    ++sent[static_cast<size_t>(file)];
    report();
  }
  /// Up to `most` bytes of what is open now.
  int read(int most) {
    enter();
    if (file == 0) return -EBADF;
    if (bytes == 0) return kAgain;
    const int got = std::min(bytes, most);
    bytes -= got;
    return got;
  }
  /// Changes nothing: who looks again and again waits for a step of somebody else.
  bool isOpen() const {
    (void)m_calls.load(std::memory_order_acquire);
    return file != 0;
  }
  int close() {
    enter();
    require(file != 0, "a number is closed once");
    for (Engine* engine : engines) {
      if (engine->file == file) engine->file = 0, engine->reported = false;
    }
    file = 0;
    return 0;
  }
  void open(int first_bytes) {
    enter();
    require(file == 0, "the number was free");
    file = ++files;
    bytes = first_bytes;
  }

  Entry entry{};
  std::vector<Engine*> engines;
  int files = 1;
  int file = 1;
  int bytes = 0;
  int sent[4] = {};  // to each file

  static Kernel* g_kernel;

 private:
  Atomic<int> m_calls;
};
Kernel* Kernel::g_kernel = nullptr;

int Engine::add(int, uint32_t its_generation, uint32_t) {
  kernel.enter();
  if (kernel.file == 0) return -EBADF;
  if (file == kernel.file) return -EEXIST;
  file = kernel.file;
  generation = its_generation;
  kernel.report();
  return 0;
}
int Engine::modify(int, uint32_t its_generation, uint32_t) {
  kernel.enter();
  if (kernel.file == 0) return -EBADF;
  if (file != kernel.file) return -ENOENT;
  generation = its_generation;
  kernel.report();
  return 0;
}
void Engine::remove(int) {
  kernel.enter();
  file = 0;
  reported = false;
}
void Engine::closeNumber(int) { Kernel::g_kernel->close(); }
bool Engine::isOpen(int) { return Kernel::g_kernel->isOpen(); }

bool Engine::ready() const { return reported || (wanted > 0 && kernel.bytes > 0); }
/// epoll_wait, and what it reports. Between the two all may happen. Then the ring.
void Engine::serve() {
  if (reported) {
    kernel.enter();
    if (std::exchange(reported, false) && kernel.bytes > 0) kernel.entry.onEvent(generation, EPOLLIN);
  }
  if (wanted == 0 || (got = std::max(kernel.read(wanted), 0)) == 0) return;
  wanted = 0;
  if (receiver.claim(WakeReason::kReady)) Waker::deliver(*receiver.core);
}

/// A worker with its epoll, and the fiber on it. With kWrite it waits as a writer does, of whom no event tells, and so only by the
/// ring.
struct Reader {
  explicit Reader(Kernel& its_kernel, Direction its_direction = Direction::kRead)
      : kernel(its_kernel), direction(its_direction), engine(its_kernel), worker(nullptr, &engine), core(worker.slot()) {
    kernel.engines.push_back(&engine);
  }

  /// As IoCall::run: how many of `most` bytes, -EBADF, or -EAGAIN for a timeout. `rings`: as IoCall::goOnBy; not with a close.
  int read(bool timer = false, int most = 1, bool rings = false) {
    Entry& entry = kernel.entry;
    const uint32_t generation = Entry::generationOf(entry.awaitOpen(kFd));
    int file = 0;
    for (bool first = true;; first = false) {
      const uint64_t edges = entry.edges(direction);
      if (!entry.knownEmpty(direction, edges)) {
        if (!first && !entry.pin(generation)) return -EBADF;
        const int done = kernel.read(most);
        if (!first) {
          require(file == 0 || kernel.file == file, "a retry is made on the file of the first attempt");
          entry.unpin();
        }
        if (done > 0) learn(done < most, edges);
        if (done != kAgain) return done;
        file = kernel.file;
      }
      auto& [waiter, gone] = waits.emplace_back();
      const Waker waker{{&core, core.wait.prepare()}, &gone};
      waiter.waker = waker;
      waiter.engine = &engine;
      int error = rings ? entry.enqueueForClose(kFd, generation, direction, waiter) : -EBUSY;
      const bool by_ring = error != -EBUSY;
      if (!by_ring) error = entry.enqueue(kFd, generation, direction, edges, false, waiter);
      if (error != 0) {
        if (!core.wait.withdraw(waker.epoch)) worker.park(core);
        if (error != -EAGAIN) return error;
        continue;
      }
      if (by_ring) engine.receiver = waker, engine.wanted = most;
      const WakeReason reason = worker.park(core, timer);
      if (by_ring || reason == WakeReason::kTimeout) entry.dequeue(direction, waiter);
      if (by_ring) kernel.enter(), engine.wanted = 0;
      gone.set(true);
      if (const int got = std::exchange(engine.got, 0); got > 0) return learn(got < most, edges), got;
      require(reason != WakeReason::kReady || file == 0 || kernel.sent[static_cast<size_t>(file)] > 0,
              "no event of another file");
      if (reason != WakeReason::kReady) return reason == WakeReason::kClosed ? -EBADF : kAgain;
      require(!waiter.linked, "who was woken is in no list");
    }
  }

  /// A read has left nothing, or it may have. Without a registration no event tells of what comes.
  void learn(bool nothing_left, uint64_t edges) {
    Entry& entry = kernel.entry;
    const bool proven = nothing_left && (entry.registered() || has_ring) && !entry.sticky();
    if (proven || has_ring) proven ? entry.setDrained(direction, edges) : entry.clearDrained(direction);
  }

  /// As a poll for other events: a wait with no attempt before it, which ends by its timeout.
  void watch() {
    Entry& entry = kernel.entry;
    const uint64_t edges = entry.edges(Direction::kRead);
    const Waker waker{{&core, core.wait.prepare()}};
    FdWaiter<Engine> waiter;
    waiter.waker = waker;
    waiter.engine = &engine;
    waiter.events = EPOLLPRI;
    if (entry.enqueue(kFd, Entry::generationOf(entry.life()), Direction::kRead, edges, false, waiter) != 0) {
      if (!core.wait.withdraw(waker.epoch)) worker.park(core);
      return;
    }
    require(worker.park(core, true) == WakeReason::kTimeout, "what it did not ask for does not wake it");
    entry.dequeue(Direction::kRead, waiter);
  }

  /// Its fiber has ended; others may still have their registration here.
  void serveUntil(const std::function<bool()>& enough) { worker.serveUntil(enough); }

  Kernel& kernel;
  const Direction direction;
  bool has_ring = false;
  struct OnStack {
    FdWaiter<Engine> waiter;
    Var<bool> gone;
  };
  std::deque<OnStack> waits;  // all that were made: these are not reused
  Engine engine;
  Worker worker;
  Core core;
};

// The event that comes between the failing attempt and the wait is not lost.
void read() {
  Kernel kernel;
  Reader reader(kernel);
  addThread("reader", [&] {
    for (int i = 0; i < 2; ++i) require(reader.read() == 1, "it reads the byte");
  });
  addThread("sender", [&] {
    kernel.send();
    kernel.send();
  });
  runThreads();
}

// FM-18: two readers on two workers, one registration: each gets its byte.
void twoReaders() {
  Kernel kernel;
  Reader first(kernel), second(kernel);
  int ended = 0;
  for (Reader* reader : {&first, &second}) {
    addThread(reader == &first ? "first" : "second", [&, reader] {
      require(reader->read() == 1, "it reads a byte");
      ++ended;
      reader->serveUntil([&] { return ended == 2; });
    });
  }
  addThread("sender", [&] {
    kernel.send();
    kernel.send();
  });
  runThreads();
}

// FM-41: a timeout and the byte in the same moment: the byte, or the timeout and then the byte.
void timeout() {
  Kernel kernel;
  Reader reader(kernel);
  addThread("reader", [&] {
    const int first = reader.read(true);
    require(first == 1 || first == kAgain, "a byte or a timeout");
    if (first == kAgain) require(reader.read() == 1, "the next read gets the byte");
  });
  addThread("sender", [&] { kernel.send(); });
  runThreads();
}

// RT-7.3, FM-13: a close while a reader waits, or is about to.
void close() {
  Kernel kernel;
  Reader reader(kernel);
  addThread("reader", [&] {
    const int result = reader.read();
    require(result == 1 || result == -EBADF, "the byte, or closed");
  });
  addThread("closer", [&] { kernel.entry.close(kFd, [&] { return kernel.close(); }); });
  addThread("sender", [&] { kernel.send(); });
  runThreads();
  require(kernel.file == 0, "it was closed");
}

// RT-7.3, FM-14: a close, and another file under the number at once, through a creator's hook. A reader of the old one and a late
// event of it touch nothing of the new one, whose own reader gets its byte.
void reuse() {
  Kernel kernel;
  Reader old(kernel), fresh(kernel);
  bool over = false;
  addThread("old reader", [&] {
    const int result = old.read();  // its first attempt may come late and meet the new file, as in POSIX
    require(result == 1 || result == -EBADF, "a byte, or closed");
    old.serveUntil([&] { return over; });
  });
  addThread("owner", [&] {
    kernel.entry.close(kFd, [&] { return kernel.close(); });
    kernel.open(0);
    kernel.entry.open(kFd, FdKind::kStream, true, false);
    require(fresh.read() == 1, "the new file's byte");
    over = true;
  });
  addThread("sender", [&] {
    kernel.sendTo(1);
    await("the new file", [&] { return kernel.file == 2; });
    kernel.sendTo(2);
    kernel.sendTo(2);
  });
  runThreads();
}

// The same where no hook tells of the new file: it is adopted by the first call on it.
void adoption() {
  Kernel kernel;
  Reader old(kernel), fresh(kernel);
  bool over = false;
  addThread("old reader", [&] {
    const int result = old.read();
    require(result == -EBADF || result == 1, "closed, or what its first attempt met");
    old.serveUntil([&] { return over; });
  });
  addThread("owner", [&] {
    kernel.entry.close(kFd, [&] { return kernel.close(); });
    kernel.open(2);
    require(fresh.read() == 1, "the new file's byte");
    over = true;
  });
  runThreads();
}

// A short read proves the descriptor empty, without the lock: the next read may go straight to wait.
void shortRead() {
  Kernel kernel;
  Reader reader(kernel);
  addThread("reader", [&] {
    for (int got = 0; got < 3;) {
      const int result = reader.read(false, 2);
      require(result > 0, "it reads what there is");
      got += result;
    }
  });
  addThread("sender", [&] {
    for (int i = 0; i < 3; ++i) kernel.send();
  });
  runThreads();
}

// A wait that no read went before proves nothing: what came before it, and was reported, is read after it.
void watch() {
  Kernel kernel;
  Reader reader(kernel);
  addThread("reader", [&] {
    for (int i = 0; i < 2; ++i) reader.watch();
    require(reader.read() == 1, "it reads the byte");
  });
  addThread("sender", [&] { kernel.send(); });
  runThreads();
}

// The same event, collected by another worker, whose engine has the registration because somebody else waits there.
void edgeElsewhere() {
  Kernel kernel;
  Reader holder(kernel), reader(kernel);
  bool over = false;
  addThread("holder", [&] {
    const uint32_t generation = Entry::generationOf(kernel.entry.awaitOpen(kFd));
    const Waker waker{{&holder.core, holder.core.wait.prepare()}};
    FdWaiter<Engine> waiter;
    waiter.waker = waker;
    waiter.engine = &holder.engine;
    const uint64_t edges = kernel.entry.edges(Direction::kWrite);
    require(kernel.entry.enqueue(kFd, generation, Direction::kWrite, edges, false, waiter) == 0, "it waits to write");
    holder.serveUntil([&] { return over; });
    kernel.entry.dequeue(Direction::kWrite, waiter);
    require(holder.core.wait.withdraw(waker.epoch), "nobody has woken it");
  });
  addThread("reader", [&] {
    for (int got = 0; got < 2;) {
      const int result = reader.read(false, 2);
      require(result > 0, "it reads what there is");
      got += result;
    }
    over = true;
  });
  addThread("sender", [&] {
    kernel.send();
    kernel.send();
  });
  runThreads();
}

// A registration at the engine of one worker moves to that of another, against an edge.
void move() {
  Kernel kernel;
  Reader first(kernel), second(kernel);
  bool over = false;
  kernel.bytes = 0;
  addThread("first", [&] {
    require(first.read() == 1, "it reads the first byte");
    first.serveUntil([&] { return over; });
  });
  addThread("second", [&] {
    require(second.read() == 1, "it reads a byte");
    over = true;
  });
  addThread("sender", [&] {
    kernel.send();
    kernel.send();
  });
  runThreads();
}

// The end of an engine that has the registration, against an edge: who waits at another one gets the byte.
void engineEnds() {
  Kernel kernel;
  Reader leaving(kernel), staying(kernel);
  addThread("leaving", [&] {
    require(leaving.read(true) <= 1, "it reads, or times out");
    kernel.entry.detachEngine(kFd, leaving.engine);
    leaving.engine.file = 0;  // its epoll is closed
    leaving.engine.reported = false;
    require(!kernel.entry.registered() || kernel.file == 0 || staying.engine.file == kernel.file, "nothing is left there");
  });
  addThread("staying", [&] { require(staying.read() == 1, "it reads a byte"); });
  addThread("sender", [&] {
    kernel.send();
    kernel.send();
  });
  runThreads();
}

// Two close the same number: one does, the other finds it closed; a waiting reader is told.
void twoClosers() {
  Kernel kernel;
  Reader reader(kernel);
  int closed = 0;
  const auto real_close = [&] {
    kernel.enter();
    if (kernel.file == 0) return -EBADF;
    ++closed;
    return kernel.close();
  };
  addThread("reader", [&] { require(reader.read() == -EBADF, "closed"); });
  for (const char* name : {"closer", "other closer"}) {
    addThread(name, [&] { kernel.entry.close(kFd, real_close); });
  }
  runThreads();
  require(closed == 1, "one has closed it");
}

// close(2): the number is free before the close lingers. A call on it and a second close end meanwhile.
void lingeringClose() {
  Kernel kernel;
  Reader reader(kernel);
  bool answered = false;
  addThread("closer", [&] {
    kernel.entry.close(kFd, [&] {
      const int result = kernel.close();
      await("the end of the linger", [&] { return answered; });
      return result;
    });
  });
  addThread("reader", [&] {
    require(reader.read() == -EBADF, "closed");
    require(reader.read() == -EBADF, "closed for the next call, too");
    const int again = kernel.entry.close(kFd, [&] {
      kernel.enter();
      return kernel.file == 0 ? -EBADF : kernel.close();
    });
    require(again == -EBADF, "and for another closer");
    answered = true;
  });
  runThreads();
}

// A signal handler closes the number over any step of a thread that waits for it, collects its events or closes another.
void closeInAHandler() {
  Kernel kernel;
  Reader reader(kernel);
  bool closed = false;
  const auto handler = [&] {
    closed = true;
    if (Entry::interrupting()) {
      kernel.entry.closeLater(kFd);
    } else {
      kernel.entry.close(kFd, [&] { return kernel.close(); });
    }
  };
  addThread("reader", [&] {
    mayBeInterruptedBy(handler);
    const int result = reader.read();
    require(result == 1 || (closed && result == -EBADF), "the byte, or closed");
  });
  addThread("sender", [&] { kernel.send(); });
  runThreads();
  require(closed == (kernel.file == 0), "what the handler closed is closed");
}

// The same over another thread's steps, while the reader waits.
void closeInAHandlerElsewhere() {
  Kernel kernel;
  kernel.sent[1] = 1;  // it is woken without an event, too
  Reader reader(kernel), other(kernel);
  bool over = false;
  bool closed = false;
  const auto handler = [&] {
    closed = true;
    if (Entry::interrupting()) {
      kernel.entry.closeLater(kFd);
    } else {
      kernel.entry.close(kFd, [&] { return kernel.close(); });
    }
  };
  addThread("reader", [&] {
    const int result = reader.read();
    require(result == 1 || (closed && result == -EBADF), "the byte, or closed");
    over = true;
  });
  addThread("interrupted", [&] {
    mayBeInterruptedBy(handler);
    kernel.entry.wakeAll(Direction::kRead);
    other.serveUntil([&] { return over; });
  });
  addThread("sender", [&] { kernel.send(); });
  runThreads();
  require(closed == (kernel.file == 0), "what the handler closed is closed");
}

// Waits by the ring and by the epoll take turns. The registration may be at another worker's engine, whose events may be under way
// when a wait by the ring ends it. The next wait makes it again and learns what is there. wakeAll() and a timeout end waits, too.
void receiveAndRead() {
  Kernel kernel;
  Reader other(kernel), reader(kernel);
  reader.has_ring = true;
  bool over = false;
  addThread("other", [&] {
    require(other.read() == 1, "it reads a byte");
    other.serveUntil([&] { return over; });
  });
  addThread("reader", [&] {
    for (int got = 0, i = 0; got < 3; ++i) got += std::max(reader.read(i == 0, 2, i % 2 == 0), 0);
    over = true;
  });
  addThread("sender", [&] {
    for (int i = 0; i < 3; ++i) kernel.send();
    kernel.entry.wakeAll(Direction::kRead);
    for (int i = 0; i < 2; ++i) kernel.send();
  });
  runThreads();
}

// The ring's waits are of the other direction, and leave the registration to who waits by the epoll.
void receiveBesideAReader() {
  Kernel kernel;
  Reader reader(kernel), other(kernel, Direction::kWrite);
  other.has_ring = true;
  addThread("reader", [&] {
    for (int i = 0; i < 2; ++i) require(reader.read() == 1, "it reads the byte");
  });
  addThread("other", [&] {
    for (int i = 0; i < 2; ++i) require(other.read(false, 1, true) == 1, "the ring reads a byte");
  });
  addThread("sender", [&] {
    for (int i = 0; i < 4; ++i) kernel.send();
  });
  runThreads();
}

}  // namespace

std::vector<Scenario> fdScenarios() {
  return {
      {"fd/read", read},
      {"fd/short_read", shortRead},
      {"fd/watch", watch},
      {"fd/edge_elsewhere", edgeElsewhere},
      {"fd/two_readers", twoReaders},
      {"fd/timeout", timeout},
      {"fd/close", close},
      {"fd/reuse", reuse},
      {"fd/adoption", adoption},
      {"fd/move", move},
      {"fd/engine_ends", engineEnds},
      {"fd/two_closers", twoClosers},
      {"fd/lingering_close", lingeringClose},
      {"fd/close_in_a_handler", closeInAHandler},
      {"fd/close_in_a_handler_elsewhere", closeInAHandlerElsewhere},
      {"fd/receive_and_read", receiveAndRead},
      {"fd/receive_beside_a_reader", receiveBesideAReader},
  };
}

}  // namespace sylar::model
