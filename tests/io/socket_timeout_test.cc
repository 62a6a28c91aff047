// Timeouts of hooked calls against data, in an order that the test forces: one worker, a clock that stands still until it is
// told.
//
// A fiber that yields is in the worker's queue before whoever an event makes runnable in that turn, and whoever armed an equal
// timeout earlier before whoever armed it later: so the test acts when a reader's wait has ended and the reader has not run yet.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sylar/io/fd_table.h"
#include "tests/hook/support.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kTimeoutUs = 50'000;

void onManualClock(const std::function<void(ManualClock&)>& body) {
  ManualClock clock(10h);
  IOManager iom({.threads = 1, .use_caller = false, .name = "manual", .clock = &clock});
  iom.schedule([&] { body(clock); });
  iom.stop();
}

/// More turns, of 256 fibers each, than anything takes that is due or ready.
void someTurns() {
  for (int i = 0; i < 4 * 256; ++i) Fiber::YieldToReady();
}

/// A fiber that receives a byte, again and again, and notes what came: the byte, or 0 for EAGAIN.
class Reader {
 public:
  explicit Reader(int fd, size_t times = 1)
      : fiber(std::make_shared<Fiber>([this, fd, times] {
          while (got.size() < times) {
            char byte = 0;
            const ssize_t size = ::recv(fd, &byte, 1, 0);
            EXPECT_TRUE(size == 1 || errno == EAGAIN);
            got += size == 1 ? byte : '-';
          }
        })) {
    IOManager::GetThis()->schedule(fiber);
    untilParked(*fiber);
  }

  std::string got;
  const Fiber::ptr fiber;
};

void put(int fd, char byte) { EXPECT_EQ(::write(fd, &byte, 1), 1); }

/// Sends a byte, and returns when the event has ended the waits for it; nobody who waited has run since.
void putAndClaim(const Pair& pair, char byte, const std::vector<const Reader*>& readers) {
  const Entry& entry = *FdTable::at(pair.a);
  const uint64_t edges = entry.edges(Direction::kRead);
  std::vector<std::string> before;
  for (const Reader* reader : readers) before.push_back(reader->got);
  put(pair.b, byte);
  while (entry.edges(Direction::kRead) == edges) Fiber::YieldToReady();
  for (size_t i = 0; i < readers.size(); ++i) ASSERT_EQ(readers[i]->got, before[i]) << "the order is not forced";
}

// C-51, FM-10: wake-ups that bring nothing, because somebody else was faster, do not extend the deadline, by no nanosecond.
TEST(SocketTimeout, SpuriousWakeUpsDoNotExtendIt) {
  onManualClock([](ManualClock& clock) {
    const Pair pair = unixPair();
    setTimeout(hookedCalls(), pair.a, SO_RCVTIMEO, kTimeoutUs);
    Reader first(pair.a), second(pair.a);
    for (int i = 0; i < 4; ++i) {
      clock.advance(10ms);
      putAndClaim(pair, 'x', {&first, &second});
      char byte;
      ASSERT_EQ(libcCalls().recv(pair.a, &byte, 1, MSG_DONTWAIT), 1);
      someTurns();  // both have asked the kernel in vain
    }
    clock.advance(10ms - 1ns);
    someTurns();
    EXPECT_EQ(first.got + second.got, "") << "early";
    clock.advance(1ns);
    first.fiber->join();
    second.fiber->join();
    EXPECT_EQ(first.got + second.got, "--");
  });
}

