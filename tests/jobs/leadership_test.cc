// One replica leads at a time, with a real etcd.
#include "examples/jobs/leadership.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "examples/jobs/memory_store.h"
#include "sylar/sync/task_group.h"
#include "tests/integration/server_process.h"
#include "tests/support/fibers.h"

namespace jobs {
namespace {

using namespace std::chrono_literals;

const auto& g_server = sylar::test::ServerOfAllTests::add("etcd");

std::string endpoint() { return "http://127.0.0.1:" + std::to_string(g_server->port()); }
Etcd etcd() { return Etcd({endpoint()}, 1s); }

/// Waits for something that comes about; the limit of the test ends it else.
void until(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::sleep_for(10ms);
}

/// A replica that takes part until it is told to leave.
class Candidate {
 public:
  Candidate(const std::string& name, const std::string& prefix, const sylar::Clock& clock = bootClock(), Etcd client = etcd())
      : leadership(
            std::move(client), {.name = name, .prefix = prefix, .ttl = 3s},
            [name] {
              return nlohmann::json{{"is", name}};
            },
            clock) {
    m_group.spawn([this] { leadership.run(); });
  }
  void leave() {
    m_group.cancel();
    m_group.join();
  }
  ~Candidate() { m_group.cancel(); }

  Leadership leadership;

 private:
  sylar::TaskGroup m_group;
};

// J-9
TEST(Leadership, TheFirstLeadsUntilItLeavesAndThenAnotherWithAHigherToken) {
  sylar::test::inFiber([] {
    Candidate one("one", "leaves");
    until([&] { return one.leadership.fence().has_value(); });
    Candidate two("two", "leaves");
    until([&] { return two.leadership.members().members.size() == 2; });
    EXPECT_EQ(two.leadership.members().leader, "one");
    EXPECT_EQ(two.leadership.members().members[0].about, (nlohmann::json{{"is", "one"}}));
    EXPECT_FALSE(two.leadership.fence().has_value());
    const uint64_t fence = *one.leadership.fence();

    one.leave();
    EXPECT_FALSE(one.leadership.fence().has_value());
    until([&] { return two.leadership.fence().has_value(); });
    EXPECT_GT(*two.leadership.fence(), fence);
    EXPECT_EQ(two.leadership.members().leader, "two");
    EXPECT_EQ(two.leadership.members().members.size(), 1U);

    // A leader that has looked at its clock, was paused, and goes on now, is refused.
    MemoryStore store;
    EXPECT_TRUE(store.sweepDead(fence, 0s, 1).has_value());
    EXPECT_TRUE(store.sweepDead(*two.leadership.fence(), 0s, 1).has_value());
    EXPECT_EQ(store.sweepDead(fence, 0s, 1), std::nullopt);
  });
}

// J-9
TEST(Leadership, EndsWithTheLeaseByTheClockOfTheReplica) {
  sylar::test::inFiber([] {
    sylar::ManualClock clock;
    Candidate one("one", "clock", clock);
    until([&] { return one.leadership.fence().has_value(); });
    g_server->suspend();  // so the lease is not renewed
    clock.advance(3s - 1ns);
    EXPECT_TRUE(one.leadership.fence().has_value());
    clock.advance(1ns);
    EXPECT_FALSE(one.leadership.fence().has_value());
    g_server->resume();
    until([&] { return one.leadership.fence().has_value(); });
  });
}

// J-9
TEST(Leadership, ComesBackWhenEtcdDoes) {
  sylar::test::inFiber([] {
    Candidate one("one", "restart");
    until([&] { return one.leadership.fence().has_value(); });
    g_server->kill();
    until([&] { return !one.leadership.fence().has_value(); });
    g_server->start();
    until([&] { return one.leadership.fence().has_value(); });
    EXPECT_EQ(one.leadership.members().leader, "one");
  });
}

// J-9
TEST(Leadership, IsTakenByOneOfManyThatComeAtTheSameTime) {
  sylar::test::inFiber(
      [] {
        std::vector<std::unique_ptr<Candidate>> all;
        for (int i = 0; i < 10; ++i) all.push_back(std::make_unique<Candidate>("c" + std::to_string(i), "many"));
        for (const auto& each : all) until([&] { return each->leadership.members().members.size() == 10; });
        size_t leaders = 0;
        for (const auto& each : all) {
          leaders += each->leadership.fence().has_value() ? 1 : 0;
          EXPECT_EQ(each->leadership.members().leader, all[0]->leadership.members().leader);
        }
        EXPECT_EQ(leaders, 1U);
      },
      2);
}

TEST(Leadership, IsNotHarmedByKeysThatNoReplicaHasPut) {
  sylar::test::inFiber([] {
    etcd().call("kv/put", {{"key", toBase64("foreign/members/x")}, {"value", toBase64("no JSON")}});
    etcd().call("kv/put", {{"key", toBase64("foreign/members/y")}, {"value", toBase64("[1]")}});
    etcd().call("kv/put", {{"key", toBase64("foreign/membersz")}, {"value", toBase64("{}")}});
    Candidate one("one", "foreign");
    until([&] { return one.leadership.fence().has_value(); });
    ASSERT_EQ(one.leadership.members().members.size(), 1U);
    EXPECT_EQ(one.leadership.members().members[0].name, "one");
  });
}

TEST(Leadership, AsksAnotherEndpointIfOneIsAway) {
  sylar::test::inFiber([] {
    Candidate one("one", "endpoints", bootClock(), Etcd({"http://127.0.0.1:1", endpoint()}, 1s));
    until([&] { return one.leadership.fence().has_value(); });
  });
}

TEST(Etcd, TellsWhyItFailed) {
  sylar::test::inFiber([] {
    EXPECT_THROW(Etcd({}, 1s), std::invalid_argument);
    EXPECT_THROW(Etcd({"http://127.0.0.1:1"}, 1s).call("kv/range", {}), EtcdError);
    Etcd client = etcd();
    EXPECT_THROW(client.call("lease/revoke", {{"ID", "77"}}), LeaseGone);
    EXPECT_THROW(client.call("kv/put", {{"key", toBase64("a")}, {"lease", "77"}}), LeaseGone);
    EXPECT_THROW(client.call("nowhere", {}), EtcdError);
    EXPECT_NO_THROW(client.call("kv/put", {{"key", toBase64("a")}, {"value", toBase64("b")}}));
  });
}

TEST(Base64, KeepsAllBytes) {
  for (const std::string& bytes :
       {std::string(), std::string("a"), std::string("ab"), std::string("\0\xff\n", 3), std::string(1000, 'x')}) {
    EXPECT_EQ(fromBase64(toBase64(bytes)), bytes);
  }
  EXPECT_EQ(toBase64("jobs/leader"), "am9icy9sZWFkZXI=");
  EXPECT_EQ(fromBase64(""), "");
  for (const char* text : {"a", "ab", "abc", "!!!!", "====", "="}) EXPECT_THROW(fromBase64(text), EtcdError) << text;
}

}  // namespace
}  // namespace jobs
