// Counts of calls, waits and waiting times of hooked functions, on virtual time.
#include "sylar/hook_stats.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>

#include "sylar/hook.h"
#include "sylar/iomanager.h"
#include "sylar/testing/virtual_time.h"
#include "tests/support/fibers.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

HookStats statsOf(std::string_view name) {
  for (const HookStats& one : hookStats()) {
    if (one.name == name) return one;
  }
  return {.name = ""};
}

/// The counts of a function since this was made.
class Since {
 public:
  explicit Since(std::string_view name) : m_name(name), m_before(statsOf(name)) {}

  uint64_t calls() const { return statsOf(m_name).calls - m_before.calls; }
  uint64_t parks() const { return statsOf(m_name).parks - m_before.parks; }
  std::chrono::nanoseconds parked() const { return statsOf(m_name).parked - m_before.parked; }

 private:
  const std::string_view m_name;
  const HookStats m_before;
};

void expectCounts(const Since& since, uint64_t calls, uint64_t parks, std::chrono::nanoseconds parked) {
  EXPECT_EQ(since.calls(), calls);
  EXPECT_EQ(since.parks(), parks);
  EXPECT_EQ(since.parked(), parked);
}

TEST(HookStats, ASleepCountsAsOneWaitOfItsLength) {
  const Since sleeps("sleep"), usleeps("usleep");
  VirtualTime time;
  time.run([] {
    sleep(7);
    usleep(250);
    usleep(500);
  });
  expectCounts(sleeps, 1, 1, 7s);
  expectCounts(usleeps, 2, 2, 750us);
}

TEST(HookStats, AReadCountsItsWaitsAndAWriteThatFitsHasNone) {
  const Since reads("read"), writes("write"), polls("poll");
  VirtualTime time;
  time.run([] {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    IOManager::GetThis()->schedule([to = ends[1]] {
      sleep(3);
      EXPECT_EQ(write(to, "ab", 2), 2);
      sleep(2);
      EXPECT_EQ(write(to, "c", 1), 1);
    });
    char bytes[2];
    EXPECT_EQ(read(ends[0], bytes, 1), 1);  // waits for 3 s
    EXPECT_EQ(read(ends[0], bytes, 1), 1);
    pollfd one{ends[0], POLLIN, 0};
    EXPECT_EQ(poll(&one, 1, 500), 0);
    EXPECT_EQ(poll(&one, 1, -1), 1);
    EXPECT_EQ(poll(&one, 1, 0), 1);
    EXPECT_EQ(read(ends[0], bytes, 2), 1);
    close(ends[0]);
    close(ends[1]);
  });
  expectCounts(reads, 3, 1, 3s);
  expectCounts(writes, 2, 0, 0s);
  expectCounts(polls, 3, 2, 2s);
}

TEST(HookStats, AHelperThreadsCallIsAWaitOfTheFiber) {
  const Since lookups("getpwnam");
  inFiber([] { EXPECT_NE(getpwnam("root"), nullptr); });
  EXPECT_EQ(lookups.calls(), 1u);
  EXPECT_EQ(lookups.parks(), 1u);
}

// A wait is counted for the function that began it, even if other fibers make other calls meanwhile.
TEST(HookStats, FibersOfOneWorkerKeepTheirCountsApart) {
  const Since receives("recv"), sleeps("usleep");
  VirtualTime time;
  time.run([] {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    IOManager::GetThis()->schedule([to = ends[1]] {
      for (int i = 0; i < 10; ++i) usleep(100'000);
      EXPECT_EQ(send(to, "x", 1, 0), 1);
    });
    char byte;
    EXPECT_EQ(recv(ends[0], &byte, 1, 0), 1);
    close(ends[0]);
    close(ends[1]);
  });
  expectCounts(receives, 1, 1, 1s);
  expectCounts(sleeps, 10, 10, 1s);
}

TEST(HookStats, SeveralWorkersAreSummedAndStayCountedWhenTheyEnd) {
  const Since sleeps("nanosleep");
  for (int round = 0; round < 2; ++round) {
    IOManager iom(4, false, "test");
    for (int i = 0; i < 100; ++i) {
      iom.schedule([] {
        const timespec moment{0, 1000};
        EXPECT_EQ(nanosleep(&moment, nullptr), 0);
      });
    }
  }
  EXPECT_EQ(sleeps.calls(), 200u);
  EXPECT_EQ(sleeps.parks(), 200u);
}

TEST(HookStats, PlainThreadsAndFibersWithoutHooksAreNotCounted) {
  const Since sleeps("usleep");
  usleep(1);
  std::thread([] { usleep(1); }).join();
  inFiber([] {
    set_hook_enable(false);
    usleep(1);
  });
  expectCounts(sleeps, 0, 0, 0s);
}

TEST(HookStats, TellsEachNameOnceInTheOrderOfTheAlphabet) {
  inFiber([] { usleep(1); });
  const auto all = hookStats();
  const auto less = [](const HookStats& a, const HookStats& b) { return std::string_view(a.name) < b.name; };
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), less));
  for (size_t i = 1; i < all.size(); ++i) EXPECT_STRNE(all[i - 1].name, all[i].name);
  EXPECT_TRUE(std::all_of(all.begin(), all.end(), [](const HookStats& one) { return one.calls > 0; }));
}

}  // namespace
}  // namespace sylar::test
