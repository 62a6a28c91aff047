// Active expiry, on virtual time: exact, bounded, and safe against keys that change at the last moment.
#include "examples/ttlkv/expirer.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <string>
#include <thread>

#include "sylar/iomanager.h"
#include "sylar/testing/virtual_time.h"
#include "sylar/timer_stats.h"
#include "tests/ttlkv/store.h"

namespace ttlkv::test {
namespace {

using namespace std::chrono_literals;

sylar::SchedulerOptions on(const sylar::Clock& clock) {
  sylar::SchedulerOptions options;
  options.use_caller = false;
  options.clock = &clock;
  return options;
}

/// An engine whose timers run on a clock that the test moves.
class TtlkvExpirer : public testing::Test {
 protected:
  TtlkvExpirer() { engine.expirer().start(iom); }
  ~TtlkvExpirer() override { engine.expirer().stop(); }
  std::string ask(std::string_view line) { return client.ask(line); }
  size_t keys() { return engine.keyspace().size(); }
  size_t armed() { return engine.keyspace().countVolatile().keys; }

  sylar::VirtualTime time{sylar::VirtualTime::kByHand};
  TestWallClock wall{time};
  Engine engine{wall, Options{}};
  TestClient client{engine};
  sylar::IOManager iom{on(time)};
};

TEST_F(TtlkvExpirer, RemovesAKeyInTheMillisecondAfterItsLast) {
  ask("SET a 1 PX 1000");
  ask("SET b 1 EX 86400");
  time.advance(1000ms);
  EXPECT_EQ(keys(), 2u);
  EXPECT_EQ(ask("PTTL a"), ":0\r\n");
  time.advance(1ms);
  EXPECT_EQ(keys(), 1u);  // nobody has asked for it
  time.advance(86400s);
  EXPECT_EQ(keys(), 0u);
  const ShardCounts counts = engine.keyspace().counts();
  EXPECT_EQ(counts.expired, 2u);
  EXPECT_EQ(counts.expired_lazily, 0u);
  EXPECT_EQ(counts.lag.max_ns, 0);
}

TEST_F(TtlkvExpirer, TakesAnEarlierDeadline) {
  ask("SET a 1 EX 100");
  ask("PEXPIRE a 10");
  time.advance(11ms);
  EXPECT_EQ(keys(), 0u);
}

// K-5
TEST_F(TtlkvExpirer, SparesAKeyThatIsSetAgainBeforeItsTimerRuns) {
  const struct {
    const char* command;
    const char* ttl;
  } kCases[] = {{"SET a 2", ":-1\r\n"}, {"PERSIST a", ":-1\r\n"}, {"SET a 2 EX 100", ":100\r\n"}, {"EXPIRE a 100", ":100\r\n"}};
  for (const auto& [command, ttl] : kCases) {
    ask("SET a 1 PX 50");
    ask("SET b 1 PX 50");
    time.advance(49ms);
    ask(command);
    time.advance(1s - 49ms);
    EXPECT_EQ(ask("EXISTS a b"), ":1\r\n") << command;
    ask("FLUSHALL");
  }
}

// K-5: the key is due and its pass has begun, but a command has the lock and revives the key. The pass decides under the lock, by
// the state of the key then.
TEST_F(TtlkvExpirer, SparesAKeyThatIsRevivedWhileItsPassWaits) {
  for (const int64_t expires_at_ms : {kNoExpiry, kStartMs + 3'600'000}) {
    ask("SET a 1 PX 50");
    std::thread clock;
    {
      const LockedKey place(engine.keyspace(), "a");
      const uint64_t passes = engine.expirer().passes();
      clock = std::thread([this] { time.advance(60ms); });
      while (engine.expirer().passes() == passes) sched_yield();  // the pass waits for the lock now
      place.shard().setExpiry(*place.shard().find(Key("a"), kStartMs), expires_at_ms);
    }
    clock.join();
    EXPECT_EQ(ask("GET a"), "$1\r\n1\r\n");
    EXPECT_EQ(engine.keyspace().counts().expired, 0u);
    EXPECT_TRUE(engine.keyspace().verify());
    ask("DEL a");
  }
}

// K-6
TEST_F(TtlkvExpirer, HasNoDeadlineLeftOfAKeyThatIsGone) {
  for (int i = 0; i < 1000; ++i) ask("SET key:" + std::to_string(i) + " 1 EX 100");
  EXPECT_EQ(armed(), 1000u);
  EXPECT_EQ(iom.getStats().resident, 64u);  // one timer for each shard, however many keys
  for (int i = 0; i < 100; ++i) ask("DEL key:" + std::to_string(i));
  EXPECT_EQ(armed(), 900u);
  for (int i = 100; i < 200; ++i) ask("SET key:" + std::to_string(i) + " 2");
  EXPECT_EQ(armed(), 800u);
  for (int i = 200; i < 300; ++i) ask("PERSIST key:" + std::to_string(i));
  EXPECT_EQ(armed(), 700u);
  for (int i = 300; i < 400; ++i) ask("SET key:" + std::to_string(i) + " 2 EX 50");
  EXPECT_EQ(armed(), 700u);
  for (int i = 400; i < 500; ++i) ask("GETEX key:" + std::to_string(i) + " PXAT 1");
  EXPECT_EQ(armed(), 600u);
  EXPECT_TRUE(engine.keyspace().verify());
  ask("FLUSHALL");
  EXPECT_EQ(armed(), 0u);
  EXPECT_EQ(engine.expirer().armedTimers(), 0u);
  EXPECT_EQ(iom.getStats().resident, 0u);
}

// K-4: between two passes of a shard other fibers run, and no pass removes more than its budget. With the time that a pass takes,
// which is measured in bench/, this bounds the wait of a request.
TEST_F(TtlkvExpirer, RemovesManyKeysInBoundedPasses) {
  constexpr size_t kKeys = 20'000;
  for (size_t i = 0; i < kKeys; ++i) ask("SET key:" + std::to_string(i) + " 1 PXAT " + std::to_string(kStartMs + 1000));
  std::atomic<size_t> most_in_between{0}, turns{0};
  time.advance(1000ms);
  EXPECT_EQ(keys(), kKeys);
  iom.schedule([&] {
    usleep(1000);  // wakes together with the timers
    for (size_t left = keys(); left > 0;) {
      sylar::Fiber::YieldToReady();
      const size_t now = keys();
      most_in_between = std::max(most_in_between.load(), left - now);
      left = now;
      ++turns;
    }
  });
  time.advance(1ms);
  EXPECT_EQ(keys(), 0u);
  EXPECT_GT(turns, 1u);
  EXPECT_LE(most_in_between, 2 * 64 * Options{}.expiry_budget);  // each shard has a turn, and a second one before or after ours
  EXPECT_GE(engine.expirer().passes(), kKeys / Options{}.expiry_budget);
  EXPECT_EQ(engine.keyspace().counts().expired, kKeys);
}

// K-4: a command never sees a key that has expired, although the timer has not removed it yet.
TEST_F(TtlkvExpirer, HidesWhatItHasNotRemovedYet) {
  ask("DEBUG SET-ACTIVE-EXPIRE 0");
  for (int i = 0; i < 100; ++i) ask("SET key:" + std::to_string(i) + " 1 PX 100");
  time.advance(101ms);
  EXPECT_EQ(ask("DBSIZE"), ":100\r\n");
  EXPECT_EQ(ask("KEYS *"), "*0\r\n");
  EXPECT_EQ(ask("MGET key:1 key:2"), "*2\r\n$-1\r\n$-1\r\n");
  EXPECT_EQ(ask("SET key:3 2 XX"), "$-1\r\n");
  EXPECT_EQ(ask("DEL key:4"), ":0\r\n");
  EXPECT_EQ(ask("INCR key:5"), ":1\r\n");
  EXPECT_EQ(ask("TTL key:5"), ":-1\r\n");
  EXPECT_EQ(engine.keyspace().counts().expired_lazily, 5u);
  ask("DEBUG SET-ACTIVE-EXPIRE 1");
  time.advance(0ms);
  EXPECT_EQ(ask("DBSIZE"), ":1\r\n");
}

TEST_F(TtlkvExpirer, WaitsOnWhenTheTimeOfDayIsSetBack) {
  ask("SET a 1 PX 1000");
  wall.step(-5s);
  time.advance(1001ms);
  EXPECT_EQ(keys(), 1u);
  EXPECT_EQ(ask("PTTL a"), ":4999\r\n");
  time.advance(5s);
  EXPECT_EQ(keys(), 0u);
}

TEST_F(TtlkvExpirer, FollowsWhenTheTimeOfDayIsSetForward) {
  ask("SET a 1 EX 3600");
  wall.step(3600s);
  EXPECT_EQ(ask("EXISTS a"), ":1\r\n");
  wall.step(1ms);
  EXPECT_EQ(keys(), 1u);
  time.advance(Expirer::kLongestWait);
  EXPECT_EQ(keys(), 0u);
}

TEST_F(TtlkvExpirer, LivesWithTheLastTimeThereIs) {
  ask("SET a 1 PXAT 9223372036854775807");
  time.advance(24h);
  EXPECT_EQ(keys(), 1u);
  ask("SET b 1 PXAT 9223372036854775806");
  time.advance(24h);
  EXPECT_EQ(keys(), 2u);
}

TEST_F(TtlkvExpirer, TellsSubscribersOnTime) {
  ask("CONFIG SET notify-keyspace-events KEx");
  TestClient listener(engine);
  listener.ask("SUBSCRIBE __keyevent@0__:expired");
  listener.ask("PSUBSCRIBE __keyspace@0__:*");
  ask("SET news 1 PX 500");
  time.advance(500ms);
  EXPECT_EQ(listener.messages(), "");
  time.advance(1ms);
  EXPECT_EQ(listener.messages(),
            "*4\r\n$8\r\npmessage\r\n$16\r\n__keyspace@0__:*\r\n$19\r\n__keyspace@0__:news\r\n$7\r\nexpired\r\n"
            "*3\r\n$7\r\nmessage\r\n$22\r\n__keyevent@0__:expired\r\n$4\r\nnews\r\n");
  ask("CONFIG SET notify-keyspace-events \"\"");
  ask("SET news 1 PX 500");
  time.advance(501ms);
  EXPECT_EQ(listener.messages(), "");
}

}  // namespace
}  // namespace ttlkv::test
