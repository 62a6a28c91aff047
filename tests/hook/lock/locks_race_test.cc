// Fibers of two workers and plain threads use one lock of libc at a time, with timeouts, deadlines and cancels that end their
// waits. Each lock keeps its own law, no wake-up is lost, and none is doubled: a lost one hangs the test, a doubled one breaks the
// law.
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>

#include <functional>
#include <random>
#include <stop_token>

#include "sylar/cancel.h"
#include "tests/hook/support.h"
#include "tests/support/sanitized.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

constexpr int kFibers = 12;
constexpr int kThreads = 2;
constexpr int kPlayers = kFibers + kThreads;
/// Of all players of a test together.
constexpr uint64_t kOperations = kSanitized ? 100'000 : 1'000'000;

/// One who uses the lock.
struct Player {
  Player(uint64_t seed, int its_number, uint64_t its_operations) : random(seed), number(its_number), operations(its_operations) {}
  bool oneIn(uint32_t n) { return random() % n == 0; }
  timespec soon() {
    timespec time;
    ::clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += static_cast<long>(random() % 50'000);
    if (time.tv_nsec >= 1'000'000'000) {
      ++time.tv_sec;
      time.tv_nsec -= 1'000'000'000;
    }
    return time;
  }
  /// Lets others run now and then, in a fiber.
  void pause() {
    if (number < kFibers && oneIn(4)) Fiber::YieldToReady();
  }

  std::mt19937 random;
  const int number;
  const uint64_t operations;
};

/// Has all players make `operation`, some of them within deadlines and cancels.
void play(const std::function<void(Player&)>& operation, uint64_t operations = scaled(kOperations)) {
  const uint64_t first_seed = seed();
  const uint64_t each = operations / kPlayers;
  const auto use = [&](int number) {
    Player me(first_seed + static_cast<uint64_t>(number), number, each);
    for (uint64_t i = 0; i < each; ++i) {
      if (number < kFibers && me.oneIn(16)) {
        const this_fiber::DeadlineScope scope(Deadline::after(std::chrono::microseconds(me.random() % 50)));
        operation(me);
      } else if (number < kFibers && me.oneIn(16)) {
        std::stop_source source;
        IOManager::GetThis()->schedule([source]() mutable { source.request_stop(); });
        const this_fiber::CancelScope scope(source.get_token());
        operation(me);
      } else {
        operation(me);
      }
    }
  };
  std::vector<std::thread> threads;
  IOManager iom(2, false, "locks");
  for (int i = 0; i < kFibers; ++i) iom.schedule([&use, i] { use(i); });
  for (int i = kFibers; i < kPlayers; ++i) threads.emplace_back(use, i);
  for (std::thread& thread : threads) thread.join();
  iom.stop();
}

class MutexRace : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Types, MutexRace,
                         testing::Values(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                                         PTHREAD_MUTEX_ADAPTIVE_NP));

TEST_P(MutexRace, OneIsInside) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, GetParam());
  pthread_mutex_t mutex;
  ASSERT_EQ(pthread_mutex_init(&mutex, &attributes), 0);
  uint64_t visits = 0;
  int inside = 0;
  std::atomic<uint64_t> expected{0};
  play([&](Player& me) {
    const uint32_t how = me.random() % 8;
    const timespec soon = me.soon();
    const int error = how == 0   ? pthread_mutex_trylock(&mutex)
                      : how == 1 ? pthread_mutex_timedlock(&mutex, &soon)
                                 : pthread_mutex_lock(&mutex);
    if (error != 0) {
      ASSERT_EQ(error, how == 0 ? EBUSY : ETIMEDOUT);
      return;
    }
    ASSERT_EQ(++inside, 1);
    ++visits;
    me.pause();
    if (GetParam() == PTHREAD_MUTEX_RECURSIVE && me.oneIn(4)) {
      ASSERT_EQ(pthread_mutex_lock(&mutex), 0);
      me.pause();
      ASSERT_EQ(pthread_mutex_unlock(&mutex), 0);
    }
    ASSERT_EQ(--inside, 0);
    ASSERT_EQ(pthread_mutex_unlock(&mutex), 0);
    expected.fetch_add(1, std::memory_order_relaxed);
  });
  EXPECT_EQ(visits, expected.load());
  EXPECT_EQ(pthread_mutex_destroy(&mutex), 0);
}

