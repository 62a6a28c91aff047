// What the hooks leave in a mutex is what libc leaves there, so the two may take turns at it. TSan watches libc's functions, and there
// the hooks call these.
#include <climits>

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

class MutexOf {
 public:
  explicit MutexOf(int type) {
    pthread_mutexattr_t attributes;
    ::pthread_mutexattr_init(&attributes);
    ::pthread_mutexattr_settype(&attributes, type);
    ::pthread_mutex_init(&mutex, &attributes);
    ::pthread_mutexattr_destroy(&attributes);
  }
  MutexOf(const MutexOf&) = delete;
  MutexOf& operator=(const MutexOf&) = delete;

  /// Of the word itself only whether it is free: libc notes in it that a thread has waited.
  std::array<long, 4> words() const {
    const auto& data = mutex.__data;
    return {data.__lock != 0, static_cast<long>(data.__count), data.__owner, data.__nusers};
  }

  pthread_mutex_t mutex;
};

const timespec kLongAgo{1, 0};

/// Makes the same calls on two mutexes of a type: on one as `callsOf` says each time, on the other libc's. Results and words are alike.
template <class CallsOf>
void compareWithLibc(int type, std::mt19937_64& random, CallsOf callsOf) {
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
  }
}

constexpr int kTypes[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};

TEST(MutexWords, AreLibcsOnAThread) {
  std::mt19937_64 random(seed());
  for (const int type : kTypes) {
    compareWithLibc(type, random, [&] { return random() % 2 == 0 ? kHooked : libcsOwn(); });
  }
}

TEST(MutexWords, AreLibcsInAFiber) {
  std::mt19937_64 random(seed());
  inFiber([&] {
    for (const int type : kTypes) compareWithLibc(type, random, [] { return kHooked; });
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

#endif

}  // namespace
}  // namespace sylar::test
