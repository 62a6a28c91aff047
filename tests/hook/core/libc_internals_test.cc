// What the library takes for granted of glibc's inside (docs/design/libc.md), one test an entry. This program has no hooks, so it
// sees libc alone. If a test fails with a newer glibc, the page says what breaks.
#include <asm/prctl.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <linux/rseq.h>
#include <pthread.h>
#include <resolv.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "sylar/base/sanitizers.h"

namespace sylar::test {
namespace {

pid_t threadId() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

/// The action that the kernel has for a signal, which libc's own functions do not tell of its two.
struct Action {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};
Action actionOf(int signal) {
  Action action{};
  EXPECT_EQ(::syscall(SYS_rt_sigaction, signal, nullptr, &action, sizeof action.mask), 0);
  return action;
}

// L-1, L-2. Must come first in its process: the first thread prepares libc for threads, and its end does not undo that.
TEST(ALibcInternals, TheFirstThreadPreparesForOthers) {
  if (__libc_single_threaded != 0) {  // a sanitizer may have made threads before
    EXPECT_EQ(actionOf(33).handler, nullptr);
    std::thread([] {}).join();
  }
  EXPECT_EQ(__libc_single_threaded, 0);
  EXPECT_NE(actionOf(33).handler, nullptr);
  EXPECT_NE(actionOf(33).flags & SA_SIGINFO, 0u);
}

// L-2
TEST(LibcInternals, ItsFunctionsNeverBlockItsTwoSignals) {
  sigset_t all, before;
  ::sigfillset(&all);
  uint64_t bits = 0;
  std::memcpy(&bits, &all, sizeof bits);
  EXPECT_EQ(~bits, uint64_t{3} << 31);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, nullptr, &bits, sizeof bits);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(bits & uint64_t{3} << 31, 0u);
}

#ifdef __x86_64__

uintptr_t threadPointer() {
  uintptr_t pointer;
  __asm__("movq %%fs:0, %0" : "=r"(pointer));
  return pointer;
}

// L-3
TEST(LibcInternals, APthreadIsItsThreadPointer) {
  unsigned long base = 0;
  ASSERT_EQ(::syscall(SYS_arch_prctl, ARCH_GET_FS, &base), 0);
  EXPECT_EQ(threadPointer(), base);
  EXPECT_EQ(::pthread_self(), base);
  std::thread([] { EXPECT_EQ(::pthread_self(), threadPointer()); }).join();
}

// L-4
TEST(LibcInternals, TheKernelClearsTheWordByWhichLocksKnowAThread) {
  std::thread([] {
    int* id = nullptr;
    if (::prctl(PR_GET_TID_ADDRESS, &id) != 0) GTEST_SKIP() << "the kernel does not tell";
    EXPECT_EQ(*id, threadId());
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    ::pthread_mutex_lock(&mutex);
    EXPECT_EQ(mutex.__data.__owner, *id);
    ::pthread_mutex_unlock(&mutex);
  }).join();
}

// L-5
TEST(LibcInternals, TheKernelIsToldOfOneRobustListForEachThread) {
  std::thread([] {
    robust_list_head* head = nullptr;
    size_t size = 0;
    ASSERT_EQ(::syscall(SYS_get_robust_list, 0, &head, &size), 0);
    EXPECT_EQ(size, sizeof(robust_list_head));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(head->list.next), reinterpret_cast<uintptr_t>(&head->list));  // it is empty
  }).join();
}

// L-6
TEST(LibcInternals, TheProcessorStandsAtAnOffsetThatLibcTells) {
  const auto* const offset = static_cast<const ptrdiff_t*>(::dlsym(RTLD_DEFAULT, "__rseq_offset"));
  if (offset == nullptr) GTEST_SKIP() << "this libc registers none";
  const auto& area = *reinterpret_cast<const volatile struct rseq*>(threadPointer() + static_cast<uintptr_t>(*offset));
  if (static_cast<int32_t>(area.cpu_id) < 0) GTEST_SKIP() << "the kernel, or a tracer, has none";
  EXPECT_LT(area.cpu_id, static_cast<uint32_t>(::sysconf(_SC_NPROCESSORS_CONF)));
}

