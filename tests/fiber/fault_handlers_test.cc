// The handler of overflows beside the program's own handlers of SIGSEGV and SIGBUS. No fiber runs in this process itself, only in
// the children of the death tests: there the library's handler is installed after the program's.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/fiber.h"
#include "sylar/fiber/stack.h"

namespace sylar {
namespace {

void inFiber(std::function<void()> body) { std::make_shared<Fiber>(std::move(body), kMinStackSize)->resume(); }

[[gnu::noinline]] void writeTo(void* address) { *static_cast<volatile char*>(address) = 1; }

[[gnu::noinline]] int recurse(int levels) {
  volatile char frame[256];
  frame[0] = static_cast<char>(levels);
  return levels == 0 ? frame[0] : recurse(levels - 1) + frame[0];
}
void overflow() { recurse(1 << 20); }

void say(std::string_view text) { sys::writeAll(STDERR_FILENO, text.data(), text.size()); }

void install(int signal, void (*handler)(int), int flags = 0) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(signal, &action, nullptr);
}
void install(int signal, void (*handler)(int, siginfo_t*, void*), int flags = 0) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = flags | SA_SIGINFO;
  sigaction(signal, &action, nullptr);
}

[[noreturn]] void exitWith7(int signal) {
  say(signal == SIGSEGV ? "own handler of SIGSEGV\n" : "own handler of SIGBUS\n");
  _exit(7);
}
[[noreturn]] void exitWithAddress(int, siginfo_t* info, void* context) {
  _exit(context != nullptr && info->si_addr == reinterpret_cast<void*>(64) ? 8 : 1);
}

TEST(FaultHandlersDeathTest, EarlierHandlerSeesFaultsThatAreNoOverflow) {
  const auto plain = [] {
    install(SIGSEGV, exitWith7);
    inFiber([] { writeTo(nullptr); });
  };
  EXPECT_EXIT(plain(), testing::ExitedWithCode(7), "^own handler of SIGSEGV\n$");
  const auto informed = [] {
    install(SIGSEGV, exitWithAddress);
    inFiber([] { writeTo(reinterpret_cast<void*>(64)); });
  };
  EXPECT_EXIT(informed(), testing::ExitedWithCode(8), "^$");
}

TEST(FaultHandlersDeathTest, EarlierHandlerSeesFaultsOnPlainThreads) {
  const auto on_thread = [] {
    install(SIGBUS, exitWith7);
    inFiber([] {});
    std::thread([] { raise(SIGBUS); }).join();
  };
  EXPECT_EXIT(on_thread(), testing::ExitedWithCode(7), "^own handler of SIGBUS\n$");
}

TEST(FaultHandlersDeathTest, OverflowIsReportedInSpiteOfAnEarlierHandler) {
  const auto handled = [] {
    install(SIGSEGV, exitWith7);
    inFiber(overflow);
  };
  EXPECT_EXIT(handled(), testing::KilledBySignal(SIGABRT), "stack overflow in fiber");
  const auto ignored = [] {
    install(SIGSEGV, SIG_IGN);
    inFiber(overflow);
  };
  EXPECT_EXIT(ignored(), testing::KilledBySignal(SIGABRT), "stack overflow in fiber");
}

// A signal that a process sent can be ignored, a fault cannot.
TEST(FaultHandlersDeathTest, EarlierIgnoreHoldsForSentSignalsOnly) {
  const auto sent = [] {
    install(SIGSEGV, SIG_IGN);
    inFiber([] { raise(SIGSEGV); });
    _exit(0);
  };
  EXPECT_EXIT(sent(), testing::ExitedWithCode(0), "^$");
  const auto fault = [] {
    install(SIGSEGV, SIG_IGN);
    inFiber([] { writeTo(nullptr); });
  };
  EXPECT_EXIT(fault(), testing::KilledBySignal(SIGSEGV), "^$");
}

TEST(FaultHandlersDeathTest, SentSignalsEndTheProcessByDefault) {
  EXPECT_EXIT(inFiber([] { raise(SIGSEGV); }), testing::KilledBySignal(SIGSEGV), "^$");
  EXPECT_EXIT(inFiber([] { raise(SIGBUS); }), testing::KilledBySignal(SIGBUS), "^$");
}

