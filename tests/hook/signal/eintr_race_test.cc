// Signal handlers at any instant of calls that data, a close, a timeout or a cancel end as well. HA-9.
#include <chrono>
#include <random>

#include "sylar/base/sanitizers.h"
#include "tests/hook/signal/signal_support.h"
#include "tests/support/seed.h"

namespace sylar::test {
namespace {

#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
constexpr int kRounds = 200;
constexpr size_t kStreamSize = 1 << 20;
#else
constexpr int kRounds = 2'000;
constexpr size_t kStreamSize = 16 << 20;
#endif
constexpr int kWorkers = 2;
constexpr int kFibers = 6;

/// Sends SIGUSR1 to the threads as fast as they take it.
class Signals {
 public:
  Signals(std::vector<pid_t> threads, uint64_t seed) : m_threads(std::move(threads)), m_random(seed) {
    m_thread = std::thread([this] { run(); });
  }
  ~Signals() {
    m_done.store(true);
    m_thread.join();
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  void run() {
    while (!m_done.load()) {
      sys::call(SYS_tgkill, ::getpid(), m_threads[m_random() % m_threads.size()], SIGUSR1);
      for (unsigned n = m_random() % 20'000; n > 0; --n) std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  }
  const std::vector<pid_t> m_threads;
  std::mt19937_64 m_random;
  std::atomic<bool> m_done{false};
  std::thread m_thread;
};

/// What ends the call besides handlers.
enum class Rival { kData, kClose, kTimeout, kCancel, kNobody };
constexpr int kRivals = 5;

struct Ended {
  ssize_t result = 0;
  int error = 0;
};

Ended readIn(const Pair& pair) {
  char byte = 0;
  const ssize_t n = ::read(pair.a, &byte, 1);
  return {n, n == -1 ? errno : 0};
}

/// Returns true if a handler has ended the read.
bool readOnce(Rival rival) {
  Pair pair = unixPair();
  if (rival == Rival::kTimeout) {
    const timeval moment{0, 300};
    EXPECT_EQ(::setsockopt(pair.a, SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof moment), 0);
  }
  Ended ended;
  const auto reader = std::make_shared<Fiber>([&] { ended = readIn(pair); });
  IOManager::GetThis()->schedule(reader);
  const auto act = std::make_shared<Fiber>([&] {
    if (rival == Rival::kData) {
      EXPECT_EQ(::send(pair.b, "d", 1, MSG_NOSIGNAL), 1);
    } else if (rival == Rival::kClose) {
      pair.closeA();
    } else if (rival == Rival::kCancel) {
      reader->cancel();
    }
  });
  if (rival != Rival::kClose) IOManager::GetThis()->schedule(act);
  if (rival == Rival::kClose) {
    // A close that comes before the read begins is the user's own race.
    while (stateOf(*reader) != FiberState::kParked && !isOver(stateOf(*reader))) Fiber::YieldToReady();
    IOManager::GetThis()->schedule(act);
  }
  while (rival == Rival::kNobody && !isOver(stateOf(*reader))) {
    signalWorker(SIGUSR1);  // a busy machine may keep the sender waiting
    Fiber::YieldToReady();
  }
  reader->join();
  act->join();
  if (ended.result == -1 && ended.error == EINTR) {
    if (rival == Rival::kData) {
      EXPECT_EQ(::recv(pair.a, &ended, 1, MSG_DONTWAIT), 1) << "the byte is lost";
    }
    return true;
  }
  constexpr int kErrors[kRivals] = {0, EBADF, EAGAIN, ECANCELED, EINTR};
  EXPECT_EQ(ended.error, kErrors[static_cast<int>(rival)]) << ::strerror(ended.error) << ' ' << static_cast<int>(rival);
  EXPECT_EQ(ended.result, rival == Rival::kData ? 1 : -1);
  return false;
}

TEST(EintrRace, EachCallEndsForOneReason) {
  const LeakCheck leaks;
  const EintrMode posix(HookEintr::kPosix);
  const CountingHandler handler(0);
  std::atomic<int> interrupted{0};
  {
    IOManager iom(kWorkers, false, "signals");
    const std::vector<pid_t> threads = threadsOf(iom, kWorkers);
    const Signals signals(threads, seed());
    std::atomic<int> left{kFibers};
    for (int i = 0; i < kFibers; ++i) {
      iom.schedule([&, i] {
        // On a busy machine the sender may not have come to its first signal by then.
        for (int k = 0; (k < kRounds / kFibers || interrupted.load() == 0) && !testing::Test::HasFailure(); ++k) {
          const auto rival = static_cast<Rival>((k + i) % kRivals);
          if (readOnce(rival) && rival != Rival::kNobody) interrupted.fetch_add(1);
        }
        left.fetch_sub(1);
      });
    }
    spinUntil(left, 0);
  }
  EXPECT_GT(interrupted.load(), 0) << "no handler has been faster than its rival";
}

/// Writes all bytes, and goes on after each handler.
void writeAll(int fd, const std::vector<char>& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0) {
      ASSERT_EQ(errno, EINTR);
    } else {
      done += static_cast<size_t>(n);
    }
  }
}

void readAll(int fd, const std::vector<char>& expected) {
  std::vector<char> bytes(expected.size());
  for (size_t done = 0; done < bytes.size();) {
    pollfd in{fd, POLLIN, 0};
    if (::poll(&in, 1, -1) < 0) {
      ASSERT_EQ(errno, EINTR);
      continue;
    }
    const ssize_t n = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0) {
      ASSERT_EQ(errno, EINTR);
    } else {
      ASSERT_GT(n, 0);
      done += static_cast<size_t>(n);
    }
  }
  EXPECT_TRUE(bytes == expected);
}

/// Sleeps the remaining time again and again.
void sleepWhole(std::chrono::milliseconds time) {
  const auto begin = std::chrono::steady_clock::now();
  timespec left{0, static_cast<long>(time.count()) * 1'000'000};
  while (::nanosleep(&left, &left) != 0) ASSERT_EQ(errno, EINTR);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, time);
}

TEST(EintrRace, LoopsThatGoOnAfterEintrLoseNothing) {
  const LeakCheck leaks;
  const EintrMode posix(HookEintr::kPosix);
  const std::vector<char> bytes = streamBytes(kStreamSize);
  for (const int flags : {0, SA_RESTART}) {
    const CountingHandler handler(flags);
    IOManager iom(kWorkers, false, "signals");
    const std::vector<pid_t> threads = threadsOf(iom, kWorkers);
    const Signals signals(threads, seed());
    std::atomic<int> left{3};
    const Pair pair = unixPair();
    iom.schedule([&] {
      writeAll(pair.b, bytes);
      left.fetch_sub(1);
    });
    iom.schedule([&] {
      readAll(pair.a, bytes);
      left.fetch_sub(1);
    });
    iom.schedule([&] {
      do {
        sleepWhole(std::chrono::milliseconds(50));
      } while (g_handled.load() == 0);  // on a busy machine the sender may begin late
      left.fetch_sub(1);
    });
    spinUntil(left, 0);
    EXPECT_GT(g_handled.load(), 0);
  }
}

}  // namespace
}  // namespace sylar::test
