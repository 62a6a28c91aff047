// Fibers that wait for signals: pause, sigsuspend, sigwait and similar calls park, and end as on a thread, whatever hook.eintr is.
#include "tests/hook/signal/signal_support.h"

extern "C" int __xpg_sigpause(int signal);

namespace sylar::test {
namespace {

/// Blocks SIGUSR1 and SIGUSR2 for its scope, in the thread and in the workers that it makes meanwhile.
class Blocked {
 public:
  Blocked() { EXPECT_EQ(::pthread_sigmask(SIG_BLOCK, &both(), &m_before), 0); }
  ~Blocked() { EXPECT_EQ(::pthread_sigmask(SIG_SETMASK, &m_before, nullptr), 0); }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;
  const sigset_t& before() const { return m_before; }

  static const sigset_t& both() {
    static const sigset_t set = of({SIGUSR1, SIGUSR2});
    return set;
  }
  static sigset_t of(std::initializer_list<int> signals) {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int signal : signals) ::sigaddset(&set, signal);
    return set;
  }

 private:
  sigset_t m_before;
};

/// Sends the signal to the calling fiber's thread when that waits.
void killOnceParked(int signal) {
  IOManager::GetThis()->schedule([me = Fiber::GetThis(), thread = ::pthread_self(), signal] {
    untilParked(*me);
    EXPECT_EQ(::pthread_kill(thread, signal), 0);
  });
}

class SignalWait : public testing::TestWithParam<HookEintr> {
 private:
  const EintrMode m_mode{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Modes, SignalWait, testing::Values(HookEintr::kRestart, HookEintr::kPosix),
                         [](const auto& one) { return one.param == HookEintr::kPosix ? "posix" : "restart"; });

// HA-8.
TEST_P(SignalWait, PauseReturnsWhenAHandlerHasRun) {
  for (const int flags : {0, SA_RESTART}) {
    const CountingHandler handler(flags);
    inFiber([] {
      killOnceParked(SIGUSR1);
      EXPECT_EQ(::pause(), -1);
      EXPECT_EQ(errno, EINTR);
      EXPECT_EQ(g_handled.load(), 1);
      killOnceParked(SIGUSR1);
      EXPECT_EQ(::syscall(SYS_pause), -1);
      EXPECT_EQ(errno, EINTR);
      EXPECT_EQ(g_handled.load(), 2);
    });
  }
}

// HA-8.
TEST_P(SignalWait, SigsuspendLetsABlockedSignalThrough) {
  const CountingHandler handler(SA_RESTART);
  const Blocked blocked;
  inFiber([&] {
    const auto expectOne = [](int result) {
      EXPECT_EQ(result, -1);
      EXPECT_EQ(errno, EINTR);
      EXPECT_EQ(g_handled.exchange(0), 1);
      sigset_t now;
      ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
      EXPECT_EQ(::sigismember(&now, SIGUSR1), 1);
    };
    ::raise(SIGUSR1);
    expectOne(::sigsuspend(&blocked.before()));  // it was pending
    killOnceParked(SIGUSR1);
    expectOne(::sigsuspend(&blocked.before()));
    killOnceParked(SIGUSR1);
    expectOne(__xpg_sigpause(SIGUSR1));
    killOnceParked(SIGUSR1);
    const uint64_t none = 0;
    expectOne(static_cast<int>(::syscall(SYS_rt_sigsuspend, &none, sizeof none)));
    EXPECT_EQ(::syscall(SYS_rt_sigsuspend, &none, 4), -1);
    EXPECT_EQ(errno, EINVAL);
  });
}

TEST_P(SignalWait, SigsuspendIgnoresWhatItsMaskBlocks) {
  const CountingHandler handler(0);
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { g_handled.fetch_add(100); };
  ASSERT_EQ(::sigaction(SIGUSR2, &action, &before), 0);
  inFiber([] {
    const sigset_t mask = Blocked::of({SIGUSR1});
    IOManager::GetThis()->schedule([me = Fiber::GetThis(), thread = ::pthread_self()] {
      untilParked(*me);
      ::pthread_kill(thread, SIGUSR1);
      untilPolled();
      EXPECT_EQ(stateOf(*me), FiberState::kParked);
      ::pthread_kill(thread, SIGUSR2);
    });
    EXPECT_EQ(::sigsuspend(&mask), -1);
    EXPECT_EQ(errno, EINTR);
  });
  EXPECT_EQ(g_handled.load(), 101);
  ::sigaction(SIGUSR2, &before, nullptr);
}

// HA-8.
TEST_P(SignalWait, SigwaitAndItsKinTakeTheSignal) {
  const CountingHandler handler(0);
  const Blocked blocked;
  inFiber([&] {
    const sigset_t set = Blocked::of({SIGUSR1});
    int signal = 0;
    killOnceParked(SIGUSR1);
    EXPECT_EQ(::sigwait(&set, &signal), 0);
    EXPECT_EQ(signal, SIGUSR1);
    siginfo_t info{};
    killOnceParked(SIGUSR1);
    EXPECT_EQ(::sigwaitinfo(&set, &info), SIGUSR1);
    EXPECT_EQ(info.si_signo, SIGUSR1);
    EXPECT_EQ(info.si_pid, ::getpid());
    const timespec minute{60, 0};
    killOnceParked(SIGUSR1);
    EXPECT_EQ(::sigtimedwait(&set, nullptr, &minute), SIGUSR1);
    killOnceParked(SIGUSR1);
    EXPECT_EQ(::syscall(SYS_rt_sigtimedwait, &set, &info, &minute, 8), SIGUSR1);
    ::raise(SIGUSR1);  // it is pending
    EXPECT_EQ(::sigwaitinfo(&set, nullptr), SIGUSR1);
  });
  EXPECT_EQ(g_handled.load(), 0);
}

TEST_P(SignalWait, SigtimedwaitHasATimeout) {
  const Blocked blocked;
  inFiber([&] {
    const sigset_t set = Blocked::of({SIGUSR1});
    for (const timespec timeout : {timespec{0, 0}, timespec{0, 1'000'000}}) {
      EXPECT_EQ(::sigtimedwait(&set, nullptr, &timeout), -1);
      EXPECT_EQ(errno, EAGAIN);
    }
    const timespec invalid{0, -1};
    EXPECT_EQ(::sigtimedwait(&set, nullptr, &invalid), -1);
    EXPECT_EQ(errno, EINVAL);
  });
}

// HA-9.
TEST_P(SignalWait, AHandlerOfAnotherSignalEndsSigtimedwaitUnderPosix) {
  const CountingHandler handler(SA_RESTART);
  const Blocked blocked;
  inFiber([&] {
    const sigset_t set = Blocked::of({SIGUSR2}), other = Blocked::of({SIGUSR1});
    ::pthread_sigmask(SIG_UNBLOCK, &other, nullptr);
    IOManager::GetThis()->schedule([me = Fiber::GetThis(), thread = ::pthread_self()] {
      untilParked(*me);
      ::pthread_kill(thread, SIGUSR1);
      untilPolled();
      if (GetParam() == HookEintr::kRestart) ::pthread_kill(thread, SIGUSR2);
    });
    const int taken = ::sigwaitinfo(&set, nullptr);
    if (GetParam() == HookEintr::kRestart) {
      EXPECT_EQ(taken, SIGUSR2);
    } else {
      EXPECT_EQ(taken, -1);
      EXPECT_EQ(errno, EINTR);
    }
  });
  EXPECT_EQ(g_handled.load(), 1);
}

TEST_P(SignalWait, NoHandlerEndsSigwait) {
  const CountingHandler handler(0);
  const Blocked blocked;
  inFiber([&] {
    const sigset_t set = Blocked::of({SIGUSR2}), other = Blocked::of({SIGUSR1});
    ::pthread_sigmask(SIG_UNBLOCK, &other, nullptr);
    IOManager::GetThis()->schedule([me = Fiber::GetThis(), thread = ::pthread_self()] {
      untilParked(*me);
      ::pthread_kill(thread, SIGUSR1);
      untilPolled();
      ::pthread_kill(thread, SIGUSR2);
    });
    int signal = 0;
    EXPECT_EQ(::sigwait(&set, &signal), 0);
    EXPECT_EQ(signal, SIGUSR2);
  });
  EXPECT_EQ(g_handled.load(), 1);
}

TEST_P(SignalWait, IsCancelledWithItsFiber) {
  const Blocked blocked;
  inFiber([&] {
    const auto expectCancelled = [](std::function<int()> call) {
      int result = 0, error = 0;
      const auto fiber = std::make_shared<Fiber>([&] {
        result = call();
        error = errno;
      });
      IOManager::GetThis()->schedule(fiber);
      untilParked(*fiber);
      fiber->cancel();
      fiber->join();
      EXPECT_EQ(result, -1);
      EXPECT_EQ(error, ECANCELED);
    };
    expectCancelled([] { return ::pause(); });
    expectCancelled([&] { return ::sigsuspend(&Blocked::both()); });
    expectCancelled([&] { return ::sigwaitinfo(&Blocked::both(), nullptr); });
  });
}

}  // namespace
}  // namespace sylar::test
