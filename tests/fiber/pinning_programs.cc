#include "tests/fiber/pinning_programs.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>

namespace sylar::test {
namespace {

std::atomic<int> g_threads{0};

thread_local int t_plain = 0;
thread_local std::string t_made = "thread " + std::to_string(++g_threads);

long kernelThreadId() { return syscall(SYS_gettid); }

}  // namespace

int errnoReadAfterTheWait(Wait wait, int rounds) {
  int wrong = 0;
  for (int i = 1; i <= rounds; ++i) {
    errno = i;
    wait();
    wrong += errno != i;
  }
  return wrong;
}

int errnoAddressAfterTheWait(Wait wait, int rounds) {
  int wrong = 0;
  for (int i = 1; i <= rounds; ++i) {
    int* const before = &errno;
    wait();
    *before = i;  // as libpq does
    wrong += errno != i || &errno != before;
  }
  return wrong;
}

int errnoInARetryLoop(int fd, int rounds) {
  int wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    char byte;
    ssize_t n;
    errno = 0;
    do {
      n = recv(fd, &byte, 1, 0);
    } while (n < 0 && errno == EINTR);
    wrong += n != -1 || errno != EAGAIN;
  }
  return wrong;
}

int addressOfAThreadLocal(Wait wait, int rounds) {
  int wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    const long here = kernelThreadId();
    int* const before = &t_plain;
    wait();
    int* const after = &t_plain;
    wrong += before != after || kernelThreadId() != here;
  }
  return wrong;
}

int valueOfAThreadLocalWithConstructor(Wait wait, int rounds) {
  int wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    const std::string before = t_made;
    wait();
    wrong += t_made != before;
  }
  return wrong;
}

int pthreadSelf(Wait wait, int rounds) {
  int wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    const pthread_t before = pthread_self();
    const long here = kernelThreadId();
    wait();
    wrong += pthread_equal(before, pthread_self()) == 0 || kernelThreadId() != here;
  }
  return wrong;
}

int threadId(Wait wait, int rounds) {
  int wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    const std::thread::id before = std::this_thread::get_id();
    wait();
    wrong += std::this_thread::get_id() != before;
  }
  return wrong;
}

int kernelThreadIdOverHookedCalls(int fd, int rounds) {
  const long here = kernelThreadId();
  int wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    char byte = 'x';
    wrong += write(fd, &byte, 1) != 1;
    wrong += kernelThreadId() != here;
    wrong += read(fd, &byte, 1) != 1;
    wrong += kernelThreadId() != here;
  }
  return wrong;
}

}  // namespace sylar::test