// L-12
[[gnu::noinline]] uintptr_t stackPointerIn(const jmp_buf& place) {
  auto pointer = static_cast<uintptr_t>(place[0].__jmpbuf[6]);
  __asm__("ror $17, %0\n\txor %%fs:0x30, %0" : "+r"(pointer));
  return pointer;
}
TEST(LibcInternals, AJumpsStackPointerIsMangledInTheKnownWay) {
  jmp_buf place;
  if (setjmp(place) != 0) return;
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  EXPECT_LE(stackPointerIn(place), here);
  EXPECT_LT(here - stackPointerIn(place), 65536u);
}

#endif

// L-7. The hooks look for themselves as well, and leave mutexes to libc if these are not what they know (learnWords).
TEST(LibcInternals, AMutexHasItsKnownWords) {
  pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
  ::pthread_mutex_lock(&plain);
  EXPECT_EQ(plain.__data.__lock, 1);
  EXPECT_EQ(plain.__data.__owner, threadId());
  EXPECT_EQ(plain.__data.__nusers, 1u);
  EXPECT_EQ(plain.__data.__list.__prev, nullptr);
  ::pthread_mutex_unlock(&plain);
  pthread_mutexattr_t attributes;
  const auto kindWith = [&](auto set) {
    ::pthread_mutexattr_init(&attributes);
    set();
    pthread_mutex_t mutex;
    EXPECT_EQ(::pthread_mutex_init(&mutex, &attributes), 0);
    return mutex.__data.__kind;
  };
  EXPECT_EQ(kindWith([&] { ::pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK); }) & 3, PTHREAD_MUTEX_ERRORCHECK);
  EXPECT_NE(kindWith([&] { ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST); }) & 16, 0);
  EXPECT_NE(kindWith([&] { ::pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT); }) & 32, 0);
  EXPECT_NE(kindWith([&] { ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED); }) & 128, 0);
}

// L-8
TEST(LibcInternals, ACondHasItsKnownBits) {
  pthread_condattr_t attributes;
  ::pthread_condattr_init(&attributes);
  pthread_cond_t plain = PTHREAD_COND_INITIALIZER, cond;
  EXPECT_EQ(plain.__data.__wrefs, 0u);
  ::pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  ::pthread_cond_init(&cond, &attributes);
  EXPECT_EQ(cond.__data.__wrefs, 2u);
  ::pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_cond_init(&cond, &attributes);
  EXPECT_EQ(cond.__data.__wrefs, 3u);
}

// L-9
TEST(LibcInternals, ABarrierHasItsKnownWords) {
  pthread_barrier_t barrier;
  ::pthread_barrier_init(&barrier, nullptr, 7);
  unsigned words[4];
  std::memcpy(words, &barrier, sizeof words);
  EXPECT_EQ(words[0], 0u);
  EXPECT_EQ(words[1], 0u);
  EXPECT_EQ(words[2], 7u);
  EXPECT_EQ(words[3], 0u);  // of one process
}

// L-10
TEST(LibcInternals, ARwlockHasItsKnownWords) {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  ::pthread_rwlock_wrlock(&lock);
  EXPECT_EQ(lock.__data.__cur_writer, threadId());
  EXPECT_EQ(lock.__data.__pad2, 0u);
  EXPECT_EQ(lock.__data.__writers, 0u);
  std::thread reader([&] {
    ::pthread_rwlock_rdlock(&lock);
    ::pthread_rwlock_unlock(&lock);
  });
  const auto sleeps = [&] { return (std::atomic_ref(lock.__data.__wrphase_futex).load() & 2) != 0; };
  while (!sleeps()) std::this_thread::yield();
  lock.__data.__pad2 = 5;  // libc must not use it
  ::pthread_rwlock_unlock(&lock);
  reader.join();
  EXPECT_EQ(lock.__data.__pad2, 5u);
  EXPECT_EQ(lock.__data.__cur_writer, 0);
  pthread_rwlockattr_t attributes;
  ::pthread_rwlockattr_init(&attributes);
  ::pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  ::pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_rwlock_init(&lock, &attributes);
  EXPECT_EQ(lock.__data.__flags, static_cast<unsigned>(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP));
  EXPECT_NE(lock.__data.__shared, 0);
}

