// Signal handlers that are installed through the hooks: what they find is as without hooks, and their own calls are libc's.
#include <csetjmp>
#include <functional>

#include "tests/hook/process/children.h"
#include "tests/hook/signal/signal_support.h"

extern "C" sighandler_t bsd_signal(int signal, sighandler_t handler);

// sigset and siginterrupt.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#ifdef SYLAR_TSAN
/// The thread raises the signal itself, while it holds nothing, so the handler may allocate memory.
extern "C" const char* __tsan_default_options() { return "history_size=4:report_signal_unsafe=0"; }
#endif

namespace sylar::test {
namespace {

// ---- Calls in a handler. -----------------------------------------------------------------------------------------------------

std::function<void()>* g_in_handler = nullptr;
bool g_handling = false;

void runInHandler(int) {
  g_handling = true;
  (*g_in_handler)();
  g_handling = false;
}

/// Runs `body` in a handler of SIGUSR1, on the stack of a fiber, whose worker has another one to run. Then runs `after`, which has
/// to let that one run.
void inHandler(
    std::function<void()> body, std::function<void()> after = [] { EXPECT_EQ(::usleep(1), 0); }) {
  g_in_handler = &body;
  const CountingHandler handler(0, runInHandler);
  inFiber([&] {
    int ran = 0;
    IOManager::GetThis()->schedule([&ran] {
      EXPECT_FALSE(g_handling);
      ++ran;
    });
    ::raise(SIGUSR1);
    EXPECT_EQ(ran, 0);
    after();
    EXPECT_EQ(ran, 1) << "the hooks do not act again";
  });
  g_handling = false;
}

// FM-31.
TEST(SignalHandler, WaitsAsWithoutHooks) {
  const Pair pipe(makePipe(hookedCalls()));
  inHandler([&] {
    const timespec moment{0, 1'000'000};
    pollfd in{pipe.a, POLLIN, 0};
    EXPECT_EQ(::usleep(1000), 0);
    EXPECT_EQ(::nanosleep(&moment, nullptr), 0);
    EXPECT_EQ(::poll(&in, 1, 1), 0);
    std::thread writer([&pipe] { EXPECT_EQ(::write(pipe.b, "x", 1), 1); });
    char byte = 0;
    EXPECT_EQ(::read(pipe.a, &byte, 1), 1);
    writer.join();
  });
}

// FM-31.
TEST(SignalHandler, HasTheDescriptorsTrue) {
  Ends ends{};
  inHandler([&] { ends = makeUnix(hookedCalls(), SOCK_STREAM); },
            [&] {
              const Pair pair(ends);
              IOManager::GetThis()->schedule([&] { EXPECT_EQ(::write(pair.b, "x", 1), 1); });
              char byte;
              EXPECT_EQ(::read(pair.a, &byte, 1), 1);
            });
}

sigjmp_buf g_before;

[[gnu::noinline]] void sleepFurtherDown(int depth) {
  volatile char frame[256];
  frame[0] = static_cast<char>(depth);
  if (depth == 0) {
    EXPECT_EQ(::usleep(1), 0);
  } else {
    sleepFurtherDown(depth - 1);
  }
  frame[1] = frame[0];
}

/// Leaves a handler by a jump, and runs `after`, in which another fiber runs.
void jumpingOut(void (*after)()) {
  const CountingHandler handler(0, [](int) { siglongjmp(g_before, 1); });
  inFiber([after] {
    static int ran;
    ran = 0;
    IOManager::GetThis()->schedule([] { ++ran; });
    if (sigsetjmp(g_before, 1) == 0) {
      ::raise(SIGUSR1);
      FAIL() << "the handler has returned";
    }
    after();
    EXPECT_EQ(ran, 1);
  });
}

TEST(SignalHandler, MayJumpOut) {
  jumpingOut([] { EXPECT_EQ(::usleep(1), 0); });
}

TEST(SignalHandler, MayJumpOutIntoDeeperFrames) {
  jumpingOut([] { sleepFurtherDown(100); });
}

stack_t g_stack_before{};
void leaveSignalStack() { ::sigaltstack(&g_stack_before, nullptr); }

/// Runs `body` in a handler with a stack of its own. If it jumps out, leaveSignalStack() must follow.
template <class Body>
void onSignalStack(Body body) {
  static std::vector<char> stack(256 * 1024);
  const stack_t own{stack.data(), 0, stack.size()};
  struct sigaction action {
  }, before{};
  action.sa_flags = SA_ONSTACK;
  action.sa_handler = body;
  ASSERT_EQ(::sigaltstack(&own, &g_stack_before), 0);
  ASSERT_EQ(::sigaction(SIGUSR2, &action, &before), 0);
  ::raise(SIGUSR2);
  ::sigaction(SIGUSR2, &before, nullptr);
  leaveSignalStack();
}

// Cause: only the frame of the jump was looked at, which on a signal stack is in no fiber.
TEST(SignalHandler, MayJumpOutThroughOneWithItsOwnStack) {
  const CountingHandler handler(0, [](int) { onSignalStack([](int) { siglongjmp(g_before, 1); }); });
  inFiber([] {
    static int ran;
    ran = 0;
    IOManager::GetThis()->schedule([] { ++ran; });
    if (sigsetjmp(g_before, 1) == 0) {
      ::raise(SIGUSR1);
      FAIL() << "the handler has returned";
    }
    leaveSignalStack();
    sleepFurtherDown(100);
    EXPECT_EQ(ran, 1);
  });
}

TEST(SignalHandler, IsStillOneAfterAJumpInsideOneWithItsOwnStack) {
  inHandler([] {
    onSignalStack([](int) {
      static jmp_buf inside;
      if (setjmp(inside) == 0) longjmp(inside, 1);
    });
    EXPECT_EQ(::usleep(1), 0);
  });
}

TEST(SignalHandler, IsStillOneAfterAJumpInsideIt) {
  inHandler([] {
    static jmp_buf inside;
    if (setjmp(inside) == 0) longjmp(inside, 1);
    EXPECT_EQ(::usleep(1), 0);
  });
}

TEST(SignalHandler, IsStillOneAfterAnotherThatInterruptedIt) {
  const auto count = [](int) { g_handled.fetch_add(1); };
  struct sigaction inner {
  }, before{};
  inner.sa_handler = count;
  ASSERT_EQ(::sigaction(SIGUSR2, &inner, &before), 0);
  inHandler([] {
    ::raise(SIGUSR2);
    EXPECT_EQ(::usleep(1), 0);
  });
  EXPECT_EQ(g_handled.load(), 1);
  ::sigaction(SIGUSR2, &before, nullptr);
}

// ---- Actions. ----------------------------------------------------------------------------------------------------------------

template <class Function>
Function libcs(const char* name, Function) {
  static void* const libc = ::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  return reinterpret_cast<Function>(::dlsym(libc, name));
}
#define SYLAR_LIBCS_(name) libcs(#name, &::name)

void first(int) { g_handled.fetch_add(1); }
void second(int) { g_handled.fetch_add(100); }

struct Action {
  sighandler_t handler;
  int flags;
  bool masks_itself;
  bool masks_another;
  bool operator==(const Action&) const = default;
};

Action actionOf(int signal, decltype(&::sigaction) ask) {
  struct sigaction action {};
  EXPECT_EQ(ask(signal, nullptr, &action), 0);
  return {action.sa_handler, action.sa_flags, ::sigismember(&action.sa_mask, signal) == 1,
          ::sigismember(&action.sa_mask, SIGUSR2) == 1};
}

/// Does the same with libc and through the hooks. What it returns and the actions that remain must be the same.
template <class Install>
void expectSame(Install install) {
  const auto libc_sigaction = SYLAR_LIBCS_(sigaction);
  struct sigaction before {};
  libc_sigaction(SIGUSR1, nullptr, &before);
  const std::vector<long> expected = install(true);
  const Action action = actionOf(SIGUSR1, libc_sigaction);
  libc_sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(install(false), expected);
  EXPECT_EQ(actionOf(SIGUSR1, &::sigaction), action);
  libc_sigaction(SIGUSR1, &before, nullptr);
}

long numberOf(sighandler_t handler) { return reinterpret_cast<long>(handler); }

TEST(SignalAction, IsReadBackAsItWasGiven) {
  for (const int flags : {0, SA_RESTART, SA_SIGINFO, SA_RESTART | SA_SIGINFO | SA_NODEFER, SA_ONSTACK | SA_NOCLDWAIT}) {
    struct sigaction given {};
    given.sa_handler = first;
    given.sa_flags = flags;
    ::sigaddset(&given.sa_mask, SIGUSR2);
    expectSame([&](bool libc) {
      const auto act = libc ? SYLAR_LIBCS_(sigaction) : &::sigaction;
      struct sigaction old {};
      std::vector<long> results{act(SIGUSR1, &given, &old), numberOf(old.sa_handler)};
      given.sa_handler = second;
      results.push_back(act(SIGUSR1, &given, &old));
      results.push_back(numberOf(old.sa_handler));
      given.sa_handler = first;
      results.push_back(act(SIGUSR1, &old, nullptr));  // what was read back may be given again
      return results;
    });
  }
}

TEST(SignalAction, OfSignalAndItsKinIsLibcs) {
  using Set = sighandler_t (*)(int, sighandler_t);
  const std::pair<Set, Set> kin[] = {
      {&::signal, SYLAR_LIBCS_(signal)},
      {&::bsd_signal, SYLAR_LIBCS_(bsd_signal)},
      {&::ssignal, SYLAR_LIBCS_(ssignal)},
      {&::sysv_signal, SYLAR_LIBCS_(sysv_signal)},
      {&::__sysv_signal, SYLAR_LIBCS_(__sysv_signal)},
      {&::sigset, SYLAR_LIBCS_(sigset)},
  };
  for (const auto& one : kin) {
    for (const sighandler_t handler : {+[](int) {}, SIG_IGN, SIG_DFL, SIG_ERR}) {
      expectSame([&](bool libc) {
        const Set set = libc ? one.second : one.first;
        return std::vector<long>{numberOf(set(SIGUSR1, first)), numberOf(set(SIGUSR1, second)), numberOf(set(SIGUSR1, handler)),
                                 numberOf(set(SIGKILL, first)), numberOf(set(1000, first))};
      });
    }
  }
  expectSame([](bool libc) {
    const auto set = libc ? SYLAR_LIBCS_(sigset) : &::sigset;
    return std::vector<long>{numberOf(set(SIGUSR1, first)), numberOf(set(SIGUSR1, SIG_HOLD)), numberOf(set(SIGUSR1, second))};
  });
}

TEST(SignalAction, FollowsSiginterrupt) {
  expectSame([](bool libc) {
    const auto set = libc ? SYLAR_LIBCS_(signal) : &::signal;
    const auto interrupt = libc ? SYLAR_LIBCS_(siginterrupt) : &::siginterrupt;
    std::vector<long> results{numberOf(set(SIGUSR1, first)), interrupt(SIGUSR1, 1), numberOf(set(SIGUSR1, second)),
                              interrupt(SIGUSR1, 0),         interrupt(SIGUSR1, 1), interrupt(1000, 1)};
    results.push_back(interrupt(SIGUSR1, 0));
    return results;
  });
}

TEST(SignalAction, OfAHandlerThatHooksDoNotKnowIsReadBack) {
  struct sigaction raw {
  }, old{};
  raw.sa_handler = first;
  const auto libc_sigaction = SYLAR_LIBCS_(sigaction);
  struct sigaction before {};
  libc_sigaction(SIGUSR1, &raw, &before);
  EXPECT_EQ(::sigaction(SIGUSR1, nullptr, &old), 0);
  EXPECT_EQ(old.sa_handler, &first);
  EXPECT_EQ(::signal(SIGUSR1, SIG_DFL), &first);
  libc_sigaction(SIGUSR1, &before, nullptr);
}

siginfo_t g_info;
void* g_context;

TEST(SignalAction, HandsOverTheSignalsInformation) {
  struct sigaction action {
  }, before{};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t* info, void* context) {
    g_info = *info;
    g_context = context;
  };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  inFiber([] {
    siginfo_t info{};
    info.si_signo = SIGUSR1;
    info.si_code = SI_QUEUE;
    info.si_value.sival_int = 42;
    EXPECT_EQ(::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), threadId(), SIGUSR1, &info), 0);
  });
  EXPECT_EQ(g_info.si_signo, SIGUSR1);
  EXPECT_EQ(g_info.si_code, SI_QUEUE);
  EXPECT_EQ(g_info.si_value.sival_int, 42);
  EXPECT_NE(g_context, nullptr);
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST(SignalAction, IsTakenAwayByResethand) {
  struct sigaction action {
  }, before{};
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  action.sa_handler = first;
  ASSERT_EQ(::sigaction(SIGURG, &action, &before), 0);  // by default it is ignored
  g_handled = 0;
  inFiber([] {
    ::raise(SIGURG);
    ::raise(SIGURG);
  });
  EXPECT_EQ(g_handled.load(), 1);
  EXPECT_EQ(actionOf(SIGURG, &::sigaction).handler, SIG_DFL);
  ::sigaction(SIGURG, &before, nullptr);
}

