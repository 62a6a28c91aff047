// Signal handlers that close, at any instant, what fibers of the interrupted thread wait for, read and close themselves.
#include <pthread.h>

#include <csignal>
#include <random>

#include "sylar/base/sanitizers.h"
#include "tests/hook/fd/close_support.h"
#include "tests/support/seed.h"

namespace sylar::test {
namespace {

#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
constexpr int kRounds = 1'000;
#else
constexpr int kRounds = 6'000;
#endif
constexpr int kWorkers = 2;
constexpr int kFibersOfEach = 3;
constexpr int kSlots = kWorkers * kFibersOfEach;

/// Descriptors that whoever comes first may close: handlers, or their own fiber.
std::atomic<int> g_slots[kSlots];
std::atomic<unsigned> g_next_slot;
std::atomic<int> g_closed_by_handlers;

void closeSome(int) {
  const int saved_errno = errno;
  const int fd = g_slots[g_next_slot.fetch_add(1) % kSlots].exchange(-1);
  if (fd >= 0 && ::close(fd) == 0) g_closed_by_handlers.fetch_add(1);
  errno = saved_errno;
}

/// Sends SIGUSR1 to the threads as fast as they take it.
class Signals {
 public:
  Signals(std::vector<pid_t> threads, uint64_t seed) : m_threads(std::move(threads)), m_random(seed) {
    struct sigaction action {};
    action.sa_flags = SA_RESTART;
    action.sa_handler = closeSome;
    EXPECT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
    m_thread = std::thread([this] { run(); });
  }
  ~Signals() {
    m_done.store(true);
    m_thread.join();
  }

 private:
  void run() {
    while (!m_done.load()) {
      ::syscall(SYS_tgkill, ::getpid(), m_threads[m_random() % m_threads.size()], SIGUSR1);
      for (unsigned n = m_random() % 2000; n > 0; --n) std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  }
  const std::vector<pid_t> m_threads;
  std::mt19937_64 m_random;
  std::atomic<bool> m_done{false};
  std::thread m_thread;
};

/// What happens to the descriptor of a reader that has parked, beside the handlers.
enum class Rival { kData, kClose, kNobody };

/// One round: a read that gets a byte, or EBADF because somebody closed its number.
void readOnce(std::atomic<int>& slot, Rival rival) {
  const Ends ends = makeUnix(hookedCalls(), SOCK_STREAM);
  std::atomic<bool> published{false};
  const auto publish = [&slot, &published, ends, rival] {
    slot.store(ends[0]);
    if (rival == Rival::kData) ::send(ends[1], "d", 1, MSG_NOSIGNAL);
    if (int mine = ends[0]; rival == Rival::kClose && slot.compare_exchange_strong(mine, -1)) {
      EXPECT_EQ(::close(ends[0]), 0);
    }
    published = true;
  };
  IOManager::GetThis()->schedule(publish, threadId());  // this worker begins it when the reader has parked
  char byte = 0;
  const ssize_t n = ::read(ends[0], &byte, 1);
  if (n == 1) {
    EXPECT_EQ(rival, Rival::kData);
    EXPECT_EQ(byte, 'd');
  } else {
    EXPECT_EQ(n, -1);
    EXPECT_EQ(errno, EBADF) << ::strerror(errno);
  }
  for (int i = 1; slot.load() != -1; ++i) {  // a handler closes it
    Fiber::YieldToReady();
    if (i % 64 == 0) signalWorker(SIGUSR1);  // a busy machine may keep the sender waiting
  }
  while (!published) Fiber::YieldToReady();  // it may still send
  EXPECT_EQ(::close(ends[1]), 0);
}

// P3: closers in signal handlers. FM-13, FM-14.
TEST(SignalClose, AtAnyInstantEndsTheWaitAndHangsNobody) {
  const LeakCheck leaks;
  const uint64_t random = seed();
  for (auto& slot : g_slots) slot.store(-1);
  NewOwner owner;
  std::atomic<int> rounds{0};
  {
    IOManager iom(kWorkers, false, "signals");
    const std::vector<pid_t> threads = threadsOf(iom, kWorkers);
    const Signals signals(threads, random);
    std::atomic<int> left{kSlots};
    for (int i = 0; i < kSlots; ++i) {
      iom.schedule(
          [&, i] {
            for (int k = 0; k < kRounds / kSlots && !testing::Test::HasFailure(); ++k) {
              readOnce(g_slots[i], static_cast<Rival>((k + i) % 3));
              rounds.fetch_add(1);
            }
            left.fetch_sub(1);
          },
          threads[static_cast<size_t>(i % kWorkers)]);
    }
    spinUntil(left, 0);
  }
  ::signal(SIGUSR1, SIG_IGN);
  EXPECT_EQ(rounds.load(), kRounds / kSlots * kSlots);
  EXPECT_GT(g_closed_by_handlers.load(), 0);
  EXPECT_GT(owner.finish(), 0);
}

}  // namespace
}  // namespace sylar::test
