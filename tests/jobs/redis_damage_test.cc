// Keys of the store in Redis are lost or damaged one at a time, as an eviction or a mistake does it. Everything else goes on.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "examples/jobs/redis_store.h"
#include "tests/integration/server_process.h"
#include "tests/support/fibers.h"

namespace jobs {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

const auto& g_server = sylar::test::ServerOfAllTests::add("redis");

constexpr const char* kJob = "{t[a-b]*}:job:";  // the prefix is no pattern
constexpr const char* kDue = "{t[a-b]*}:due";
constexpr const char* kDead = "{t[a-b]*}:dead";

class RedisDamage : public testing::Test {
 protected:
  /// Calls `body` in a fiber with an empty store, and a connection that damages it.
  template <class Body>
  void run(Body body) {
    sylar::test::inFiber([&] {
      const RedisTarget target{"127.0.0.1", g_server->port()};
      RedisConnection redis(target);
      redis.command({"FLUSHALL"});
      RedisStore store(target, "t[a-b]*");
      body(store, redis);
    });
  }

  static Job past(const std::string& id) { return {id, "1", When::at(Time(1000))}; }
  static Claims claim(Store& store) { return store.claim({100, 0s, 1h, 5}); }
  static std::string idsOf(const std::vector<Claim>& claims) {
    std::string ids;
    for (const Claim& each : claims) ids += each.id;
    return ids;
  }
  static void bury(Store& store, const std::string& id) {
    store.put({past(id)});
    for (const Claim& each : claim(store).taken) store.settle({{each.id, each.token, Verdict::kDead, 0s, "no"}});
  }
  static std::string score(RedisConnection& redis, const char* set, const std::string& id) {
    const auto reply = redis.command({"ZSCORE", set, id});
    return reply->type == REDIS_REPLY_NIL ? "" : std::string(reply->str, reply->len);
  }
};

/// What damages the hash of the job x.
std::vector<Words> damages() {
  const std::string key = std::string(kJob) + "x";
  std::vector<Words> all{{"DEL", key}, {"SET", key, "text"}};
  for (const char* field : {"payload", "due", "period", "run", "token", "attempts"}) all.push_back({"HDEL", key, field});
  for (const char* field : {"due", "period", "run", "token", "attempts"}) {
    for (const char* value : {"", "x", "1.5", "1e400", "nan", "inf", "0x10", " 1", "99999999999999999999"}) {
      all.push_back({"HSET", key, field, value});
    }
  }
  return all;
}

std::string textOf(const Words& words) {
  std::string text;
  for (const auto& each : words) text += each + ' ';
  return text;
}

// J-11
TEST_F(RedisDamage, AClaimDropsWhatIsNotWholeAndTakesTheRest) {
  run([](Store& store, RedisConnection& redis) {
    uint64_t dropped = 0;
    for (const Words& damage : damages()) {
      SCOPED_TRACE(textOf(damage));
      store.put({past("x"), past("y")});
      redis.command(damage);
      const Claims claims = claim(store);
      ASSERT_EQ(idsOf(claims.taken), "y");
      EXPECT_EQ(store.damage().dropped, ++dropped);
      EXPECT_EQ(store.settle({{"y", claims.taken[0].token}}), 1U);
      EXPECT_EQ(redis.command({"EXISTS", std::string(kJob) + "x"})->integer, 0);
      EXPECT_EQ(store.counts().jobs, 0U);
      EXPECT_EQ(claim(store).next, kNoTime);
    }
  });
}

// J-11
TEST_F(RedisDamage, ASettleOfWhatIsNotWholeEndsTheRest) {
  run([](Store& store, RedisConnection& redis) {
    for (const Words& damage : damages()) {
      for (const Verdict verdict : {Verdict::kDone, Verdict::kRetry, Verdict::kDead}) {
        SCOPED_TRACE(textOf(damage) + toText(verdict));
        store.put({past("x"), past("y")});
        const auto taken = claim(store).taken;
        ASSERT_EQ(idsOf(taken), "xy");
        redis.command(damage);
        EXPECT_EQ(store.settle({{"x", taken[0].token, verdict, 1h}, {"y", taken[1].token}}), 1U);
        EXPECT_EQ(store.counts().jobs, 0U);
        EXPECT_EQ(store.counts().dead, 0U);
      }
    }
  });
}

// J-11
TEST_F(RedisDamage, DeadLettersThatAreNotWholeAreNeitherListedNorRetried) {
  run([](Store& store, RedisConnection& redis) {
    for (const Words& damage : damages()) {
      SCOPED_TRACE(textOf(damage));
      bury(store, "x");
      bury(store, "y");
      redis.command(damage);
      const auto letters = store.deadLetters(10);
      ASSERT_EQ(letters.size(), 1U);
      EXPECT_EQ(letters[0].id, "y");
      EXPECT_EQ(store.counts().dead, 1U);
      bury(store, "x");
      redis.command(damage);
      EXPECT_FALSE(store.retry("x"));
      EXPECT_EQ(store.counts().jobs, 0U);
      EXPECT_EQ(store.counts().dead, 1U);
    }
  });
}

// J-11
TEST_F(RedisDamage, ACancelLeavesNothingWhateverIsLost) {
  run([](Store& store, RedisConnection& redis) {
    for (const Words& damage : damages()) {
      SCOPED_TRACE(textOf(damage));
      store.put({past("x")});
      redis.command(damage);
      EXPECT_NE(store.cancel("x"), Cancelled::kGone) << "it was there, and it will not run";
      EXPECT_EQ(store.cancel("x"), Cancelled::kGone);
      EXPECT_EQ(store.counts().jobs, 0U);
      redis.command({"DEL", std::string(kJob) + "x"});
      redis.command(damage);
      store.put({past("x")});
      const Claims claims = claim(store);
      EXPECT_EQ(idsOf(claims.taken), "x") << "a put replaces whatever is there";
      store.cancel("x");
    }
    EXPECT_EQ(store.damage().dropped, 0U);
  });
}

// J-11
TEST_F(RedisDamage, KeysOfOtherTypesAreInNobodysWay) {
  run([](Store& store, RedisConnection& redis) {
    for (const char* name : {"due", "dead", "number", "fence"}) {
      for (const Words& wrong : {Words{"SET", "x"}, Words{"RPUSH", "x"}, Words{"SADD", "x"}, Words{"HSET", "x", "y"}}) {
        SCOPED_TRACE(name + textOf(wrong));
        const std::string key = std::string("{t[a-b]*}:") + name;
        redis.command({"DEL", key});
        Words words{wrong[0], key};
        words.insert(words.end(), wrong.begin() + 1, wrong.end());
        redis.command(words);
        EXPECT_EQ(store.sweepDead(1, 1h, 10), 0U);
        bury(store, "d");
        store.put({past("y")});
        EXPECT_EQ(idsOf(claim(store).taken), "y");
        EXPECT_EQ(store.counts().jobs, 1U);
        EXPECT_EQ(store.counts().dead, 1U);
        store.cancel("y");
        store.cancel("d");
        redis.command({"DEL", "{t[a-b]*}:fence"});
      }
    }
  });
}

// J-11: a handler that keeps the last run of each job would take what follows for done.
TEST_F(RedisDamage, NumbersRiseEvenIfTheLastOneIsLost) {
  run([](Store& store, RedisConnection& redis) {
    const std::string key = "{t[a-b]*}:number";
    uint64_t last = 0;
    for (const Words& damage : {Words{"DEL", key}, Words{"SET", key, "x"}, Words{"SET", key, "1"}, Words{"SET", key, "1e9"},
                                Words{"SET", key, ""}, Words{"SET", key, "99999999999999999999"}}) {
      SCOPED_TRACE(textOf(damage));
      redis.command(damage);
      store.put({past("a")});
      const auto taken = claim(store).taken;
      ASSERT_EQ(idsOf(taken), "a");
      EXPECT_GT(taken[0].run, last);
      EXPECT_GT(taken[0].token, taken[0].run);
      last = taken[0].token;
      EXPECT_EQ(store.settle({{"a", last}}), 1U);
    }
  });
}

// J-11
TEST_F(RedisDamage, AFenceThatIsNoNumberHoldsUpNobody) {
  run([](Store& store, RedisConnection& redis) {
    redis.command({"SET", "{t[a-b]*}:fence", "x"});
    EXPECT_EQ(store.sweepDead(7, 1h, 10), 0U);
    EXPECT_EQ(store.sweepDead(6, 1h, 10), std::nullopt);
  });
}

// J-11
TEST_F(RedisDamage, AScoreThatIsNoTimeIsTheFarFutureUntilItIsMended) {
  run([](Store& store, RedisConnection& redis) {
    store.put({past("a")});
    redis.command({"ZADD", kDue, "+inf", "a"});
    const Claims claims = claim(store);
    EXPECT_EQ(idsOf(claims.taken), "");
    EXPECT_GT(claims.next, claims.now + 24h * 365 * 200);
    store.mend(1h);
    EXPECT_EQ(idsOf(claim(store).taken), "a");
  });
}

// J-11
TEST_F(RedisDamage, WhatHasLostItsPlaceGetsTheOneOfItsState) {
  run([](Store& store, RedisConnection& redis) {
    bury(store, "d");
    const std::string died = score(redis, kDead, "d");
    store.put({past("c")});
    const auto claimed = claim(store).taken;
    const Time now = claim(store).now;
    store.put({past("p"), {"f", "2", When::at(now + 2h)}});
    for (int i = 0; i < 1000; ++i) redis.command({"SET", "other:" + std::to_string(i), ""});
    redis.command({"DEL", kDue, kDead});
    redis.command({"HSET", std::string(kJob) + "broken", "payload", "1"});
    redis.command({"SET", std::string(kJob) + "text", "1"});
    EXPECT_EQ(store.counts().jobs + store.counts().dead, 0U);

    store.mend(1h);
    EXPECT_EQ(store.damage().repaired, 4U);
    EXPECT_EQ(store.damage().dropped, 2U);
    EXPECT_EQ(store.counts().jobs, 3U);
    EXPECT_EQ(store.counts().dead, 1U);
    EXPECT_EQ(score(redis, kDead, "d"), died);
    EXPECT_EQ(score(redis, kDue, "f"), std::to_string((now + 2h).count()));
    EXPECT_EQ(idsOf(claim(store).taken), "p") << "a replica may still have c";
    EXPECT_GE(std::stoll(score(redis, kDue, "c")), (now + 1h).count());
    EXPECT_EQ(store.settle({{"c", claimed[0].token}}), 1U);

    store.mend(1h);
    EXPECT_EQ(store.damage().repaired, 4U) << "each once";
    EXPECT_TRUE(store.retry("d"));
    redis.command({"DEL", kDue});
    store.mend(1h);
    EXPECT_EQ(store.counts().dead, 0U) << "d is a job again";
    EXPECT_EQ(redis.command({"DBSIZE"})->integer, 1000 + 3 + 2) << "p, f, d; the order and the last number";
  });
}

// J-11: with noeviction Redis refuses what needs memory, and a claim seems to need some.
TEST_F(RedisDamage, JobsRunAndEndThoughTheMemoryOfRedisIsFull) {
  run([](Store& store, RedisConnection& redis) {
    store.put({past("a"), past("b"), past("c")});
    redis.command({"CONFIG", "SET", "maxmemory", "1"});
    EXPECT_THROW(store.put({past("d")}), StoreError);
    RedisStore later({"127.0.0.1", g_server->port()}, "t[a-b]*");
    const auto taken = claim(later).taken;
    ASSERT_EQ(idsOf(taken), "abc");
    EXPECT_EQ(later.settle({{"a", taken[0].token}, {"b", taken[1].token, Verdict::kDead}}), 2U);
    EXPECT_TRUE(later.retry("b"));
    EXPECT_EQ(later.cancel("c"), Cancelled::kClaimed);
    EXPECT_EQ(later.sweepDead(1, 0s, 10), 0U);
    redis.command({"CONFIG", "SET", "maxmemory", "0"});
  });
}

}  // namespace
}  // namespace jobs
