// A fiber that a stop leaves behind in the midst of a hooked call, before it waits: it keeps nobody else waiting.
#include <poll.h>

#include <memory>

#include "sylar/clock.h"
#include "tests/hook/support.h"

namespace sylar::test {
namespace {

/// Once it is armed, the next who asks for the time waits until he is let go.
struct Stuck final : Clock {
  int64_t nowNs() const override {
    bool expected = true;
    if (armed.compare_exchange_strong(expected, false)) {
      inside.store(true);
      spinUntil(let_go, true);
    }
    return steadyClock().nowNs();
  }
  mutable std::atomic<bool> armed{false}, inside{false};
  std::atomic<bool> let_go{false};
};

struct Late {
  Stuck clock;
  std::atomic<bool> through{false};
  ssize_t result = 0;
  int error = 0;
};

/// `wait` reads the clock before it waits for `pair.a`, and there the stop comes; then another manager's fiber waits for it, too.
void othersHearAfter(const Pair& pair, const std::function<ssize_t()>& wait) {
  const auto late = std::make_shared<Late>();  // the thread stays, so no leak check
  {
    IOManager left(SchedulerOptions{.threads = 1, .use_caller = false, .name = "left", .clock = &late->clock});
    left.schedule([late, wait] {
      late->clock.armed = true;
      late->result = wait();
      late->error = errno;
      late->through = true;
    });
    spinUntil(late->clock.inside, true);
    EXPECT_FALSE(left.stop(Deadline::after(std::chrono::milliseconds(0))).clean);
  }
  late->clock.let_go = true;
  spinUntil(late->through, true);
  EXPECT_EQ(late->result, -1);
  EXPECT_EQ(late->error, ECANCELED);
  inFiber([&] {
    char byte = 0;
    bool heard = false;
    const auto other = std::make_shared<Fiber>([&] { heard = ::read(pair.a, &byte, 1) == 1; });
    IOManager::GetThis()->schedule(other);
    untilParked(*other);
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
    other->join();
    EXPECT_TRUE(heard);
  });
}

// Cause: it waited in the entry at an engine that nobody serves, and the others' events went there, too.
TEST(LeftBehind, BeforeAReadWaits) {
  const Pair pair = unixPair();
  setTimeout(hookedCalls(), pair.a, SO_RCVTIMEO, 3'600'000'000);
  othersHearAfter(pair, [fd = pair.a] {
    char byte = 0;
    return ::read(fd, &byte, 1);
  });
}

TEST(LeftBehind, BeforeAPollWaits) {
  const Pair pair = unixPair();
  othersHearAfter(pair, [fd = pair.a]() -> ssize_t {
    pollfd one{fd, POLLIN, 0};
    return ::poll(&one, 1, 3'600'000);
  });
}

}  // namespace
}  // namespace sylar::test
