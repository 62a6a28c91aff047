// Everything that may end a wait, at random and at once: data, a timeout, a close of the number or of its peer, cancelling, a
// stop; between fibers that move from worker to worker and open, close and so reuse descriptors all the time. Each wait must end
// once, for the reason that there was, and nothing may be left. The seed repeats the choices, not the schedule.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "sylar/iomanager.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using Random = std::mt19937_64;
using test::LeakCheck;

#if defined(SYLAR_TSAN) || defined(SYLAR_ASAN)
constexpr int kWaits = 20'000;
#else
constexpr int kWaits = 100'000;
#endif
constexpr size_t kVisitors = 16;
constexpr int kWorlds = 10;

/// What is done to a wait by whoever takes it from the board.
enum class Act { kNothing, kSend, kClose, kHangUp, kCancel };

/// One wait for a descriptor; lies with the fiber that waits.
struct Visit {
  uint64_t id = 0;  // what is sent; no other wait has it
  int fd = -1;
  int peer = -1;
  Fiber::ptr fiber;
  std::chrono::microseconds timeout{0};  // 0: none
  std::atomic<bool> posted{false};
  // Of who took it:
  Act act = Act::kNothing;
  std::atomic<bool> over{false};
};

/// How waits ended; everything must come up.
struct Ends {
  std::atomic<int> data{0};
  std::atomic<int> hang_up{0};
  std::atomic<int> closed{0};
  std::atomic<int> timeout{0};
  std::atomic<int> cancelled{0};
};

/// Waits that have begun, one place for each visitor.
using Board = std::array<std::atomic<Visit*>, kVisitors>;

/// Two managers and those who visit them.
class World {
 public:
  World(Random& random, size_t workers, int waits, Ends& ends)
      : m_ends(ends), m_left(waits), m_managers{IOManager(workers, false, "left"), IOManager(workers, false, "right")} {
    for (auto& place : m_board) place = nullptr;
    for (size_t i = 0; i < kVisitors; ++i) enter(m_managers[i % 2], i, random());
  }

  int left() const { return m_left.load(); }
  void meddle(Random& random);
  /// With a deadline: while they are at it.
  void end(Deadline deadline) {
    m_stopped = !deadline.isNever();
    for (IOManager& manager : m_managers) {
      if (m_stopped) {
        EXPECT_TRUE(manager.stop(deadline).clean);
      } else {
        manager.stop();
      }
    }
    for (const auto& place : m_board) EXPECT_EQ(place.load(), nullptr);
  }

 private:
  bool enter(Scheduler& manager, size_t place, uint64_t seed) {
    return manager.trySchedule(std::make_shared<Fiber>([this, place, seed] { visit(place, seed); }));
  }
  void visit(size_t place, uint64_t seed);
  void move(Random& random);
  void waitOnce(size_t place, Random& random);
  void post(Visit& visit, std::atomic<Visit*>& place);
  void check(const Visit& visit, ssize_t result, uint64_t got, int error, std::chrono::nanoseconds took);

  Ends& m_ends;
  std::atomic<int> m_left;
  std::atomic<bool> m_stopped{false};
  Board m_board;
  std::array<IOManager, 2> m_managers;
};

void World::visit(size_t place, uint64_t seed) {
  Random random(seed);
  while (m_left.fetch_sub(1) > 0 && !this_fiber::cancelled()) {
    move(random);
    waitOnce(place, random);
  }
  // Cancelled is for good: somebody else goes on in this place.
  if (this_fiber::cancelled() && !m_stopped) enter(*Scheduler::GetThis(), place, random());
}

void World::move(Random& random) {
  if (random() % 4 != 0) return;
  IOManager& to = m_managers[random() % 2];
  to.switchTo(coreOf(to).workers()[random() % coreOf(to).workers().size()]->threadId());
}

/// A wait in one of the ways that there are. Data comes as a whole, so `got` is the id that was sent.
ssize_t waitFor(Visit& visit, uint64_t kind, uint64_t& got) {
  if (kind == 0) return ::read(visit.fd, &got, sizeof got);
  if (kind == 1) return ::recv(visit.fd, &got, sizeof got, 0);
  pollfd one{visit.fd, POLLIN, 0};
  const int timeout_ms = visit.timeout == 0us ? -1 : static_cast<int>(visit.timeout / 1ms);
  const int n = ::poll(&one, 1, timeout_ms);
  if (n == 0) errno = EAGAIN;
  if (n == 1 && one.revents == POLLNVAL) errno = EBADF;
  if (n != 1 || one.revents == POLLNVAL) return -1;
  return ::recv(visit.fd, &got, sizeof got, MSG_DONTWAIT);
}

