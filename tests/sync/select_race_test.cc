#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/sync/select.h"
#include "tests/support/fibers.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;

class SelectRaceTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, SelectRaceTest, test::kWorkerCounts);

// Two selects, each of which could do either half of both channels: every meeting is one send and one receive.
TEST_P(SelectRaceTest, SelectsThatFaceEachOtherMeet) {
  const test::LeakCheck leaks;
  constexpr int kSelects = 8;
  const int rounds = static_cast<int>(test::scaled(500));
  Channel<int> a, b;
  std::atomic<int> sent{0}, received{0};
  {
    IOManager iom(workers(), false, "meet");
    for (int i = 0; i < kSelects; ++i) {
      iom.schedule([&, i] {
        const auto got = [&](std::optional<int> value) { received += value.has_value(); };
        const auto gave = [&](bool was_sent) { sent += was_sent; };
        for (int round = 0; round < rounds; ++round) {
          EXPECT_TRUE(i % 2 == 0 ? select(onSend(a, int{i}, gave), onReceive(b, got))
                                 : select(onSend(b, int{i}, gave), onReceive(a, got)));
        }
      });
    }
  }
  EXPECT_EQ(sent, rounds * kSelects / 2);
  EXPECT_EQ(received, rounds * kSelects / 2);
}

// Every value that a select has sent is received once, whatever wins.
TEST_P(SelectRaceTest, NoValueIsLostOrDoubledUnderRandomTimeoutsAndCancels) {
  const test::LeakCheck leaks;
  const uint64_t seed = test::seed();
  const uint64_t each = test::scaled(2'000);
  Channel<uint64_t> channels[2] = {Channel<uint64_t>(0), Channel<uint64_t>(2)};
  std::atomic<uint64_t> sent{0}, got{0};
  Event stop;
  IOManager iom(workers(), false, "race");
  IOManager other(1, false, "other");
  const auto send = [&](uint64_t number) {
    std::mt19937_64 random(seed + number);
    for (uint64_t i = 0; i < each && !this_fiber::cancelled(); ++i) {
      const auto count = [&](bool was_sent) { sent += was_sent ? number * each + i + 1 : 0; };
      select(onSend(channels[0], number * each + i + 1, count), onSend(channels[1], number * each + i + 1, count),
             onTimeout(std::chrono::microseconds(random() % 200), [] {}));
    }
  };
  const auto receive = [&](uint64_t number) {
    std::mt19937_64 random(seed + 1000 + number);
    bool going = true;
    while (going && !this_fiber::cancelled()) {
      const auto count = [&](std::optional<uint64_t> value) { value ? void(got += *value) : void(going = false); };
      select(onReceive(channels[random() % 2], count), onReceive(channels[random() % 2], count),
             onTimeout(std::chrono::microseconds(random() % 200), [] {}));
    }
  };
  std::vector<Fiber::ptr> senders, receivers;
  for (uint64_t i = 0; i < 6; ++i) {
    senders.push_back(std::make_shared<Fiber>([&, i] { send(i); }));
    receivers.push_back(std::make_shared<Fiber>([&, i] { receive(i); }));
    (i % 3 == 0 ? other : iom).schedule(senders.back());
    iom.schedule(receivers.back());
  }
  std::thread sending_thread([&] { send(6); });
  std::thread receiving_thread([&] { receive(6); });
  senders[0]->cancel();
  receivers[0]->cancel();
  for (const Fiber::ptr& fiber : senders) fiber->join();
  sending_thread.join();
  for (Channel<uint64_t>& channel : channels) channel.close();
  for (const Fiber::ptr& fiber : receivers) fiber->join();
  receiving_thread.join();
  for (Channel<uint64_t>& channel : channels) {
    while (const std::optional<uint64_t> left = channel.tryReceive()) got += *left;
  }
  EXPECT_EQ(sent, got) << "seed " << seed;
}

}  // namespace
}  // namespace sylar