// L-11
TEST(LibcInternals, ASemaphoreHasItsKnownWords) {
  sem_t semaphore;
  uint64_t word = 0;
  const auto read = [&] { return std::atomic_ref(*reinterpret_cast<uint64_t*>(&semaphore)).load(); };
  ::sem_init(&semaphore, 1, 2);
  EXPECT_EQ(read(), 2u);
  int shared = 0;
  std::memcpy(&shared, reinterpret_cast<char*>(&semaphore) + sizeof word, sizeof shared);
  EXPECT_NE(shared, 0);
  ::sem_init(&semaphore, 0, 0);
  std::thread waiter([&] { ::sem_wait(&semaphore); });
  while (read() >> 32 == 0) std::this_thread::yield();
  EXPECT_EQ(read(), uint64_t{1} << 32);
  ::sem_post(&semaphore);
  waiter.join();
}

// L-13
TEST(LibcInternals, AOnceHasItsKnownStates) {
#ifdef SYLAR_TSAN
  GTEST_SKIP() << "ThreadSanitizer has a pthread_once of its own";
#endif
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static int during;
  ::pthread_once(&once, [] { during = once; });
  EXPECT_EQ(during & 3, 1);
  EXPECT_EQ(once, 2);
}

// L-14
TEST(LibcInternals, AStreamHasItsKnownMembers) {
  FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_NE(file->_flags & 0x2000, 0);  // of a descriptor
  EXPECT_EQ(file->_flags & 0x800, 0);   // not writing yet
  std::fputs("some text\n", file);
  EXPECT_NE(file->_flags & 0x800, 0);
  EXPECT_EQ(file->_IO_buf_end - file->_IO_buf_base, 4096);
  std::rewind(file);
  EXPECT_EQ(std::fgetc(file), 's');
  EXPECT_EQ(std::string(file->_IO_read_ptr, file->_IO_read_end), "ome text\n");
  std::ungetc('x', file);
  EXPECT_NE(file->_flags & 0x100, 0);  // what was pushed back is in a buffer of its own, and the rest is saved
  EXPECT_EQ(std::string(file->_IO_read_ptr, file->_IO_read_end), "x");
  EXPECT_EQ(std::string(file->_IO_save_base, file->_IO_save_end), "ome text\n");
  std::fclose(file);
  FILE* const pipe_end = ::popen("true", "r");
  std::setvbuf(pipe_end, nullptr, _IOLBF, 0);
  EXPECT_NE(pipe_end->_flags & 0x200, 0);
  std::setvbuf(pipe_end, nullptr, _IONBF, 0);
  EXPECT_NE(pipe_end->_flags & 2, 0);
  EXPECT_NE(pipe_end->_flags & 8, 0);  // it takes no writes
  ::pclose(pipe_end);
}

// L-15
TEST(LibcInternals, TheResolversStateCanBeCopiedUpToItsUnusedHooks) {
  ASSERT_EQ(::res_init(), 0);
  EXPECT_LT(offsetof(struct __res_state, dnsrch), offsetof(struct __res_state, __glibc_unused_qhook));
  EXPECT_LT(offsetof(struct __res_state, options), offsetof(struct __res_state, __glibc_unused_qhook));
  struct __res_state copy;
  std::memset(&copy, 0xee, sizeof copy);
  std::memcpy(&copy, &_res, offsetof(struct __res_state, __glibc_unused_qhook));
  EXPECT_EQ(copy.nscount, _res.nscount);
}

// L-16
TEST(LibcInternals, TheExceptionGlobalsAreAPointerAndACount) {
  struct Globals {
    void* caught;
    unsigned uncaught;
  };
  const auto& globals = *reinterpret_cast<const Globals*>(abi::__cxa_get_globals());
  EXPECT_EQ(globals.caught, nullptr);
  struct Counts {
    const Globals& of;
    unsigned& seen;
    ~Counts() { seen = of.uncaught; }
  };
  unsigned seen = 0;
  try {
    const Counts counts{globals, seen};
    throw 1;
  } catch (int) {
    EXPECT_NE(globals.caught, nullptr);
  }
  EXPECT_EQ(seen, 1u);
  EXPECT_EQ(globals.caught, nullptr);
}

// L-17
TEST(LibcInternals, MainIsCalledByANameThatAPreloadedObjectCanTake) {
  EXPECT_NE(::dlsym(RTLD_DEFAULT, "__libc_start_main"), nullptr);
  EXPECT_NE(::dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), nullptr);
}

// L-18. std::call_once leaves what it calls in variables of the thread.
TEST(LibcInternals, CallOnceKeepsItsCallInKnownVariables) {
  std::once_flag once;
  void* during = nullptr;
  std::call_once(once, [&] { during = std::__once_callable; });
  EXPECT_NE(during, nullptr);
}

}  // namespace
}  // namespace sylar::test
