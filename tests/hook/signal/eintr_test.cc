// Signal handlers that run while a fiber waits in a hooked call: which of them end the call, as the kernel would have it.
#include <atomic>
#include <chrono>

#include "sylar/base/sanitizers.h"
#include "tests/hook/process/children.h"
#include "tests/hook/same_as_libc/same_as_libc.h"
#include "tests/hook/signal/signal_support.h"
#include "tests/support/thread_state.h"

namespace sylar::test {
namespace {

struct Outcome {
  long result = 0;
  int error = 0;
  bool operator==(const Outcome&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Outcome& one) {
  return out << one.result << ' ' << (one.result == -1 ? ::strerrorname_np(one.error) : "");
}

Outcome outcomeOf(const Waiting& waiting) {
  const long result = waiting.call();
  return {result == -1 ? -1 : 0, result == -1 ? errno : 0};
}

/// Returns true if `fiber` is where a signal can end the call. On the way there it may wait for a file: another test may have
/// mounted a file system of a process, and then each path is looked up first.
bool waits(const Fiber& fiber) {
  const std::string what = control(fiber).describe();
  return stateOf(fiber) == FiberState::kParked && what.find("waits for a file") == what.npos &&
         what.find("helper thread") == what.npos;
}

/// Makes the call in a fiber, and lets it succeed if it still waits when another fiber of the thread runs. The signal is raised
/// before the call, or by that other fiber once the call waits.
Outcome inFiberInterrupted(const WaitingCase& one, bool before = false) {
  Outcome outcome;
  inFiber([&] {
    const Waiting waiting = one.make();
    const Fiber::ptr me = Fiber::GetThis();
    bool done = false;
    bool through = false;
    IOManager::GetThis()->schedule([&, me, thread = ::pthread_self()] {
      while (!done && !waits(*me)) Fiber::YieldToReady();  // the time of a short sleep may be over
      if (!before) ::pthread_kill(thread, SIGUSR1);
      untilPolled();
      if (!done && waiting.finish != nullptr) waiting.finish();
      through = true;
    });
    if (before) ::raise(SIGUSR1);
    outcome = outcomeOf(waiting);
    done = true;
    while (!through) Fiber::YieldToReady();
  });
  EXPECT_EQ(g_handled.load(), 1);
  return outcome;
}

/// Makes the call on a plain thread, where it is the kernel's.
Outcome onThreadInterrupted(const WaitingCase& one) {
  const Waiting waiting = one.make();
  Outcome outcome;
  std::atomic<pid_t> thread{0};
  std::atomic<bool> done{false};
  std::thread caller([&] {
    thread.store(threadId());
    outcome = outcomeOf(waiting);
    done.store(true);
  });
  const auto untilItWaits = [&] {
    while (!done.load() && (thread.load() == 0 || !sleepsInCall(thread.load()))) std::this_thread::yield();
  };
  untilItWaits();
  sys::call(SYS_tgkill, ::getpid(), thread.load(), SIGUSR1);
  while (g_handled.load() == 0) std::this_thread::yield();
  untilItWaits();
  if (!done.load() && waiting.finish != nullptr) waiting.finish();
  caller.join();
  return outcome;
}

constexpr Outcome kInterrupted{-1, EINTR};
constexpr Outcome kSucceeds{0, 0};

class EintrOf : public testing::TestWithParam<WaitingCase> {};

// The table says what the kernel does.
TEST_P(EintrOf, IsTheKernelsOnAThread) {
#ifdef SYLAR_TSAN
  GTEST_SKIP() << "ThreadSanitizer keeps a signal back until libc's call has returned";
#endif
  for (const bool restart : {false, true}) {
    const CountingHandler handler(restart ? SA_RESTART : 0);
    EXPECT_EQ(onThreadInterrupted(GetParam()), !restart || GetParam().never_restarted ? kInterrupted : kSucceeds);
  }
}

// HA-9.
TEST_P(EintrOf, IsTheSameInAFiberUnderPosix) {
  const EintrMode posix(HookEintr::kPosix);
  for (const bool restart : {false, true}) {
    const CountingHandler handler(restart ? SA_RESTART : 0);
    EXPECT_EQ(inFiberInterrupted(GetParam()), !restart || GetParam().never_restarted ? kInterrupted : kSucceeds) << restart;
  }
}

// FM-09.
TEST_P(EintrOf, NeverComesUnderRestart) {
  g_sleep_ms = 20;
  for (const bool restart : {false, true}) {
    const CountingHandler handler(restart ? SA_RESTART : 0);
    EXPECT_EQ(inFiberInterrupted(GetParam()), kSucceeds) << restart;
  }
  g_sleep_ms = 60'000;
}

// HA-9: a handler that ran before the call does not end it.
TEST_P(EintrOf, IsNotSaidForAHandlerThatRanBefore) {
  const EintrMode posix(HookEintr::kPosix);
  g_sleep_ms = 20;
  for (const bool restart : {false, true}) {
    const CountingHandler handler(restart ? SA_RESTART : 0);
    EXPECT_EQ(inFiberInterrupted(GetParam(), true), kSucceeds) << restart;
  }
  g_sleep_ms = 60'000;
}

INSTANTIATE_TEST_SUITE_P(Calls, EintrOf, testing::ValuesIn(waitingCases()), [](const auto& one) { return one.param.name; });

// ---- Which call a handler ends. ----------------------------------------------------------------------------------------------

long readByte(int fd) {
  char byte;
  return ::read(fd, &byte, 1);
}

constexpr Outcome kWaits{1, 0};

/// Fibers that each make a call, and wait in it. All must have ended by the end of the scope, or be about to.
class Callers {
 public:
  Callers() = default;
  ~Callers() {
    for (const auto& one : m_all) one->fiber->join();
  }
  Callers(const Callers&) = delete;
  Callers& operator=(const Callers&) = delete;

