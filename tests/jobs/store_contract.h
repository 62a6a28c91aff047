// What all stores of examples/jobs promise. A test program instantiates StoreContract with its store.
//
// No test waits: jobs are due long ago or in an hour, and an hour is looked ahead or not.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "examples/jobs/store.h"
#include "sylar/sync/event.h"
#include "sylar/sync/task_group.h"
#include "tests/support/fibers.h"

namespace jobs {

using namespace std::chrono_literals;

inline constexpr Micros kHour = std::chrono::hours(1);

/// Makes a store that looks at the same jobs as the others of its test, and is empty at first.
struct MakeStore {
  std::function<std::unique_ptr<Store>()> make;
};
inline void PrintTo(const MakeStore& /*store*/, std::ostream* stream) { *stream << "a store"; }

class StoreContract : public testing::TestWithParam<MakeStore> {
 protected:
  /// Calls `body` in a fiber with two views of one store, as two replicas have them.
  void withStore(const std::function<void(Store&, Store&)>& body) {
    sylar::test::inFiber([&] {
      const auto one = GetParam().make();
      const auto other = GetParam().make();
      for (const DeadLetter& each : one->deadLetters(1000)) one->cancel(each.id);
      for (const Claim& each : one->claim({1000, 1000 * kHour, kHour, 1000}).taken) one->cancel(each.id);
      for (const char* id : {"a", "b", "c", "d", "e"}) one->cancel(id);
      body(*one, *other);
    });
  }