int g_depth;
int g_deepest;

/// Returns how many handlers were in one another.
int depthWith(int flags) {
  g_depth = g_deepest = 0;
  const CountingHandler handler(flags, [](int) {
    g_deepest = std::max(g_deepest, ++g_depth);
    if (g_handled.fetch_add(1) < 2) ::raise(SIGUSR1);
    --g_depth;
  });
  inFiber([] { ::raise(SIGUSR1); });
  EXPECT_EQ(g_handled.load(), 3);
  return g_deepest;
}

TEST(SignalAction, MasksItsSignalUnlessNodefer) {
  EXPECT_EQ(depthWith(0), 1);
  EXPECT_EQ(depthWith(SA_NODEFER), 3);
}

const char* g_frame;

TEST(SignalAction, RunsOnTheSignalStackIfAsked) {
  std::vector<char> stack(256 * 1024);
  for (const int flags : {0, SA_ONSTACK}) {
    const CountingHandler handler(flags, [](int) { g_frame = static_cast<const char*>(__builtin_frame_address(0)); });
    inFiber([&stack] {
      const stack_t own{stack.data(), 0, stack.size()};
      stack_t was{};
      ASSERT_EQ(::sigaltstack(&own, &was), 0);
      ::raise(SIGUSR1);
      ASSERT_EQ(::sigaltstack(&was, nullptr), 0);
    });
    EXPECT_EQ(g_frame >= stack.data() && g_frame < stack.data() + stack.size(), flags != 0);
  }
}