// C-52, TD-13: the data was first. The deadline passes before the reader runs: it gets the data, and its next call, which begins
// at that moment, has a deadline of its own.
TEST(SocketTimeout, DataThatWasFirstIsTheOneResultAndTheOldTimerIsGone) {
  onManualClock([](ManualClock& clock) {
    const Pair pair = unixPair();
    setTimeout(hookedCalls(), pair.a, SO_RCVTIMEO, kTimeoutUs);
    Reader reader(pair.a, 3);
    clock.advance(49ms);
    putAndClaim(pair, 'a', {&reader});
    clock.advance(1ms);  // now the old deadline is due as well
    someTurns();
    EXPECT_EQ(reader.got, "a");
    clock.advance(49ms);
    someTurns();
    EXPECT_EQ(reader.got, "a") << "hit by the old timer";
    put(pair.b, 'b');
    someTurns();
    EXPECT_EQ(reader.got, "ab");
    clock.advance(50ms);
    reader.fiber->join();
    EXPECT_EQ(reader.got, "ab-");
  });
}

// C-52, TD-13: the timeout was first: what came at that moment is there for the next call, once.
TEST(SocketTimeout, TimeoutThatWasFirstIsTheOneResultAndTheDataStays) {
  onManualClock([](ManualClock& clock) {
    const Pair pair = unixPair();
    setTimeout(hookedCalls(), pair.a, SO_RCVTIMEO, kTimeoutUs);
    const Reader* claimed = nullptr;
    const auto writer = std::make_shared<Fiber>([&] {
      ::usleep(kTimeoutUs);  // the same deadline, armed before: it runs when the reader's wait has ended, and before the reader
      EXPECT_EQ(claimed->got, "");
      put(pair.b, 'a');
    });
    IOManager::GetThis()->schedule(writer);
    untilParked(*writer);
    Reader reader(pair.a, 3);
    claimed = &reader;
    clock.advance(50ms);
    someTurns();
    EXPECT_EQ(reader.got, "-a");
    clock.advance(50ms - 1ns);
    someTurns();
    EXPECT_EQ(reader.got, "-a");
    clock.advance(1ns);
    reader.fiber->join();
    EXPECT_EQ(reader.got, "-a-");
  });
}

// C-52, TD-13: a shorter timeout after a longer one, and the reverse: each call has its own.
TEST(SocketTimeout, EachCallHasItsOwn) {
  onManualClock([](ManualClock& clock) {
    const Pair pair = unixPair();
    for (const int64_t ms : {50, 5, 500, 1}) {
      setTimeout(hookedCalls(), pair.a, SO_RCVTIMEO, ms * 1'000);
      Reader reader(pair.a);
      clock.advance(std::chrono::milliseconds(ms) - 1ns);
      someTurns();
      EXPECT_EQ(reader.got, "");
      clock.advance(1ns);
      reader.fiber->join();
      EXPECT_EQ(reader.got, "-");
    }
  });
}

// C-46, FM-28: I/O between the passes of a storm: an echo goes to and fro while 20 000 timers, due at once, run in passes
// of 2 000.
TEST(TimerStormAndIO, AnEchoGoesOnBetweenThePasses) {
  static constexpr int kTimers = 20'000;
  static constexpr int kPass = 2'000;
  onManualClock([](ManualClock& clock) {
    const Pair pair = unixPair();
    int runs = 0;
    for (int i = 0; i < kTimers; ++i) IOManager::GetThis()->addTimer(1, [&runs] { ++runs; });
    const auto echo = std::make_shared<Fiber>([&] {
      for (char byte; ::read(pair.a, &byte, 1) == 1 && byte != 'e';) put(pair.a, byte);
    });
    IOManager::GetThis()->schedule(echo);
    untilParked(*echo);
    clock.advance(1ms);
    int longest = 0;
    int round_trips = 0;
    for (int before = 0; runs < kTimers; before = runs, ++round_trips) {
      char byte;
      put(pair.b, 'x');
      ASSERT_EQ(::read(pair.b, &byte, 1), 1);
      longest = std::max(longest, runs - before);
    }
    put(pair.b, 'e');
    echo->join();
    EXPECT_EQ(runs, kTimers);
    EXPECT_LE(longest, 2 * kPass) << "a pass on the way there, one on the way back";
    EXPECT_GE(round_trips, kTimers / (2 * kPass));
    EXPECT_FALSE(IOManager::GetThis()->hasTimer());
  });
}

}  // namespace
}  // namespace sylar::test