  static Job job(const std::string& id, When when, Micros period = Micros(0)) { return {id, "\"of " + id + "\"", when, period}; }
  static Job past(const std::string& id) { return job(id, When::at(Time(1000))); }
  /// Claims what is due.
  static Claims claim(Store& store, size_t limit = 100, Micros visibility = kHour, uint32_t attempts = 5) {
    return store.claim({limit, Micros(0), visibility, attempts});
  }
  static std::string idsOf(const Claims& claims) {
    std::string ids;
    for (const Claim& each : claims.taken) ids += each.id;
    return ids;
  }
};

// J-3
TEST_P(StoreContract, AClaimHasTheJobAndNobodyElseGetsIt) {
  withStore([](Store& one, Store& other) {
    one.put({job("a", When::at(Time(2000))), job("b", When::at(Time(1000))), job("c", When::in(kHour))});
    const Claims claims = claim(other);
    ASSERT_EQ(idsOf(claims), "ba") << "in the order of their times, and not the one of in an hour";
    EXPECT_EQ(claims.taken[0].payload, "\"of b\"");
    EXPECT_EQ(claims.taken[0].due, Time(1000));
    EXPECT_EQ(claims.taken[0].at, Time(1000));
    EXPECT_EQ(claims.taken[0].attempt, 1U);
    EXPECT_GT(claims.taken[0].token, 0U);
    EXPECT_NE(claims.taken[0].run, claims.taken[1].run);
    EXPECT_EQ(idsOf(claim(one)), "");
  });
}

// J-1
TEST_P(StoreContract, TheClockOfTheStoreDecides) {
  withStore([](Store& one, Store& other) {
    const Time now = claim(one).now;
    one.put({job("a", When::in(kHour)), job("b", When::at(now + 3 * kHour))});
    Claims claims = claim(other);
    EXPECT_EQ(idsOf(claims), "");
    EXPECT_GE(claims.next, now + kHour);
    EXPECT_LE(claims.next, claims.now + kHour) << "the earliest that is left";
    claims = other.claim({100, kHour + Micros(1min), Micros(1s), 5});
    ASSERT_EQ(idsOf(claims), "a") << "which is claimed an hour ahead";
    EXPECT_EQ(claims.next, claims.taken[0].at + Micros(1s) + kHour + Micros(1min)) << "where it comes back, as claims look ahead";
  });
}

TEST_P(StoreContract, NoMoreThanTheLimitIsClaimed) {
  withStore([](Store& one, Store& other) {
    one.put({past("a"), past("b"), past("c")});
    const Claims claims = claim(one, 2);
    EXPECT_EQ(claims.taken.size(), 2U);
    EXPECT_EQ(claims.next, Time(1000)) << "the third";
    EXPECT_EQ(claim(other, 2).taken.size(), 1U);
  });
}

// J-2
TEST_P(StoreContract, AJobComesBackWhenItsVisibilityTimeoutHasPassed) {
  withStore([](Store& one, Store& other) {
    one.put({past("a")});
    const Claims first = claim(one, 100, Micros(0));
    const Claims second = claim(other);
    ASSERT_EQ(idsOf(first) + idsOf(second), "aa");
    EXPECT_GT(second.taken[0].token, first.taken[0].token);
    EXPECT_EQ(second.taken[0].run, first.taken[0].run) << "it is another attempt at the same run";
    EXPECT_EQ(second.taken[0].attempt, 2U);
    EXPECT_EQ(one.settle({{"a", first.taken[0].token}}), 0U) << "this claim is not valid any more, and ends nothing";
    EXPECT_EQ(one.counts().jobs, 1U);
    EXPECT_EQ(one.settle({{"a", second.taken[0].token}}), 1U);
    EXPECT_EQ(one.counts().jobs, 0U);
  });
}

// J-4
TEST_P(StoreContract, AJobThatEndsNoAttemptBecomesADeadLetter) {
  withStore([](Store& one, Store&) {
    one.put({past("a")});
    EXPECT_EQ(idsOf(claim(one, 100, Micros(0), 2)), "a");
    EXPECT_EQ(idsOf(claim(one, 100, Micros(0), 2)), "a");
    EXPECT_EQ(idsOf(claim(one, 100, Micros(0), 2)), "");
    ASSERT_EQ(one.deadLetters(10).size(), 1U);
    EXPECT_EQ(one.deadLetters(10)[0].attempts, 2U);
    EXPECT_EQ(one.deadLetters(10)[0].error, "no attempt came to an end");
  });
}

// J-4
TEST_P(StoreContract, AFailedAttemptIsRepeatedAfterItsDelay) {
  withStore([](Store& one, Store& other) {
    one.put({past("a")});
    Claims claims = claim(one);
    ASSERT_EQ(idsOf(claims), "a");
    const Claim first = claims.taken[0];
    EXPECT_EQ(one.settle({{"a", first.token, Verdict::kRetry, kHour, "it's \"down\""}}), 1U);
    claims = claim(other);
    EXPECT_EQ(idsOf(claims), "");
    EXPECT_GE(claims.next, first.due + kHour);
    claims = other.claim({1, 2 * kHour, kHour, 5});
    ASSERT_EQ(idsOf(claims), "a");
    EXPECT_EQ(claims.taken[0].due, first.due);
    EXPECT_GT(claims.taken[0].at, first.at);
    EXPECT_EQ(claims.taken[0].run, first.run);
    EXPECT_EQ(claims.taken[0].attempt, 2U);
  });
}

// J-4
TEST_P(StoreContract, ADeadLetterIsListedAndRunsAgainWhenItIsRetried) {
  withStore([](Store& one, Store& other) {
    one.put({past("a"), past("b")});
    const Claims claims = claim(one);
    ASSERT_EQ(claims.taken.size(), 2U);
    EXPECT_EQ(one.settle({{"a", claims.taken[0].token, Verdict::kDead, Micros(0), "first"}}), 1U);
    EXPECT_EQ(one.settle({{"b", claims.taken[1].token, Verdict::kDead, Micros(0), "second"}}), 1U);
    const auto letters = other.deadLetters(1);
    ASSERT_EQ(letters.size(), 1U) << "as many as asked for, the latest first";
    EXPECT_EQ(letters[0].id + letters[0].payload + letters[0].error, "b\"of b\"second");
    EXPECT_EQ(one.counts().dead, 2U);
    EXPECT_EQ(one.counts().jobs, 0U);
    EXPECT_EQ(idsOf(claim(one)), "");

    EXPECT_TRUE(other.retry("a"));
    EXPECT_FALSE(other.retry("a")) << "it is a job again";
    EXPECT_FALSE(other.retry("c"));
    const Claims again = claim(one);
    ASSERT_EQ(idsOf(again), "a");
    EXPECT_EQ(again.taken[0].attempt, 1U);
    EXPECT_EQ(again.taken[0].run, claims.taken[0].run) << "so a handler that has done it knows";
    EXPECT_EQ(one.cancel("b"), Cancelled::kWaiting) << "a dead letter is thrown away";
    EXPECT_EQ(one.counts().dead, 0U);
  });
}

// J-9
TEST_P(StoreContract, OldDeadLettersAreSweptByNobodyButTheLatestLeader) {
  static uint64_t latest = 0;  // the server keeps it for as long
  const uint64_t fence = latest += 10;
  withStore([fence](Store& one, Store& other) {
    one.put({past("a"), past("b"), past("c"), past("d")});
    for (const Claim& each : claim(one, 3).taken) one.settle({{each.id, each.token, Verdict::kDead, Micros(0), "no"}});
    EXPECT_EQ(one.sweepDead(fence, kHour, 100), 0U) << "they are young";
    EXPECT_EQ(one.sweepDead(fence, Micros(0), 2), 2U) << "as many as asked for";
    ASSERT_EQ(one.deadLetters(10).size(), 1U);
    EXPECT_EQ(one.deadLetters(10)[0].id, "c") << "the oldest first";
    EXPECT_EQ(other.sweepDead(fence + 1, kHour, 100), 0U);
    EXPECT_EQ(one.sweepDead(fence, Micros(0), 100), std::nullopt) << "it leads no more, and does not know";
    EXPECT_EQ(one.counts().dead, 1U);
    EXPECT_EQ(other.sweepDead(fence + 1, Micros(0), 100), 1U) << "the same leader may go on";
    EXPECT_EQ(one.cancel("c"), Cancelled::kGone);
    EXPECT_EQ(one.counts().jobs, 1U) << "d is no dead letter";
  });
}

TEST_P(StoreContract, ARecurringJobComesBackInItsPhaseAndMissesNoMoreThanItMust) {
  withStore([](Store& one, Store& other) {
    one.put({job("a", When::at(Time(1000)), 24 * kHour)});
    const Claims claims = claim(one);
    ASSERT_EQ(idsOf(claims), "a");
    EXPECT_EQ(other.settle({{"a", claims.taken[0].token}}), 1U);
    const Claims next = other.claim({1, 24 * kHour, kHour, 5});
    ASSERT_EQ(idsOf(next), "a");
    EXPECT_GT(next.taken[0].due, next.now - 1s);
    EXPECT_LE(next.taken[0].due, next.now + 24 * kHour);
    EXPECT_EQ((next.taken[0].due - Time(1000)) % (24 * kHour), Micros(0));
    EXPECT_GT(next.taken[0].run, claims.taken[0].run);
    EXPECT_EQ(next.taken[0].attempt, 1U);
  });
}

// J-3
TEST_P(StoreContract, WhatIsScheduledAgainIsNewAndEndsTheClaimOfTheOld) {
  withStore([](Store& one, Store& other) {
    one.put({past("a")});
    const Claims old = claim(one);
    ASSERT_EQ(idsOf(old), "a");
    other.put({past("a")});
    EXPECT_EQ(one.settle({{"a", old.taken[0].token}}), 0U);
    const Claims anew = claim(other);
    ASSERT_EQ(idsOf(anew), "a");
    EXPECT_GT(anew.taken[0].run, old.taken[0].run);
    EXPECT_GT(anew.taken[0].token, old.taken[0].token);
    EXPECT_EQ(anew.taken[0].attempt, 1U);
    EXPECT_EQ(one.settle({{"a", anew.taken[0].token, Verdict::kDead, Micros(0), "no"}}), 1U);
    one.put({past("a")});
    EXPECT_EQ(one.counts().dead, 0U) << "a dead letter of that id is replaced, too";
    EXPECT_EQ(one.counts().jobs, 1U);
  });
}

TEST_P(StoreContract, CancellingTellsWhatItFound) {
  withStore([](Store& one, Store& other) {
    one.put({past("a"), job("b", When::in(kHour))});
    EXPECT_EQ(other.cancel("b"), Cancelled::kWaiting);
    EXPECT_EQ(other.cancel("b"), Cancelled::kGone);
    const Claims claims = claim(one);
    ASSERT_EQ(idsOf(claims), "a");
    EXPECT_EQ(other.cancel("a"), Cancelled::kClaimed);
    EXPECT_EQ(one.settle({{"a", claims.taken[0].token, Verdict::kRetry, Micros(0), "no"}}), 0U)
        << "there will be no other attempt";
    EXPECT_EQ(one.counts().jobs, 0U);
  });
}

TEST_P(StoreContract, LateJobsAreThoseThatNobodyHasClaimed) {
  withStore([](Store& one, Store&) {
    one.put({past("a"), past("b"), job("c", When::in(kHour))});
    EXPECT_EQ(one.counts().late, 2U);
    EXPECT_EQ(claim(one, 1).taken.size(), 1U);
    EXPECT_EQ(one.counts().late, 1U);
    EXPECT_EQ(one.counts().jobs, 3U);
  });
}

TEST_P(StoreContract, PayloadsAndIdsKeepTheirBytes) {
  withStore([](Store& one, Store& other) {
    const std::string id = R"(e"\{},'%s;$1 )";
    const std::string payload = R"({"text": "\"\\ {} , '' $$ \u0000 é\n", "null": null})";
    one.put({{id, payload, When::at(Time(0)), Micros(0)}});
    const Claims claims = claim(other);
    ASSERT_EQ(claims.taken.size(), 1U);
    EXPECT_EQ(claims.taken[0].id, id);
    EXPECT_EQ(claims.taken[0].payload, payload);
    EXPECT_EQ(one.settle({{id, claims.taken[0].token, Verdict::kDead, Micros(0), id}}), 1U);
    EXPECT_EQ(one.deadLetters(1)[0].error, id);
    EXPECT_EQ(one.cancel(id), Cancelled::kWaiting);
  });
}