TEST(SignalAction, MayBeChangedByItsHandler) {
  const CountingHandler handler(0, [](int) {
    g_handled.fetch_add(1);
    ::signal(SIGUSR1, second);
  });
  inFiber([] {
    ::raise(SIGUSR1);
    ::raise(SIGUSR1);
  });
  EXPECT_EQ(g_handled.load(), 101);
}

TEST(SignalAction, IsKeptByAForkAndEndsWithAnExec) {
  const CountingHandler handler(0);
  inFiber([] {
    const pid_t child = startChild([] {
      ::raise(SIGUSR1);
      return g_handled.load() == 1 && ::signal(SIGUSR1, second) != SIG_ERR && ::raise(SIGUSR1) == 0 ? g_handled.load() : 0;
    });
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 101) << status;
    const pid_t program = startChild([] {
      ::execl("/bin/sh", "sh", "-c", "kill -USR1 $$", nullptr);
      return 99;
    });
    EXPECT_EQ(::waitpid(program, &status, 0), program);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1) << status;
  });
}

template <int kNumber>
void numbered(int) {
  g_handled.fetch_add(kNumber);
}
template <int... kNumber>
constexpr std::array<sighandler_t, sizeof...(kNumber)> makeNumbered(std::integer_sequence<int, kNumber...>) {
  return {numbered<kNumber>...};
}

// Those beyond the last trampoline are installed as they are.
TEST(SignalAction, OfAnyNumberOfHandlersWorks) {
  static constexpr auto kHandlers = makeNumbered(std::make_integer_sequence<int, 300>());
  const pid_t child = startChild([] {
    for (int i = 0; i < 300; ++i) {
      g_handled = 0;
      if (::signal(SIGUSR1, kHandlers[static_cast<size_t>(i)]) == SIG_ERR) return 1;
      ::raise(SIGUSR1);
      if (g_handled.load() != i) return 2;
      if (actionOf(SIGUSR1, &::sigaction).handler != kHandlers[static_cast<size_t>(i)]) return 3;
    }
    return 0;
  });
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace sylar::test
