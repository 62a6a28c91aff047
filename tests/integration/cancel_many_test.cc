// Ten thousand fibers that wait in every way are cancelled at once: each wait ends, every destructor runs, nothing is left.
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <iostream>
#include <memory>
#include <vector>

#include "sylar/fiber/fiber_control.h"
#include "sylar/mutex.h"
#include "sylar/sync/channel.h"
#include "tests/hook/support.h"
#include "tests/sched/gate.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

/// Counts itself while it exists.
struct Counted {
  explicit Counted(std::atomic<int>& all) : alive(all) { ++alive; }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  std::atomic<int>& alive;
};

class CancelMany : public OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, CancelMany, kWorkerCounts);

TEST_P(CancelMany, EveryWaitEndsAndEveryDestructorRuns) {
  constexpr int kAll = 10'000, kPairs = 50;
  std::atomic<int> alive{0}, cancelled{0};
  Mutex mutex;
  Channel<int> channel;
  std::array<Ends, kPairs> pairs;
  for (Ends& ends : pairs) ends = makeUnix(hookedCalls(), SOCK_STREAM);
  const auto wait = [&](int i) {
    const int fd = pairs[static_cast<size_t>(i) % kPairs][0];
    char byte;
    pollfd one{fd, POLLIN, 0};
    switch (i % 5) {
      case 0: return ::recv(fd, &byte, 1, 0) == -1 && errno == ECANCELED;
      case 1: return ::poll(&one, 1, -1) == -1 && errno == ECANCELED;
      case 2: return ::sleep(3600) > 0;
      case 3: return !mutex.lock(Deadline::after(1h));
      default: return !channel.receive().has_value();
    }
  };
  {
    IOManager iom(workers(), false, "many");
    mutex.lock();
    std::vector<Fiber::ptr> fibers;
    for (int i = 0; i < kAll; ++i) {
      fibers.push_back(std::make_shared<Fiber>([&, i] {
        const Counted counted(alive);
        cancelled += wait(i) ? 1 : 0;
      }));
      iom.schedule(fibers.back());
    }
    for (const Fiber::ptr& fiber : fibers) {
      ASSERT_TRUE(eventually([&] { return stateOf(*fiber) == FiberState::kParked; }));
    }
    EXPECT_EQ(alive, kAll);
    const auto begin = std::chrono::steady_clock::now();
    for (const Fiber::ptr& fiber : fibers) fiber->cancel();
    for (const Fiber::ptr& fiber : fibers) fiber->join();
    const auto took = std::chrono::steady_clock::now() - begin;
    std::cout << kAll << " waits ended in " << std::chrono::duration_cast<std::chrono::milliseconds>(took).count() << " ms\n";
  }
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(cancelled, kAll);
  mutex.unlock();
  for (const Ends& ends : pairs) {
    for (const int fd : ends) ::close(fd);
  }
}

}  // namespace
}  // namespace sylar::test
