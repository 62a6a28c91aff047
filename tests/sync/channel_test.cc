#include "sylar/sync/channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "sylar/fiber/fiber_control.h"
#include "sylar/iomanager.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"
#include "tests/sync/waiter.h"

namespace sylar {

#if !defined(__clang__) || __clang_major__ >= 16  // older ones instantiate members whose constraints are not met
template class Channel<std::unique_ptr<int>>;
#endif

namespace {

using namespace std::chrono_literals;
using test::waiterOn;

class ChannelTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, ChannelTest, test::kWorkerCounts);

TEST(Channel, HoldsAsMuchAsItsCapacity) {
  Channel<int> channel(2);
  EXPECT_TRUE(channel.trySend(1));
  EXPECT_TRUE(channel.trySend(2));
  EXPECT_FALSE(channel.trySend(3));
  EXPECT_EQ(channel.size(), 2u);
  EXPECT_EQ(channel.tryReceive(), 1);
  EXPECT_TRUE(channel.send(4));
  EXPECT_EQ(channel.receive(), 2);
  EXPECT_EQ(channel.receive(), 4);
  EXPECT_EQ(channel.tryReceive(), std::nullopt);
  EXPECT_EQ(channel.receive(Deadline::after(0ns)), std::nullopt);
}

TEST(Channel, CopiesWhatIsNotGivenAway) {
  Channel<std::string> channel(2);
  const std::string one = "one";
  std::string two = "two";
  EXPECT_TRUE(channel.trySend(one));
  EXPECT_TRUE(channel.send(two));
  EXPECT_FALSE(channel.trySend(two));
  EXPECT_EQ(channel.receive(), one);
  EXPECT_EQ(channel.receive(), two);
  EXPECT_EQ(one + two, "onetwo");
}

TEST(Channel, WithoutCapacityHoldsNothing) {
  Channel<int> channel;
  EXPECT_FALSE(channel.trySend(1));
  EXPECT_FALSE(channel.send(1, Deadline::after(0ns)));
  EXPECT_EQ(channel.tryReceive(), std::nullopt);
}

TEST(Channel, CarriesWhatCanOnlyBeMoved) {
  Channel<std::unique_ptr<int>> channel(1);
  EXPECT_TRUE(channel.send(std::make_unique<int>(7)));
  auto kept = std::make_unique<int>(8);
  EXPECT_FALSE(channel.trySend(std::move(kept)));
  ASSERT_NE(kept, nullptr) << "what was not sent stays with its sender";  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(**channel.receive(), 7);
}

TEST(Channel, WhatWasSentBeforeTheCloseIsReceived) {
  Channel<std::string> channel(3);
  channel.send("a");
  channel.send("b");
  channel.close();
  channel.close();
  EXPECT_TRUE(channel.isClosed());
  std::string late = "late";
  EXPECT_FALSE(channel.send(std::move(late)));
  EXPECT_EQ(late, "late");  // NOLINT(bugprone-use-after-move)
  EXPECT_FALSE(channel.trySend("later"));
  std::string all;
  for (const std::string& one : channel) all += one;
  EXPECT_EQ(all, "ab");
  EXPECT_EQ(channel.receive(), std::nullopt);
}

// Who waits for an answer to the last value must not wait for the next.
TEST_P(ChannelTest, ALoopLetsGoOfAValueBeforeItWaitsForTheNext) {
  Channel<std::shared_ptr<int>> channel(1);
  auto value = std::make_shared<int>(7);
  const std::weak_ptr<int> seen = value;
  IOManager iom(workers(), false, "loop");
  const Fiber::ptr fiber = waiterOn(iom, [&] {
    for (const auto& one : channel) EXPECT_EQ(*one, 7);
  });
  channel.send(std::move(value));
  EXPECT_TRUE(test::eventually([&] { return seen.expired(); }));
  channel.close();
  fiber->join();
}

/// Can be moved, but not assigned.
struct Fixed {
  explicit Fixed(int of) : number(of) {}
  Fixed(Fixed&&) noexcept = default;
  const int number;
};

TEST(Channel, ALoopNeedsNoAssignment) {
  Channel<Fixed> channel(2);
  channel.send(Fixed(1));
  channel.send(Fixed(2));
  channel.close();
  int sum = 0;
  for (const Fixed& one : channel) sum += one.number;
  EXPECT_EQ(sum, 3);
}

static_assert(std::input_iterator<Channel<int>::Iterator> && std::input_iterator<Channel<std::unique_ptr<int>>::Iterator>);
static_assert(std::ranges::input_range<Channel<int>&>);

TEST(Channel, IsARange) {
  Channel<int> channel(3);
  for (const int value : {1, 2, 3}) channel.send(value);
  channel.close();
  std::vector<int> all;
  std::ranges::copy(channel, std::back_inserter(all));
  EXPECT_EQ(all, (std::vector<int>{1, 2, 3}));
  EXPECT_TRUE(channel.begin() == channel.end());
}

TEST(Channel, DestroysWhatNobodyHasReceived) {
  const auto value = std::make_shared<int>(1);
  {
    Channel<std::shared_ptr<int>> channel(2);
    channel.send(value);
    channel.send(value);
    EXPECT_EQ(value.use_count(), 3);
  }
  EXPECT_EQ(value.use_count(), 1);
}

TEST_P(ChannelTest, ValuesComeInTheOrderOfTheirSends) {
  for (const size_t capacity : {0, 1, 7}) {
    Channel<int> channel(capacity);
    std::vector<int> got;
    IOManager iom(workers(), false, "order");
    iom.schedule([&] {
      for (int i = 0; i < 1'000; ++i) EXPECT_TRUE(channel.send(i));
      channel.close();
    });
    iom.schedule([&] {
      for (const int value : channel) got.push_back(value);
    });
    iom.stop();
    std::vector<int> sent(1'000);
    std::iota(sent.begin(), sent.end(), 0);
    EXPECT_EQ(got, sent) << capacity;
  }
}

TEST_P(ChannelTest, WaitingSendersAreServedInTheOrderOfTheirArrival) {
  Channel<int> channel(1);
  channel.send(0);
  IOManager iom(workers(), false, "senders");
  for (int i = 1; i <= 100; ++i) waiterOn(iom, [&, i] { EXPECT_TRUE(channel.send(i)); });
  for (int i = 0; i <= 100; ++i) EXPECT_EQ(channel.receive(), i);
}

TEST_P(ChannelTest, WaitingReceiversAreServedInTheOrderOfTheirArrival) {
  Channel<int> channel;
  IOManager iom(workers(), false, "receivers");
  for (int i = 0; i < 100; ++i) waiterOn(iom, [&, i] { EXPECT_EQ(channel.receive(), i); });
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(channel.trySend(int{i}));
}

TEST_P(ChannelTest, CloseEndsAllWaits) {
  Channel<int> empty;
  Channel<int> full(1);
  full.send(1);
  IOManager iom(workers(), false, "close");
  for (int i = 0; i < 10; ++i) {
    waiterOn(iom, [&] { EXPECT_EQ(empty.receive(), std::nullopt); });
    waiterOn(iom, [&] { EXPECT_FALSE(full.send(2)); });
  }
  std::thread thread([&] { EXPECT_EQ(empty.receive(), std::nullopt); });
  empty.close();
  full.close();
  thread.join();
  iom.stop();
  EXPECT_EQ(full.receive(), 1);
  EXPECT_EQ(full.receive(), std::nullopt);
}

TEST_P(ChannelTest, ASenderThatIsCancelledOrLateHasSentNothing) {
  Channel<std::string> channel;
  IOManager iom(workers(), false, "cancel");
  const Fiber::ptr cancelled = waiterOn(iom, [&] {
    std::string value = "mine";
    EXPECT_FALSE(channel.send(std::move(value)));
    EXPECT_EQ(value, "mine");  // NOLINT(bugprone-use-after-move)
  });
  const auto late = std::make_shared<Fiber>([&] { EXPECT_FALSE(channel.send("late", Deadline::after(1ms))); });
  iom.schedule(late);
  cancelled->cancel();
  cancelled->join();
  late->join();
  EXPECT_EQ(channel.tryReceive(), std::nullopt);
}

// A cancelled fiber gets what is there, and waits for nothing.
TEST_P(ChannelTest, ACancelledReceiverGetsWhatIsThere) {
  Channel<int> channel(2);
  IOManager iom(workers(), false, "drain");
  const Fiber::ptr fiber = waiterOn(iom, [&] {
    EXPECT_EQ(channel.receive(), std::nullopt);
    channel.send(1);
    channel.send(2);
    EXPECT_EQ(channel.receive(), 1);
    EXPECT_EQ(channel.receive(), 2);
    EXPECT_EQ(channel.receive(), std::nullopt);
  });
  fiber->cancel();
  fiber->join();
}

TEST_P(ChannelTest, AThreadAndAFiberOfAnotherManagerTalk) {
  Channel<int> there, back(1);
  IOManager first(workers(), false, "first");
  IOManager second(1, false, "second");
  first.schedule([&] {
    for (const int value : there) EXPECT_TRUE(back.send(value + 1));
    back.close();
  });
  second.schedule([&] {
    for (int i = 0; i < 500; ++i) EXPECT_TRUE(there.send(i));
    there.close();
  });
  int next = 0;
  for (const int value : back) EXPECT_EQ(value, ++next);
  EXPECT_EQ(next, 500);
}

}  // namespace
}  // namespace sylar
