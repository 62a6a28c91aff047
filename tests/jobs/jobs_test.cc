// Replicas on one store, on virtual time: when jobs run, what happens when attempts fail, hang, or come back too late.
#include "examples/jobs/jobs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "examples/jobs/memory_store.h"
#include "sylar/fiber.h"
#include "sylar/sync/event.h"
#include "sylar/sync/task_group.h"
#include "sylar/testing/virtual_time.h"

namespace jobs {
namespace {

using namespace std::chrono_literals;

constexpr Time kStart = 1'000'000s;  // of the clock of the store, which is not that of the replicas

When at(Micros after_start) { return When::at(kStart + after_start); }

/// A store that counts claims, and that can be out of reach.
class TestStore final : public Store {
 public:
  explicit TestStore(const sylar::Clock& clock) : m_memory(clock, kStart) {}

  void put(const std::vector<Job>& jobs) override { reached().put(jobs); }
  Cancelled cancel(const std::string& id) override { return reached().cancel(id); }
  Claims claim(const ClaimOptions& options) override {
    ++claims;
    if (claims_fail) throw StoreError("busy");
    Claims claimed = reached().claim(options);
    if (claimed.taken.empty() && empty_delay_s > 0) answers.set();
    sleep(std::exchange(claimed.taken.empty() ? empty_delay_s : answer_delay_s, 0));
    return claimed;
  }
  size_t settle(const std::vector<Outcome>& outcomes) override {
    if (settles_fail) throw StoreError("busy");
    return reached().settle(outcomes);
  }
  std::vector<DeadLetter> deadLetters(size_t limit) override { return reached().deadLetters(limit); }
  bool retry(const std::string& id) override { return reached().retry(id); }
  std::optional<size_t> sweepDead(uint64_t fence, Micros keep, size_t limit) override {
    return reached().sweepDead(fence, keep, limit);
  }
  StoreCounts counts() override { return reached().counts(); }
  void listen(const std::function<void(Time)>& earlier) override { reached().listen(earlier); }

  bool away = false;
  int claims = 0;
  unsigned answer_delay_s = 0;  // of the next claim that finds something
  unsigned empty_delay_s = 0;   // of the next one that finds nothing
  sylar::Event answers;         // that one is under way
  bool claims_fail = false;
  bool settles_fail = false;

 private:
  MemoryStore& reached() {
    if (away) throw StoreError("away");
    return m_memory;
  }
  MemoryStore m_memory;
};

/// Some replicas with one handler. Each attempt is noted with its time.
class JobsTest : public testing::Test {
 protected:
  void run(size_t replicas, const std::function<void()>& body) {
    time.run([&] {
      sylar::TaskGroup group;
      for (size_t i = 0; i < replicas; ++i) {
        all.push_back(std::make_unique<Jobs>(
            *sylar::IOManager::GetThis(), store,
            [this](const Claim& claim) {
              attempts[claim.id].push_back(time.elapsed());
              claims.push_back(claim);
              handler(claim);
            },
            options));
        group.spawn([&replica = *all.back()] { replica.run(); });
      }
      usleep(1000);
      body();
      for (const auto& each : all) each->drain();
      group.join();
    });
  }
  Jobs& jobs(size_t replica = 0) { return *all[replica]; }
  using Times = std::vector<std::chrono::nanoseconds>;

