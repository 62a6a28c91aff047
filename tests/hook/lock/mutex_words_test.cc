// The hooks leave the same words in a mutex as libc does, so the two may take turns at it. Under TSan, which watches libc's
// functions, the hooks call those.
#include <climits>

#include "sylar/fiber/thread_pointer.h"
#include "sylar/hook/lock/lock_wait.h"
#include "tests/hook/support.h"
#include "tests/support/seed.h"

namespace sylar::test {
namespace {

#ifndef SYLAR_TSAN

/// libc's own functions, or the hooked ones.
struct MutexCalls {
  int (*lock)(pthread_mutex_t*);
  int (*trylock)(pthread_mutex_t*);
  int (*timedlock)(pthread_mutex_t*, const timespec*);
  int (*unlock)(pthread_mutex_t*);
};
const MutexCalls kHooked{&pthread_mutex_lock, &pthread_mutex_trylock, &pthread_mutex_timedlock, &pthread_mutex_unlock};

MutexCalls libcsOwn() {
  void* const libc = ::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  MutexCalls calls{};
  calls.lock = reinterpret_cast<decltype(calls.lock)>(::dlsym(libc, "pthread_mutex_lock"));
  calls.trylock = reinterpret_cast<decltype(calls.trylock)>(::dlsym(libc, "pthread_mutex_trylock"));
  calls.timedlock = reinterpret_cast<decltype(calls.timedlock)>(::dlsym(libc, "pthread_mutex_timedlock"));
  calls.unlock = reinterpret_cast<decltype(calls.unlock)>(::dlsym(libc, "pthread_mutex_unlock"));
  return calls;
}

/// The type of a mutex that was made without attributes, as a std::mutex is. PTHREAD_MUTEX_NORMAL is another kind to glibc.
constexpr int kWithoutType = -1;

class MutexOf {
 public:
  explicit MutexOf(int type) {
    if (type == kWithoutType) {
      ::pthread_mutex_init(&mutex, nullptr);
      return;
    }
    pthread_mutexattr_t attributes;
    ::pthread_mutexattr_init(&attributes);
    ::pthread_mutexattr_settype(&attributes, type);
    ::pthread_mutex_init(&mutex, &attributes);
    ::pthread_mutexattr_destroy(&attributes);
  }
  MutexOf(const MutexOf&) = delete;
  MutexOf& operator=(const MutexOf&) = delete;

  /// Returns whether the lock's word is set, the count, the owner and the users. The word has more values than two, as libc notes
  /// in it that a thread has waited.
  std::array<long, 4> words() const {
    const auto& data = mutex.__data;
    return {data.__lock != 0, static_cast<long>(data.__count), data.__owner, data.__nusers};
  }