// Half of the players put into a store with few places, the others take.
TEST(CondRace, NothingIsLost) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
  constexpr int kPlaces = 3;
  int stored = 0;
  uint64_t put = 0, taken = 0;
  play([&](Player& me) {
    const bool puts = me.number % 2 == 0;
    ASSERT_EQ(pthread_mutex_lock(&mutex), 0);
    while (stored == (puts ? kPlaces : 0)) {
      pthread_cond_t& condition = puts ? not_full : not_empty;
      if (me.oneIn(4)) {
        const timespec soon = me.soon();
        const int error = pthread_cond_timedwait(&condition, &mutex, &soon);
        ASSERT_TRUE(error == 0 || error == ETIMEDOUT) << error;
      } else {
        ASSERT_EQ(pthread_cond_wait(&condition, &mutex), 0);
      }
    }
    stored += puts ? 1 : -1;
    ++(puts ? put : taken);
    me.pause();
    if (me.oneIn(8)) {
      pthread_cond_broadcast(puts ? &not_empty : &not_full);
    } else {
      pthread_cond_signal(puts ? &not_empty : &not_full);
    }
    ASSERT_EQ(pthread_mutex_unlock(&mutex), 0);
  });
  EXPECT_EQ(put, taken);
  EXPECT_EQ(stored, 0);
}

TEST(RWLockRace, WritersAreAlone) {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  uint64_t first = 0, second = 0;
  std::atomic<uint64_t> writes{0};
  play([&](Player& me) {
    const bool write = me.oneIn(3);
    const uint32_t how = me.random() % 8;
    const timespec soon = me.soon();
    const int error = how == 0   ? (write ? pthread_rwlock_trywrlock(&lock) : pthread_rwlock_tryrdlock(&lock))
                      : how == 1 ? (write ? pthread_rwlock_timedwrlock(&lock, &soon) : pthread_rwlock_timedrdlock(&lock, &soon))
                                 : (write ? pthread_rwlock_wrlock(&lock) : pthread_rwlock_rdlock(&lock));
    if (error != 0) {
      ASSERT_EQ(error, how == 0 ? EBUSY : ETIMEDOUT);
      return;
    }
    if (write) {
      ++first;
      me.pause();
      ++second;
      writes.fetch_add(1, std::memory_order_relaxed);
    } else {
      const uint64_t seen = first;
      me.pause();
      ASSERT_EQ(seen, second);
    }
    ASSERT_EQ(pthread_rwlock_unlock(&lock), 0);
  });
  EXPECT_EQ(first, writes.load());
  EXPECT_EQ(second, writes.load());
}

TEST(SemaphoreRace, NoPermitIsLostOrDoubled) {
  constexpr int kPermits = 3;
  sem_t semaphore;
  sem_init(&semaphore, 0, kPermits);
  std::atomic<int> held{0};
  play([&](Player& me) {
    const uint32_t how = me.random() % 8;
    const timespec soon = me.soon();
    const int result = how == 0 ? sem_trywait(&semaphore) : how == 1 ? sem_timedwait(&semaphore, &soon) : sem_wait(&semaphore);
    if (result != 0) {
      ASSERT_TRUE(errno == EAGAIN || errno == ETIMEDOUT || errno == ECANCELED) << errno;
      return;
    }
    ASSERT_LE(held.fetch_add(1) + 1, kPermits);
    me.pause();
    held.fetch_sub(1);
    ASSERT_EQ(sem_post(&semaphore), 0);
  });
  int value = 0;
  sem_getvalue(&semaphore, &value);
  EXPECT_EQ(value, kPermits);
}

