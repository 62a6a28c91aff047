// What ends and leaves main, for comparison of a native run with one under sylar-run. The argument says which. Each way waits
// before, so under sylar-run main has been suspended.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace {

sigjmp_buf g_before;

void wait() { ::usleep(1000); }

void atExit() {
  wait();
  std::puts("at exit");
}

struct Said {
  ~Said() { std::puts("unwound"); }
};

/// Overwrites what a jump has left below its place, and has a handler run.
__attribute__((noinline)) void goesOn(int value) {
  volatile char frame[4000];
  for (volatile char& byte : frame) byte = static_cast<char>(value);
  std::signal(SIGUSR1, [](int) {});
  std::raise(SIGUSR1);
  wait();
}

/// Natively the handler runs on main's stack, under sylar-run on another if main waits; it ends the read either way. With
/// SA_ONSTACK in `flags` it has a stack of its own in both.
int jumpsOutOfAHandler(int flags) {
  int pipe[2];
  if (::pipe(pipe) != 0) return 1;
  static char stack[1 << 16];
  stack_t signals{};
  signals.ss_sp = stack;
  signals.ss_size = sizeof stack;
  ::sigaltstack(&signals, nullptr);
  struct sigaction action {};
  action.sa_flags = flags;
  action.sa_handler = [](int) { siglongjmp(g_before, 1); };
  ::sigaction(SIGALRM, &action, nullptr);
  volatile int jumps = 0;
  for (char byte; jumps < 3;) {
    if (sigsetjmp(g_before, 1) == 0) {
      ::ualarm(10'000, 0);
      (void)!::read(pipe[0], &byte, 1);
    } else {
      jumps = jumps + 1;
      goesOn(jumps);
    }
  }
  return ::close(pipe[0]) + ::close(pipe[1]);
}

/// The handler catches its own jump, so the call that it has interrupted ends as by any other handler.
int jumpsInAHandler() {
  char stack[1 << 16];
  stack_t signals{};
  signals.ss_sp = stack;
  signals.ss_size = sizeof stack;
  ::sigaltstack(&signals, nullptr);
  for (const int flags : {0, SA_ONSTACK}) {
    struct sigaction action {};
    action.sa_flags = flags;
    action.sa_handler = [](int) {
      if (sigsetjmp(g_before, 1) == 0) siglongjmp(g_before, 1);
    };
    ::sigaction(SIGALRM, &action, nullptr);
    ::ualarm(10'000, 10'000);  // again and again, for one may come before the call
    for (int i = 0; i < 2; ++i) {
      if (::pause() != -1 || errno != EINTR) return 2;
      if (::poll(nullptr, 0, 60'000) != -1 || errno != EINTR) return 3;
    }
    ::ualarm(0, 0);
  }
  signals.ss_flags = SS_DISABLE;
  return ::sigaltstack(&signals, nullptr);
}

/// The thread is a real one. It waits for main, and main for it.
int talksWithAThread() {
  int there[2], back[2];
  if (::pipe(there) != 0 || ::pipe(back) != 0) return 1;
  const pid_t main_thread = ::gettid();
  std::thread other([&] {
    char byte = 0;
    for (int i = 0; i < 1000; ++i) {
      if (::read(there[0], &byte, 1) != 1 || ::write(back[1], &byte, 1) != 1) std::abort();
    }
    std::printf("another thread: %d\n", ::gettid() != main_thread);
  });
  char byte = 'x';
  for (int i = 0; i < 1000; ++i) {
    if (::write(there[1], &byte, 1) != 1 || ::read(back[0], &byte, 1) != 1) return 2;
  }
  other.join();
  std::printf("main thread: %d\n", ::gettid() == ::getpid());
  return 0;
}

int forks() {
  std::fflush(stdout);
  const pid_t child = ::fork();
  wait();
  if (child == 0) return 3;
  int status = 0;
  ::waitpid(child, &status, 0);
  std::printf("child: %d\n", WEXITSTATUS(status));
  return 4;
}

volatile pid_t g_child;

/// Waits until main sleeps. For another thread.
void awaitMainAsleep() {
  const std::string path = "/proc/self/task/" + std::to_string(::getpid()) + "/stat";
  for (std::string line; line.find(") S ") == std::string::npos;) {
    std::ifstream stat(path);
    std::getline(stat, line);
  }
}

/// Sends SIGALRM to main, which alone must fork, once it sleeps. For another thread.
void interruptMainAsleep() {
  awaitMainAsleep();
  ::tgkill(::getpid(), ::getpid(), SIGALRM);
}

/// Another thread closes the number for which main waits. Main's read goes on with the file, which is closed after it.
int readsOnAfterAClose() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
  std::thread other([&] {
    awaitMainAsleep();
    ::close(ends[0]);
    if (::write(ends[1], "x", 1) != 1) std::abort();
  });
  char byte = 0;
  const bool reads = ::read(ends[0], &byte, 1) == 1;
  other.join();
  const bool is_closed = ::read(ends[0], &byte, 1) == -1 && errno == EBADF;
  std::printf("reads: %d, closed: %d, end: %d\n", reads, is_closed, ::read(ends[1], &byte, 1) == 0);
  return 0;
}

/// A handler interrupts main's read and forks. Both processes then get a byte, with or without a further call.
int forksInAHandler(int flags) {
  int pipe[2];
  struct sigaction action {};
  action.sa_flags = flags;
  action.sa_handler = [](int) { g_child = ::fork(); };
  g_child = -1;
  if (::pipe(pipe) != 0 || ::sigaction(SIGALRM, &action, nullptr) != 0) return 1;
  std::thread writer([&] {
    interruptMainAsleep();
    while (g_child == -1) wait();
    for (int i = 0; i < 100; ++i) {
      wait();
      if (::write(pipe[1], "x", 1) != 1) std::abort();
    }
  });
  char byte;
  const ssize_t interrupted = ::read(pipe[0], &byte, 1);
  const int error = errno;
  if (interrupted != 1 && ::read(pipe[0], &byte, 1) != 1) return 2;
  if (g_child == 0) ::_exit(interrupted == 1 ? 10 : 20 + error);
  int status = 0;
  if (::waitpid(g_child, &status, 0) != g_child) return 3;
  for (int i = 2; i < 100; ++i) {
    if (::read(pipe[0], &byte, 1) != 1) return 4;
  }
  writer.join();
  std::printf("parent: %zd, child: %d\n", interrupted, WEXITSTATUS(status));
  return ::close(pipe[0]) + ::close(pipe[1]);
}

/// The child of a handler that interrupts a call that is never restarted.
int forksInAHandlerOf(int (*call)()) {
  g_child = -1;
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = [](int) { g_child = ::fork(); };
  ::sigaction(SIGALRM, &action, nullptr);
  std::thread(interruptMainAsleep).detach();
  const int result = call();
  const int error = errno;
  wait();
  if (g_child == 0) ::_exit(result == 0 ? 10 : 20 + error);
  int status = 0;
  ::waitpid(g_child, &status, 0);
  std::printf("parent: %d, child: %d\n", result, WEXITSTATUS(status));
  return 0;
}

/// Waits for the lock of a file that a thread of the parent holds until the handler has forked.
int waitsForALock() {
  char path[] = "/tmp/sylar_run_XXXXXX";
  const int file = ::mkstemp(path);
  const int rival = ::open(path, O_RDWR);
  ::flock(rival, LOCK_EX);
  auto* const holder = new std::thread([rival] {  // the child has no such thread to join
    while (g_child == -1) wait();
    wait();
    ::flock(rival, LOCK_UN);
  });
  ::unlink(path);
  const int result = ::flock(file, LOCK_EX);
  if (g_child == 0) return result;
  holder->join();
  delete holder;
  return result;
}

int forksInHandlers() {
  return forksInAHandler(0) + forksInAHandler(SA_RESTART) + forksInAHandlerOf(::pause) +
         forksInAHandlerOf([] { return ::poll(nullptr, 0, 60'000); }) + forksInAHandlerOf(waitsForALock);
}

/// The bounds that an interpreter asks for contain its frames.
int findsItsStack() {
  pthread_attr_t attributes;
  void* base = nullptr;
  size_t size = 0;
  wait();
  ::pthread_getattr_np(::pthread_self(), &attributes);
  ::pthread_attr_getstack(&attributes, &base, &size);
  ::pthread_attr_destroy(&attributes);
  const auto* const here = static_cast<const char*>(__builtin_frame_address(0));
  std::printf("within its stack: %d\n", here >= base && here < static_cast<const char*>(base) + size);
  return 0;
}

/// Uses most of the usual 8 MiB.
__attribute__((noinline)) int recurses(int depth) {
  volatile char frame[1024];
  frame[0] = static_cast<char>(depth);
  if (depth % 1024 == 0) wait();
  return depth == 0 ? 0 : recurses(depth - 1) + (frame[0] == static_cast<char>(depth) ? 0 : 1);
}

int hasItsFaultsToItself() {
  struct sigaction fault {};
  stack_t stack{};
  wait();
  ::sigaction(SIGSEGV, nullptr, &fault);
  ::sigaltstack(nullptr, &stack);
  std::printf("default: %d, no signal stack: %d\n", fault.sa_handler == SIG_DFL, (stack.ss_flags & SS_DISABLE) != 0);
  return 0;
}

void leavesByPthreadExit() {
  static std::thread other([] {
    wait();
    std::puts("the other thread");
  });
  const Said said;
  wait();
  other.join();
  ::pthread_exit(nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc > 1 ? argv[1] : "";
  const rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::atexit(atExit);
  wait();
  if (how == "return") return 5;
  if (how == "exit") std::exit(6);
  if (how == "quick exit") std::_Exit(7);
  if (how == "abort") std::abort();
  if (how == "kill") ::raise(SIGTERM);
  if (how == "throw") throw std::runtime_error("out of main");
  if (how == "pthread_exit") leavesByPthreadExit();
  if (how == "jump") return jumpsOutOfAHandler(0);
  if (how == "jump from a signal stack") return jumpsOutOfAHandler(SA_ONSTACK);
  if (how == "jump in a handler") return jumpsInAHandler();
  if (how == "thread") return talksWithAThread();
  if (how == "close") return readsOnAfterAClose();
  if (how == "fork") return forks();
  if (how == "fork in a handler") return forksInHandlers();
  if (how == "stack") return findsItsStack();
  if (how == "recursion") return recurses(6 * 1024);
  if (how == "faults") return hasItsFaultsToItself();
  return 1;
}