void World::waitOnce(size_t place, Random& random) {
  static std::atomic<uint64_t> g_next_id{1};
  Visit visit;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  visit.id = g_next_id.fetch_add(1);
  visit.fd = ends[0];
  visit.peer = ends[1];
  visit.fiber = Fiber::GetThis();
  visit.timeout = random() % 2 == 0 ? 0us : std::chrono::microseconds(1'000 * (1 + random() % 3));
  const timeval timeout{0, visit.timeout.count()};
  EXPECT_EQ(::setsockopt(visit.fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout), 0);

  post(visit, m_board[place]);
  const auto begin = std::chrono::steady_clock::now();
  uint64_t got = 0;
  const ssize_t result = waitFor(visit, random() % 3, got);
  const int error = errno;
  const auto took = std::chrono::steady_clock::now() - begin;
  while (!visit.posted) Fiber::YieldToReady();
  Visit* mine = &visit;
  if (!m_board[place].compare_exchange_strong(mine, nullptr)) {
    while (!visit.over) std::this_thread::yield();  // meddlers have threads of their own
  }
  check(visit, result, got, error, took);
  EXPECT_TRUE(visit.act == Act::kClose || ::close(visit.fd) == 0);
  EXPECT_TRUE(visit.act == Act::kHangUp || ::close(visit.peer) == 0);
}

/// The worker begins this when the visitor has left it: so what stands on the board is a wait that has begun, and who closes the
/// number there does not hit the number's next owner.
void World::post(Visit& visit, std::atomic<Visit*>& place) {
  const bool accepted = Scheduler::GetThis()->trySchedule(std::make_shared<Fiber>([&visit, &place] {
                                                            place = &visit;
                                                            visit.posted = true;
                                                          }),
                                                          sys::threadId());
  if (!accepted) visit.posted = true;
}

void World::check(const Visit& visit, ssize_t result, uint64_t got, int error, std::chrono::nanoseconds took) {
  if (result == static_cast<ssize_t>(sizeof got)) {
    ++m_ends.data;
    EXPECT_EQ(visit.act, Act::kSend);
    EXPECT_EQ(got, visit.id) << "of another wait, by a number that was reused";
  } else if (result == 0) {
    ++m_ends.hang_up;
    EXPECT_EQ(visit.act, Act::kHangUp);
  } else {
    EXPECT_EQ(result, -1);
    switch (error) {
      case EBADF:
        ++m_ends.closed;
        EXPECT_EQ(visit.act, Act::kClose);
        break;
      case EAGAIN:
        ++m_ends.timeout;
        EXPECT_GT(visit.timeout.count(), 0);
        EXPECT_GE(took, visit.timeout) << "early";
        break;
      case ECANCELED:
        ++m_ends.cancelled;
        EXPECT_TRUE(this_fiber::cancelled());
        break;
      default: ADD_FAILURE() << std::strerror(error);
    }
  }
}

/// Takes a wait from the board and does something to it.
void World::meddle(Random& random) {
  Visit* const visit = m_board[random() % kVisitors].exchange(nullptr);
  if (visit == nullptr) return;
  const bool may_time_out = visit->timeout > 0us;
  switch (random() % 8) {
    case 0:
    case 1:
      visit->act = Act::kClose;
      EXPECT_EQ(::close(visit->fd), 0);
      break;
    case 2:
    case 3:
      visit->act = Act::kHangUp;
      EXPECT_EQ(::close(visit->peer), 0);
      break;
    case 4:
      visit->act = Act::kCancel;
      visit->fiber->cancel();
      break;
    case 5:
      if (may_time_out) break;
      [[fallthrough]];
    default:
      visit->act = Act::kSend;
      EXPECT_EQ(::send(visit->peer, &visit->id, sizeof visit->id, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof visit->id));
  }
  visit->over = true;
}

class MixRaceTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, MixRaceTest, test::kWorkerCounts);

// RT-7.3, FM-13, FM-14, CD-S7, CD-S8
TEST_P(MixRaceTest, EachWaitEndsOnceForARightReason) {
  const LeakCheck leaks;
  Random random(test::seed());
  const auto worlds = static_cast<int>(test::scaled(kWorlds));
  Ends ends;
  for (int i = 0; i < worlds && !HasFailure(); ++i) {
    const int waits = kWaits / kWorlds;
    std::optional<World> world(std::in_place, random, workers(), waits, ends);
    std::atomic<bool> over{false};
    const auto meddle = [&, seed = random()] {
      for (Random mine(seed); !over; Fiber::YieldToReady()) {
        world->meddle(mine);
        std::this_thread::yield();
      }
    };
    IOManager fiber_meddler(1, false, "meddler");
    fiber_meddler.schedule(meddle);
    std::thread thread_meddler(meddle);
    if (i % 2 == 0) {
      EXPECT_TRUE(test::eventually([&] { return world->left() < waits / 2; }));
      world->end(Deadline::after(test::kPatience));
    } else {
      EXPECT_TRUE(test::eventually([&] { return world->left() <= 0; }));
      world->end(Deadline::never());
    }
    over = true;
    thread_meddler.join();
    fiber_meddler.stop();
    world.reset();
  }
  for (const auto* end : {&ends.data, &ends.hang_up, &ends.closed, &ends.timeout, &ends.cancelled}) EXPECT_GT(end->load(), 0);
}

}  // namespace
}  // namespace sylar