// J-1
TEST_P(StoreContract, ListenersHearOfEachJobThatBecomesTheFirst) {
  withStore([](Store& one, Store& other) {
    sylar::TaskGroup listener;
    std::vector<Time> heard;
    std::vector<sylar::Event> events(4);
    listener.spawn([&] {
      other.listen([&](Time at) {
        heard.push_back(at);
        events[std::min(heard.size(), events.size()) - 1].set();
      });
    });
    events[0].wait();
    const Time now = claim(one).now;
    one.put({job("a", When::at(now + 3 * kHour))});
    events[1].wait();
    one.put({job("b", When::at(now + 4 * kHour))});  // is not the first
    one.put({job("c", When::at(now + 2 * kHour))});
    events[2].wait();
    one.put({past("d")});
    events[3].wait();
    EXPECT_EQ(heard, (std::vector<Time>{Time(0), now + 3 * kHour, now + 2 * kHour, Time(1000)}));
    listener.cancel();
  });
}

// J-1
TEST_P(StoreContract, ListenersHearOfAttemptsAndRetriesThatBecomeTheFirst) {
  withStore([](Store& one, Store& other) {
    one.put({past("a")});
    const Claims claims = claim(one, 1, 24 * kHour);
    ASSERT_EQ(idsOf(claims), "a");
    sylar::TaskGroup listener;
    std::vector<sylar::Event> events(3);
    size_t heard = 0;
    listener.spawn([&] { other.listen([&](Time) { events[std::min(heard++, events.size() - 1)].set(); }); });
    events[0].wait();
    EXPECT_EQ(one.settle({{"a", claims.taken[0].token, Verdict::kRetry, kHour, "no"}}), 1U);
    events[1].wait();
    const Claims again = other.claim({1, 2 * kHour, 24 * kHour, 5});
    ASSERT_EQ(idsOf(again), "a");
    EXPECT_EQ(one.settle({{"a", again.taken[0].token, Verdict::kDead, Micros(0), "no"}}), 1U);
    EXPECT_TRUE(one.retry("a"));
    events[2].wait();
    listener.cancel();
  });
}

}  // namespace jobs