TEST(FaultHandlersDeathTest, LaterHandlerStaysInCharge) {
  const auto later = [] {
    inFiber([] { install(SIGSEGV, exitWith7, SA_ONSTACK); });
    inFiber([] {});
    std::thread([] { inFiber(overflow); }).join();
  };
  EXPECT_EXIT(later(), testing::ExitedWithCode(7), "^own handler of SIGSEGV\n$");
}

// A handler that repairs the cause returns, and the program goes on.
TEST(FaultHandlersDeathTest, EarlierHandlerMayRepairTheFault) {
  static char* page;
  const auto repaired = [] {
    int error = 0;
    page = static_cast<char*>(sys::mapMemory(4096, &error));
    sys::protectMemory(page, 4096, PROT_READ);
    install(SIGSEGV, [](int) {
      errno = EDOM;
      sys::protectMemory(page, 4096, PROT_READ | PROT_WRITE);
    });
    inFiber([] {
      errno = 0;
      writeTo(page);
      _exit(errno == 0 && page[0] == 1 ? 9 : 1);
    });
  };
  EXPECT_EXIT(repaired(), testing::ExitedWithCode(9), "^$");
}

TEST(FaultHandlersDeathTest, EarlierHandlerMayJumpOut) {
  static sigjmp_buf before;
  const auto jumped = [] {
    install(SIGSEGV, [](int) { siglongjmp(before, 1); });
    inFiber([] {
      static int jumps;  // static: what a jump over it would leave of a local is not said
      for (jumps = 0; jumps < 3;) {
        if (sigsetjmp(before, 1) == 0) writeTo(nullptr);
        ++jumps;
      }
      _exit(10);
    });
  };
  EXPECT_EXIT(jumped(), testing::ExitedWithCode(10), "^$");
}

// sigaction(2) promises this: the signal and sa_mask are blocked meanwhile, SA_NODEFER and SA_RESETHAND count.
TEST(FaultHandlersDeathTest, EarlierHandlersFlagsAndMaskHold) {
  const auto isBlocked = [](int signal) {
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    return sigismember(&now, signal) == 1;
  };
  static const auto g_isBlocked = isBlocked;
  const auto deferred = [] {
    struct sigaction action {};
    action.sa_handler = [](int) { _exit(g_isBlocked(SIGSEGV) && g_isBlocked(SIGUSR1) && !g_isBlocked(SIGUSR2) ? 11 : 1); };
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(SIGSEGV, &action, nullptr);
    inFiber([] { writeTo(nullptr); });
  };
  EXPECT_EXIT(deferred(), testing::ExitedWithCode(11), "^$");
  const auto no_defer = [] {
    install(
        SIGSEGV, [](int) { _exit(g_isBlocked(SIGSEGV) ? 1 : 12); }, SA_NODEFER);
    inFiber([] { writeTo(nullptr); });
  };
  EXPECT_EXIT(no_defer(), testing::ExitedWithCode(12), "^$");
  const auto once = [] {
    install(
        SIGSEGV, [](int) { say("once"); }, static_cast<int>(SA_RESETHAND));
    inFiber([] { writeTo(nullptr); });  // faults again when the handler has returned
  };
  EXPECT_EXIT(once(), testing::KilledBySignal(SIGSEGV), "^once$");
}

// A thread that brought an alternate stack keeps it, and what a thread got is gone at its end.
TEST(FaultHandlersDeathTest, AlternateStackOfTheProgramIsKept) {
  const auto kept = [] {
    std::thread([] {
      static char own[64 * 1024];
      const stack_t mine{own, 0, sizeof own};
      sigaltstack(&mine, nullptr);
      inFiber([] {});
      stack_t now{};
      sigaltstack(nullptr, &now);
      if (now.ss_sp != own) _exit(1);
      inFiber(overflow);
    }).join();
  };
  EXPECT_EXIT(kept(), testing::KilledBySignal(SIGABRT), "stack overflow in fiber");
}

TEST(FaultHandlersDeathTest, AlternateStackGoesWithItsThread) {
  const auto released = [] {
    static void* given;
    std::thread([] {
      inFiber([] {});
      stack_t now{};
      sigaltstack(nullptr, &now);
      given = now.ss_sp;
      if ((now.ss_flags & SS_DISABLE) != 0) _exit(1);
    }).join();
    unsigned char resident;
    _exit(mincore(given, 4096, &resident) == 0 ? 2 : 13);
  };
  EXPECT_EXIT(released(), testing::ExitedWithCode(13), "^$");
}

}  // namespace
}  // namespace sylar