  sylar::VirtualTime time;
  TestStore store{time};
  Options options;
  Handler handler = [](const Claim&) {};
  std::vector<std::unique_ptr<Jobs>> all;
  std::map<std::string, Times> attempts;
  std::vector<Claim> claims;
};

// J-1
TEST_F(JobsTest, EachJobRunsOnceAndExactlyWhenItIsDue) {
  run(3, [&] {
    for (int i = 0; i < 1000; ++i) jobs(i % 3).schedule(std::to_string(i), at(10s + i * 7ms), "");
    sleep(60);
  });
  ASSERT_EQ(attempts.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(attempts[std::to_string(i)], (Times{10s + i * 7ms})) << i;
  EXPECT_EQ(jobs(0).counts().done + jobs(1).counts().done + jobs(2).counts().done, 1000U);
  EXPECT_EQ(jobs(0).counts().lag_p99, 0us);
}

// J-1
TEST_F(JobsTest, AnEarlierJobThroughAnotherReplicaWakesThoseThatSleep) {
  run(3, [&] {
    jobs(0).schedule("late", at(1h), "");
    sleep(100);
    jobs(1).schedule("early", at(200s), "");
    jobs(2).schedule("at once", When::in(0s), "");
    sleep(5000);
  });
  EXPECT_EQ(attempts["at once"], (Times{100s + 1ms}));
  EXPECT_EQ(attempts["early"], (Times{200s}));
  EXPECT_EQ(attempts["late"], (Times{1h}));
}

// A replica that did not know the time of its store yet took each job that it heard of for one of the far future.
TEST_F(JobsTest, WhatIsHeardBeforeTheFirstAnswerOfTheStoreIsNotForgotten) {
  store.claims_fail = true;
  store.empty_delay_s = 5;
  std::chrono::nanoseconds scheduled{0};
  run(1, [&] {
    sleep(10);  // by now it listens
    store.claims_fail = false;
    store.answers.wait();
    scheduled = time.elapsed();
    jobs().schedule("a", When::in(1s), "");
    sleep(200);
  });
  EXPECT_EQ(attempts["a"], (Times{scheduled + 5s}));
}

// J-5
TEST_F(JobsTest, WhoseLastClaimOrSettleHasFailedIsNotReady) {
  run(1, [&] {
    EXPECT_TRUE(jobs().ready());
    store.claims_fail = true;
    jobs().schedule("a", When::in(0s), "");
    sleep(10);
    EXPECT_FALSE(jobs().ready());
    store.claims_fail = false;
    handler = [this](const Claim&) { store.settles_fail = true; };
    sleep(10);
    EXPECT_EQ(claims.size(), 1U);
    EXPECT_FALSE(jobs().ready()) << "it can claim, and cannot settle";
    store.settles_fail = false;
    sleep(10);
    EXPECT_TRUE(jobs().ready());
    jobs().drain();
    EXPECT_FALSE(jobs().ready());
  });
}

// J-6
TEST_F(JobsTest, WhoHasNothingToDoAsksTheStoreEveryTwoMinutes) {
  run(3, [&] {
    for (int i = 0; i < 1000; ++i) jobs().schedule(std::to_string(i), When::in(24h), "");
    sleep(200);
    store.claims = 0;
    sleep(3600);
    EXPECT_LE(store.claims, 3 * 30);
    EXPECT_GE(store.claims, 3 * 29) << "and does so, in case that it has not heard of something";
  });
}

TEST_F(JobsTest, ManyJobsTakeFewClaims) {
  run(1, [&] {
    for (int i = 0; i < 2000; ++i) jobs().schedule(std::to_string(i), at(10s + i * 1ms), "");
    store.claims = 0;
    sleep(60);
    EXPECT_LE(store.claims, 60) << "of 2 s, with jobs that are 50 to 100 ms away each";
  });
}

TEST_F(JobsTest, ARecurringJobKeepsItsPhaseAndLeavesOutWhatItMissed) {
  handler = [this](const Claim&) {
    if (claims.size() == 2) usleep(2'500'000);
  };
  run(2, [&] {
    jobs().every("tick", 1s, "");
    usleep(8'500'000);
    EXPECT_EQ(jobs(1).cancel("tick"), Cancelled::kWaiting);
    sleep(10);
  });
  EXPECT_EQ(attempts["tick"], (Times{1001ms, 2001ms, 5001ms, 6001ms, 7001ms, 8001ms}));
}

// J-4
TEST_F(JobsTest, AttemptsThatFailAreRepeatedThenBuriedThenRetried) {
  options.max_attempts = 4;
  handler = [](const Claim&) { throw std::runtime_error("no\nway"); };
  run(2, [&] {
    jobs().schedule("a", at(10s), "x");
    sleep(100);
    const auto letters = store.deadLetters(10);
    ASSERT_EQ(letters.size(), 1U);
    EXPECT_EQ(letters[0].error, "no?way");
    EXPECT_EQ(letters[0].attempts, 4U);
    handler = [](const Claim&) {};
    EXPECT_TRUE(store.retry("a"));
    sleep(1);
    EXPECT_EQ(store.counts().jobs + store.counts().dead, 0U);
  });
  const Times& times = attempts["a"];
  ASSERT_EQ(times.size(), 5U);
  for (size_t i = 1; i < 4; ++i) {
    const auto whole = 1s * (1 << (i - 1));
    EXPECT_GE(times[i] - times[i - 1], whole / 2) << i;
    EXPECT_LE(times[i] - times[i - 1], whole) << i;
  }
  EXPECT_EQ(jobs(0).counts().failed + jobs(1).counts().failed, 4U);
  EXPECT_EQ(jobs(0).counts().buried + jobs(1).counts().buried, 1U);
}

// J-2
TEST_F(JobsTest, AJobWhoseReplicaNeverComesBackIsRunByAnother) {
  run(2, [&] {
    store.put({{"a", "", at(10s)}});
    sleep(9);
    // A third replica claims it and is never heard of again.
    ASSERT_EQ(store.claim({1, 2s, 30s, 10}).taken.size(), 1U);
    sleep(100);
  });
  ASSERT_EQ(attempts["a"].size(), 1U);
  EXPECT_GE(attempts["a"][0], 40s);
  EXPECT_LE(attempts["a"][0], 43s);
  EXPECT_EQ(claims[0].attempt, 2U);
}

// J-3
TEST_F(JobsTest, AClaimWhoseTimeIsOverIsNotRun) {
  options.visibility = 5s;
  options.handler_timeout = 5s;
  store.answer_delay_s = 60;  // as for a process that is stopped in its claim, and continues when another has the job
  run(1, [&] {
    jobs().schedule("a", at(10s), "");
    sleep(100);
  });
  ASSERT_EQ(claims.size(), 1U);
  EXPECT_EQ(claims[0].attempt, 2U);
  EXPECT_EQ(jobs().counts().lost, 1U);
  EXPECT_EQ(jobs().counts().done, 1U);
}

// J-2
TEST_F(JobsTest, AHandlerThatHangsIsEndedAndTheJobIsTriedAgain) {
  options.handler_timeout = 2s;
  handler = [](const Claim& claim) {
    if (claim.attempt > 1) return;
    sleep(1000);
    throw std::runtime_error("too late");
  };
  run(1, [&] {
    jobs().schedule("a", at(10s), "");
    sleep(60);
  });
  ASSERT_EQ(attempts["a"].size(), 2U);
  EXPECT_LE(attempts["a"][1], 13s + 1ms);
}

// J-2
TEST_F(JobsTest, WhatHappensWhileTheStoreIsAwayIsToldAfterwards) {
  run(2, [&] {
    jobs().schedule("a", at(10s), "");
    jobs().schedule("b", at(15s), "");
    handler = [this](const Claim&) { store.away = true; };
    sleep(20);
    ASSERT_EQ(claims.size(), 1U);
    EXPECT_THROW(jobs().schedule("c", When::in(1s), ""), StoreError);
    handler = [](const Claim&) {};
    store.away = false;
    sleep(3);
    EXPECT_EQ(store.counts().jobs, 0U);
    EXPECT_EQ(claims.size(), 2U) << "a was not run again";
  });
}

TEST_F(JobsTest, NoMoreIsClaimedThanAllowedAndAllIsRunInTheEnd) {
  options.max_claimed = 8;
  size_t running = 0;
  handler = [&](const Claim&) {
    EXPECT_LE(++running, 8U);
    sleep(1);
    --running;
  };
  run(1, [&] {
    for (int i = 0; i < 100; ++i) jobs().schedule(std::to_string(i), at(10s), "");
    sleep(60);
    EXPECT_EQ(claims.size(), 100U);
  });
}

// J-5
TEST_F(JobsTest, WhoDrainsClaimsNoMoreAndFinishesWhatItHas) {
  bool finished = false;
  handler = [&](const Claim&) {
    sleep(3);
    finished = true;
  };
  run(1, [&] {
    jobs().schedule("a", at(10s), "");
    jobs().schedule("b", at(11s), "");
    usleep(9'960'000);
    jobs().drain();
  });
  EXPECT_TRUE(finished);
  EXPECT_EQ(attempts.size(), 1U);
  time.run([&] { EXPECT_EQ(store.counts().jobs, 1U); });
}

}  // namespace
}  // namespace jobs