  pthread_mutex_t mutex;
};

const timespec kLongAgo{1, 0};

/// Makes the same calls on two mutexes of a type: on one as `callsOf` says each time, on the other libc's. Results and words are
/// alike, but for the fiber that has locked a mutex, which the hooks note.
template <class CallsOf>
void compareWithLibc(int type, std::mt19937_64& random, CallsOf callsOf) {
  const bool in_fiber = runningFiber() != nullptr;
#ifndef SYLAR_THREAD_POINTER
  (void)sys::threadId();  // else the hooks do not know it
#endif
  const MutexCalls libc = libcsOwn();
  MutexOf mine(type), theirs(type);
  int held = 0;
  for (int step = 0; step < 2'000; ++step) {
    const MutexCalls calls = callsOf();
    int got = 0, expected = 0;
    switch (random() % 4) {
      case 0:
        if (held > 0 && type != PTHREAD_MUTEX_RECURSIVE && type != PTHREAD_MUTEX_ERRORCHECK)
          continue;  // it would wait for itself
        got = calls.lock(&mine.mutex);
        expected = libc.lock(&theirs.mutex);
        held += expected == 0;
        break;
      case 1:
        got = calls.trylock(&mine.mutex);
        expected = libc.trylock(&theirs.mutex);
        held += expected == 0;
        break;
      case 2:
        got = calls.timedlock(&mine.mutex, &kLongAgo);
        expected = libc.timedlock(&theirs.mutex, &kLongAgo);
        held += expected == 0;
        break;
      default:
        if (held == 0 && type != PTHREAD_MUTEX_RECURSIVE && type != PTHREAD_MUTEX_ERRORCHECK) continue;  // undefined
        got = calls.unlock(&mine.mutex);
        expected = libc.unlock(&theirs.mutex);
        held -= expected == 0;
    }
    ASSERT_EQ(got, expected) << "type " << type << ", step " << step;
    ASSERT_EQ(mine.words(), theirs.words()) << "type " << type << ", step " << step;
    const bool named = mine.mutex.__data.__list.__prev != nullptr;
    const bool is_named = held > 0 && in_fiber && (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK);
    ASSERT_EQ(named, is_named) << "type " << type << ", step " << step;
  }
}

constexpr int kTypesOfWords[] = {kWithoutType, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                                 PTHREAD_MUTEX_ADAPTIVE_NP};

// Otherwise these tests, and the benchmarks, would compare libc with itself.
TEST(MutexWords, AreThoseThatTheHooksKnow) {
  const std::mutex plain;
  EXPECT_EQ(MutexOf(kWithoutType).mutex.__data.__kind, const_cast<std::mutex&>(plain).native_handle()->__data.__kind);
  EXPECT_TRUE(locksInPlace().plain);
#ifdef SYLAR_THREAD_POINTER
  EXPECT_TRUE(locksInPlace().recursive);
#endif
}

TEST(MutexWords, AreLibcsOnAThread) {
  std::mt19937_64 random(seed());
  for (const int type : kTypesOfWords) {
    compareWithLibc(type, random, [&] { return random() % 2 == 0 ? kHooked : libcsOwn(); });
  }
}

TEST(MutexWords, AreLibcsInAFiber) {
  std::mt19937_64 random(seed());
  inFiber([&] {
    for (const int type : kTypesOfWords) compareWithLibc(type, random, [] { return kHooked; });
  });
}

TEST(MutexWords, ARecursiveMutexIsLockedAsOftenAsInLibc) {
  const auto lockOnceMore = [] {
    MutexOf mutex(PTHREAD_MUTEX_RECURSIVE);
    EXPECT_EQ(pthread_mutex_lock(&mutex.mutex), 0);
    mutex.mutex.__data.__count = UINT_MAX;
    EXPECT_EQ(pthread_mutex_lock(&mutex.mutex), EAGAIN);
    mutex.mutex.__data.__count = 1;
    EXPECT_EQ(pthread_mutex_unlock(&mutex.mutex), 0);
  };
  lockOnceMore();
  inFiber(lockOnceMore);
}

// The child's thread has another id, by which libc knows it.
TEST(MutexWords, OfTheParentsMutexesAreNotTheChilds) {
  MutexOf mutex(PTHREAD_MUTEX_RECURSIVE);
  EXPECT_EQ(pthread_mutex_lock(&mutex.mutex), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool kept = pthread_mutex_unlock(&mutex.mutex) == EPERM && pthread_mutex_trylock(&mutex.mutex) == EBUSY;
    MutexOf own(PTHREAD_MUTEX_RECURSIVE);
    const bool locks = pthread_mutex_lock(&own.mutex) == 0 && pthread_mutex_lock(&own.mutex) == 0;
    const bool unlocks = pthread_mutex_unlock(&own.mutex) == 0 && pthread_mutex_unlock(&own.mutex) == 0;
    sys::call(SYS_exit_group, kept && locks && unlocks && pthread_mutex_unlock(&own.mutex) == EPERM ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(pthread_mutex_unlock(&mutex.mutex), 0);
}

// The child's cached id is that of the parent in handlers that come before the library's, and in a fork that libc does not know of.
TEST(MutexWords, OfAChildThatLibcDoesNotKnowAreItsParents) {
  std::thread([] {  // its id was not asked for
    MutexOf mutex(PTHREAD_MUTEX_RECURSIVE);
    const auto child = static_cast<pid_t>(sys::call(SYS_fork));
    if (child == 0) {
      const bool locks = pthread_mutex_lock(&mutex.mutex) == 0 && pthread_mutex_trylock(&mutex.mutex) == 0;
      const bool unlocks = pthread_mutex_unlock(&mutex.mutex) == 0 && pthread_mutex_unlock(&mutex.mutex) == 0;
      sys::call(SYS_exit_group, locks && unlocks ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  })
      .join();
}

#ifdef SYLAR_THREAD_POINTER

pthread_mutex_t* g_stepped = nullptr;
int g_steps_left = 0;

void setTrapFlag() { __asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc"); }
void clearTrapFlag() { __asm__ volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc"); }

// As soon as the owner's id is there, the lock is the thread's, and libc lets a handler lock and unlock it, too.
TEST(MutexWords, AreWholeAfterAHandlerThatFoundTheOwner) {
  struct sigaction action {};
  action.sa_handler = [](int) {
    if (--g_steps_left != 0 || g_stepped->__data.__owner != static_cast<int>(sys::threadId())) return;
    pthread_mutex_lock(g_stepped);
    pthread_mutex_unlock(g_stepped);
  };
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGTRAP, &action, &before), 0);
  (void)sys::threadId();
  for (int step = 1, steps = 1; step <= steps; ++step) {
    MutexOf mutex(PTHREAD_MUTEX_RECURSIVE);
    EXPECT_EQ(pthread_mutex_lock(&mutex.mutex), 0);
    const auto locked = mutex.words();
    EXPECT_EQ(pthread_mutex_unlock(&mutex.mutex), 0);
    g_stepped = &mutex.mutex;
    constexpr int kFarTooMany = 1'000'000;
    g_steps_left = step == 1 ? kFarTooMany : step;  // the first one counts them
    setTrapFlag();
    const int error = pthread_mutex_lock(&mutex.mutex);
    clearTrapFlag();
    if (step == 1) steps = kFarTooMany - g_steps_left;
    EXPECT_EQ(error, 0);
    EXPECT_EQ(mutex.words(), locked) << "step " << step << " of " << steps;
    EXPECT_EQ(pthread_mutex_unlock(&mutex.mutex), 0);
  }
  EXPECT_EQ(::sigaction(SIGTRAP, &before, nullptr), 0);
}

#endif
#endif

}  // namespace
}  // namespace sylar::test