  void add(std::function<long()> call) {
    One& one = *m_all.emplace_back(std::make_unique<One>());
    one.fiber = std::make_shared<Fiber>([&one, call = std::move(call)] {
      const long result = call();
      one.outcome = {result == -1 ? -1 : 0, result == -1 ? errno : 0};
    });
    IOManager::GetThis()->schedule(one.fiber);
    untilParked(*one.fiber);
  }
  const Outcome& operator[](size_t i) const { return m_all[i]->outcome; }

 private:
  struct One {
    Outcome outcome = kWaits;
    Fiber::ptr fiber;
  };
  std::vector<std::unique_ptr<One>> m_all;
};

// HA-9.
TEST(EintrOfMany, EndsTheLongestWaitOnly) {
  const EintrMode posix(HookEintr::kPosix);
  const CountingHandler handler(0);
  inFiber([] {
    const Pair pipe(makePipe(hookedCalls()));
    Callers outcomes;
    for (size_t i = 0; i < 3; ++i) outcomes.add([&pipe] { return readByte(pipe.a); });
    for (size_t ended = 1; ended <= 3; ++ended) {
      signalWorker(SIGUSR1);
      untilPolled();
      for (size_t i = 0; i < 3; ++i) EXPECT_EQ(outcomes[i], i < ended ? kInterrupted : kWaits) << ended << ' ' << i;
    }
  });
}

// HA-9.
TEST(EintrOfMany, SkipsCallsThatAreRestarted) {
  const EintrMode posix(HookEintr::kPosix);
  const CountingHandler handler(SA_RESTART);
  inFiber([] {
    const Pair pipe(makePipe(hookedCalls()));
    Callers outcomes;
    outcomes.add([&pipe] { return readByte(pipe.a); });
    outcomes.add([] { return ::poll(nullptr, 0, -1); });
    signalWorker(SIGUSR1);
    untilPolled();
    EXPECT_EQ(outcomes[0], kWaits);
    EXPECT_EQ(outcomes[1], kInterrupted);
    EXPECT_EQ(::write(pipe.b, "x", 1), 1);
  });
}

TEST(EintrOfMany, EndsPauseBeforeLongerWaits) {
  const EintrMode posix(HookEintr::kPosix);
  const CountingHandler handler(0);
  inFiber([] {
    const Pair pipe(makePipe(hookedCalls()));
    Callers outcomes;
    outcomes.add([&pipe] { return readByte(pipe.a); });
    outcomes.add([] { return ::pause(); });
    signalWorker(SIGUSR1);
    untilPolled();
    EXPECT_EQ(outcomes[0], kWaits);
    EXPECT_EQ(outcomes[1], kInterrupted);
    EXPECT_EQ(::write(pipe.b, "x", 1), 1);
  });
}

TEST(EintrOfMany, SparesACallWhoseMaskBlocksTheSignal) {
  const EintrMode posix(HookEintr::kPosix);
  const CountingHandler handler(0);
  inFiber([] {
    const Pair pipe(makePipe(hookedCalls()));
    Callers outcomes;
    outcomes.add([&pipe] {
      pollfd in{pipe.a, POLLIN, 0};
      sigset_t mask;
      ::sigemptyset(&mask);
      ::sigaddset(&mask, SIGUSR1);
      return ::ppoll(&in, 1, nullptr, &mask);
    });
    outcomes.add([] { return ::poll(nullptr, 0, -1); });
    signalWorker(SIGUSR1);
    untilPolled();
    EXPECT_EQ(outcomes[0], kWaits);
    EXPECT_EQ(outcomes[1], kInterrupted);
    EXPECT_EQ(::write(pipe.b, "x", 1), 1);
  });
}

// Cause: a handler that had ended nothing ended any call at its next wait. The call waits a second time.
TEST(EintrOfMany, SparesACallWhoseMaskBlocksTheSignalWhenItWaitsAgain) {
  const EintrMode posix(HookEintr::kPosix);
  const CountingHandler handler(0);
  inFiber([] {
    const Pair pipe(makePipe(hookedCalls()));
    Callers outcomes;
    outcomes.add([&pipe] {
      pollfd in{pipe.a, POLLIN, 0};
      sigset_t mask;
      ::sigemptyset(&mask);
      ::sigaddset(&mask, SIGUSR1);
      return ::ppoll(&in, 1, nullptr, &mask);
    });
    signalWorker(SIGUSR1);
    char byte = 0;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(::write(pipe.b, "x", 1), 1);
      untilPolled(1);
      EXPECT_EQ(::read(pipe.a, &byte, 1), 1);  // the fiber is awake, and behind this one
      untilPolled();
      EXPECT_EQ(outcomes[0], kWaits);
    }
    EXPECT_EQ(::write(pipe.b, "x", 1), 1);
    untilPolled();
    EXPECT_EQ(outcomes[0], kSucceeds);
  });
}

// HA-9: a call that is on its way from one wait to the next stands in no queue, and a handler that runs then ends it all the same.
TEST(EintrOfMany, EndsACallThatIsBetweenTwoWaits) {
  const EintrMode posix(HookEintr::kPosix);
  const CountingHandler handler(0);
  inFiber([] {
    const Pair pipe(makePipe(hookedCalls()));
    Callers outcomes;
    outcomes.add([&pipe] { return readByte(pipe.a); });
    EXPECT_EQ(::write(pipe.b, "x", 1), 1);
    untilPolled(1);
    char byte = 0;
    EXPECT_EQ(::read(pipe.a, &byte, 1), 1);  // the fiber is awake, and behind this one
    EXPECT_EQ(outcomes[0], kWaits);
    signalWorker(SIGUSR1);
    untilPolled();
    EXPECT_EQ(outcomes[0], kInterrupted);
    EXPECT_EQ(::write(pipe.b, "x", 1), 1);
  });
}

// HA-9, signal(7): a handler with SA_RESTART that ran before the first byte has restarted the call, which it does not end
// afterwards.
TEST(EintrOfMany, SparesACallThatWasRestartedBeforeItsFirstByte) {
  const EintrMode posix(HookEintr::kPosix);
  const CountingHandler handler(SA_RESTART);
  inFiber([] {
    const Pair pair = unixPair();
    long received = 0;
    Callers outcomes;
    outcomes.add([&] {
      char bytes[2];
      return received = ::recv(pair.a, bytes, sizeof bytes, MSG_WAITALL);
    });
    signalWorker(SIGUSR1);
    for (int i = 0; i < 2; ++i) {
      untilPolled();
      EXPECT_EQ(outcomes[0], kWaits);
      EXPECT_EQ(::write(pair.b, "x", 1), 1);
    }
    untilPolled();
    EXPECT_EQ(received, 2);
  });
}

// The look of a ppoll lets a blocked signal through. The kernel ends that call.
TEST(EintrOfMany, EndsNothingElseThanTheCallThatLetsTheSignalThrough) {
  const EintrMode posix(HookEintr::kPosix);
  const CountingHandler handler(0);
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  inFiber([&] {
    const Pair pipe(makePipe(hookedCalls()));
    Callers outcomes;
    outcomes.add([&pipe] { return readByte(pipe.a); });
    outcomes.add([&before] { return ::ppoll(nullptr, 0, nullptr, &before); });
    signalWorker(SIGUSR1);
    EXPECT_EQ(g_handled.load(), 0);
    while (outcomes[1] == kWaits) Fiber::YieldToReady();
    EXPECT_EQ(g_handled.load(), 1);
    EXPECT_EQ(outcomes[0], kWaits);
    EXPECT_EQ(outcomes[1], kInterrupted);
    EXPECT_EQ(::write(pipe.b, "x", 1), 1);
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(EintrOfMany, ComesFromHandlersOfTheWorkersThreadOnly) {
  const EintrMode posix(HookEintr::kPosix);
  const CountingHandler handler(0);
  inFiber([] {
    const Pair pipe(makePipe(hookedCalls()));
    Callers outcomes;
    outcomes.add([&pipe] { return readByte(pipe.a); });
    std::thread([] { ::raise(SIGUSR1); }).join();
    EXPECT_EQ(g_handled.load(), 1);
    untilPolled();
    EXPECT_EQ(outcomes[0], kWaits);
    EXPECT_EQ(::write(pipe.b, "x", 1), 1);
  });
}

TEST(EintrOfMany, DoesNotComeFromFaultsOfTheRunningCode) {
  const EintrMode posix(HookEintr::kPosix);
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { g_handled.fetch_add(1); };
  ASSERT_EQ(::sigaction(SIGTRAP, &action, &before), 0);
  g_handled = 0;
  inFiber([] {
    const Pair pipe(makePipe(hookedCalls()));
    Callers outcomes;
    outcomes.add([&pipe] { return readByte(pipe.a); });
    ::raise(SIGTRAP);
    EXPECT_EQ(g_handled.load(), 1);
    untilPolled();
    EXPECT_EQ(outcomes[0], kWaits);
    EXPECT_EQ(::write(pipe.b, "x", 1), 1);
  });
  ::sigaction(SIGTRAP, &before, nullptr);
}

// HA-9.
TEST(Eintr, WakesAWorkerThatSleeps) {
  const EintrMode posix(HookEintr::kPosix);
  const CountingHandler handler(0);
  std::atomic<pid_t> worker{0};
  std::thread sender([&worker] {
    while (worker.load() == 0 || !sleepsInCall(worker.load())) std::this_thread::yield();
    sys::call(SYS_tgkill, ::getpid(), worker.load(), SIGUSR1);
  });
  inFiber([&worker] {
    const Pair pipe(makePipe(hookedCalls()));
    worker.store(threadId());
    EXPECT_EQ(readByte(pipe.a), -1);
    EXPECT_EQ(errno, EINTR);
  });
  sender.join();
}

// ---- What an interrupted call returns. ---------------------------------------------------------------------------------------

/// Sends the signal to the calling fiber's thread when that waits.
void killOnceParked(std::function<void()> before_it = [] {}) {
  IOManager::GetThis()->schedule([me = Fiber::GetThis(), thread = ::pthread_self(), before_it = std::move(before_it)] {
    untilParked(*me);
    before_it();
    EXPECT_EQ(::pthread_kill(thread, SIGUSR1), 0);
  });
}

// HA-9.
TEST(Eintr, TellsTheRemainingTime) {
  const EintrMode posix(HookEintr::kPosix);
  const CountingHandler handler(SA_RESTART);
  inFiber([] {
    const timespec wanted{1000, 0};
    const auto expectMost = [](const timespec& rest) {
      EXPECT_GT(rest.tv_sec, 500);
      EXPECT_LT(rest.tv_sec, 1000);
    };
    timespec rest{};
    killOnceParked();
    EXPECT_EQ(::nanosleep(&wanted, &rest), -1);
    expectMost(rest);
    rest = {};
    killOnceParked();
    EXPECT_EQ(::clock_nanosleep(CLOCK_MONOTONIC, 0, &wanted, &rest), EINTR);
    expectMost(rest);
    killOnceParked();
    const unsigned seconds = ::sleep(1000);
    expectMost({seconds, 0});
    EXPECT_EQ(errno, EINTR);
    timeval timeout{1000, 0};
    killOnceParked();
    EXPECT_EQ(::select(0, nullptr, nullptr, nullptr, &timeout), -1);
    expectMost({timeout.tv_sec, 0});
  });
}

// HA-9, nanosleep(2). Cause: the hook wrote the remaining time itself, which ended the process.
TEST(Eintr, IsNotSaidIfTheRemainingTimeCannotBeWritten) {
  const EintrMode posix(HookEintr::kPosix);
  const CountingHandler handler(0);
  inFiber([] {
    const timespec wanted{1000, 0};
    auto* const nowhere = static_cast<timespec*>(badPointer());
    killOnceParked();
    EXPECT_EQ(::nanosleep(&wanted, nowhere), -1);
    EXPECT_EQ(errno, EFAULT);
    killOnceParked();
    EXPECT_EQ(::clock_nanosleep(CLOCK_MONOTONIC, 0, &wanted, nowhere), EFAULT);
  });
}

// HA-9.
TEST(Eintr, IsNotSaidIfThereIsSomethingToReturn) {
  const EintrMode posix(HookEintr::kPosix);
  const CountingHandler handler(0);
  inFiber([] {
    const Pair pair = unixPair();
    char bytes[8];
    killOnceParked([&] { EXPECT_EQ(::write(pair.b, "x", 1), 1); });
    EXPECT_EQ(::read(pair.a, bytes, sizeof bytes), 1);
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
    killOnceParked();
    EXPECT_EQ(::recv(pair.a, bytes, sizeof bytes, MSG_WAITALL), 1);
    setBuffer(pair.a, SO_SNDBUF, 4096);
    const std::vector<char> much(1 << 20);
    killOnceParked();
    const ssize_t written = ::write(pair.a, much.data(), much.size());
    EXPECT_GT(written, 0);
    EXPECT_LT(written, static_cast<ssize_t>(much.size()));
  });
}

// HA-9.
TEST(Eintr, LeavesAConnectUnderWay) {
  const EintrMode posix(HookEintr::kPosix);
  const CountingHandler handler(0);
  inFiber([] {
    const int listener = boundSocket(hookedCalls(), SOCK_STREAM, 0);
    const sockaddr_in address = addressOf(listener);
    const int first = ::socket(AF_INET, SOCK_STREAM, 0), second = ::socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connectTo(hookedCalls(), first, address), 0);
    killOnceParked();
    EXPECT_EQ(connectTo(hookedCalls(), second, address), -1);
    EXPECT_EQ(errno, EINTR);
    EXPECT_EQ(::fcntl(second, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_EQ(::fcntl(second, F_SETFL, O_NONBLOCK), 0);
    EXPECT_EQ(connectTo(hookedCalls(), second, address), -1);
    EXPECT_EQ(errno, EALREADY);
    for (const int fd : {listener, first, second}) EXPECT_EQ(::close(fd), 0);
  });
}

// A child's end is told even if its SIGCHLD has a handler.
TEST(Eintr, IsNotSaidByAWaitForTheChildThatRaisesTheSignal) {
  const EintrMode posix(HookEintr::kPosix);
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { g_handled.fetch_add(1); };
  ASSERT_EQ(::sigaction(SIGCHLD, &action, &before), 0);
  inFiber([] {
    const Pair pipe(makePipe(hookedCalls()));
    const pid_t child = childThatReads(pipe.a);
    IOManager::GetThis()->schedule([me = Fiber::GetThis(), &pipe] {
      untilParked(*me);
      tellToExit(pipe.b, 7);
    });
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 7);
  });
  ::sigaction(SIGCHLD, &before, nullptr);
}

}  // namespace
}  // namespace sylar::test