// A lock that a program makes of futex(2) alone. Source: Drepper, "Futexes Are Tricky".
TEST(FutexRace, OneIsInside) {
  std::atomic<uint32_t> word{0};
  uint64_t visits = 0;
  std::atomic<uint64_t> expected{0};
  play([&](Player& me) {
    const int how = me.oneIn(2) ? FUTEX_PRIVATE_FLAG : 0;
    uint32_t found = 0;
    if (!word.compare_exchange_strong(found, 1)) {
      if (found != 2) found = word.exchange(2);
      while (found != 0) {
        const timespec soon{0, static_cast<long>(me.random() % 50'000)};
        ::syscall(SYS_futex, &word, FUTEX_WAIT | how, 2, me.oneIn(4) ? &soon : nullptr, nullptr, 0);
        found = word.exchange(2);
      }
    }
    ++visits;
    me.pause();
    expected.fetch_add(1, std::memory_order_relaxed);
    // All who wait have to be woken by the same kind, so both are.
    if (word.exchange(0) == 2) {
      ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
      ::syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
    }
  });
  EXPECT_EQ(visits, expected.load());
}

// Those who wait at a word are moved to another one, as old libcs do with the waiters of a condition, and leave it by timeouts.
TEST(FutexRace, WaitersThatAreMovedAreWokenThere) {
  const uint64_t operations = scaled(kOperations) / 20;  // one thread wakes them all
  std::atomic<uint32_t> from{0}, to{0};
  std::atomic<uint64_t> ended{0};
  std::atomic<bool> over{false};
  std::thread mover([&] {
    while (!over.load()) {
      ::syscall(SYS_futex, &from, FUTEX_REQUEUE | FUTEX_PRIVATE_FLAG, 1, 2, &to, 0);
      ::syscall(SYS_futex, &to, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
    }
  });
  play(
      [&](Player& me) {
        const timespec soon{0, static_cast<long>(me.random() % 50'000)};
        ::syscall(SYS_futex, &from, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, me.oneIn(2) ? &soon : nullptr, nullptr, 0);
        ended.fetch_add(1, std::memory_order_relaxed);
      },
      operations);
  over.store(true);
  mover.join();
  EXPECT_EQ(ended.load(), operations / kPlayers * kPlayers);
}

TEST(BarrierRace, NobodyIsARoundAhead) {
  pthread_barrier_t barrier;
  ASSERT_EQ(pthread_barrier_init(&barrier, nullptr, kPlayers), 0);
  std::atomic<uint64_t> arrived{0}, last{0};
  std::array<uint64_t, kPlayers> rounds{};
  play([&](Player& me) {
    const uint64_t round = ++rounds[static_cast<size_t>(me.number)];
    arrived.fetch_add(1);
    me.pause();
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) ++last;
    ASSERT_GE(arrived.load(), round * kPlayers);
  });
  EXPECT_EQ(last.load(), scaled(kOperations) / kPlayers);
  EXPECT_EQ(pthread_barrier_destroy(&barrier), 0);
}

std::atomic<uint64_t> g_runs{0};

TEST(OnceRace, EachRunsOnce) {
  const uint64_t rounds = scaled(kOperations) / kPlayers;
  std::vector<pthread_once_t> all(rounds, PTHREAD_ONCE_INIT);
  std::array<uint64_t, kPlayers> next{};
  g_runs = 0;
  play([&](Player& me) {
    const uint64_t i = next[static_cast<size_t>(me.number)]++;
    const auto routine = [] {
      if (Fiber::GetFiberId() != 0) Fiber::YieldToReady();
      ++g_runs;
    };
    ASSERT_EQ(pthread_once(&all[i], routine), 0);
    ASSERT_GE(g_runs.load(), i + 1);
  });
  EXPECT_EQ(g_runs.load(), rounds);
}

}  // namespace
}  // namespace sylar::test
