#include "sylar/select.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/fiber/fiber_control.h"
#include "sylar/iomanager.h"
#include "sylar/sync/future.h"
#include "sylar/testing/virtual_time.h"
#include "tests/support/fibers.h"
#include "tests/sync/waiter.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using test::waiterOn;

class SelectTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, SelectTest, test::kWorkerCounts);

/// A case that must not be done.
const auto kNever = [](auto&&...) { ADD_FAILURE() << "the wrong case"; };

TEST(Select, TheFirstOfTheArgumentsThatCanBeDoneIsDone) {
  Channel<int> numbers(1);
  Channel<std::string> words(1);
  Event event;
  EXPECT_TRUE(words.trySend("a"));
  event.set();
  std::optional<std::string> word;
  EXPECT_TRUE(select(onReceive(numbers, kNever), onReceive(words, [&](auto got) { word = got; }), onSet(event, kNever)));
  EXPECT_EQ(word, "a");
  bool seen = false;
  EXPECT_TRUE(select(onReceive(numbers, kNever), onReceive(words, kNever), onSet(event, [&] { seen = true; })));
  EXPECT_TRUE(seen);
}

TEST(Select, ADeadlineThatHasPassedMeansThatItDoesNotWait) {
  Channel<int> channel;
  bool otherwise = false;
  EXPECT_TRUE(select(onReceive(channel, kNever), onSend(channel, 1, kNever), onTimeout(0ns, [&] { otherwise = true; })));
  EXPECT_TRUE(otherwise);
}

TEST(Select, AThreadWaitsLikeAFiber) {
  Channel<int> numbers;
  Event event;
  std::optional<int> got;
  std::thread sender([&] { EXPECT_TRUE(numbers.send(7)); });
  EXPECT_TRUE(select(onSet(event, kNever), onReceive(numbers, [&](std::optional<int> number) { got = number; })));
  EXPECT_EQ(got, 7);
  sender.join();
  bool late = false;
  EXPECT_TRUE(select(onSet(event, kNever), onReceive(numbers, kNever), onTimeout(1ms, [&] { late = true; })));
  EXPECT_TRUE(late);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_THROW(select(onReadable(ends[0], kNever), onSet(event, kNever), onTimeout(1h, kNever)), std::logic_error);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Select, AValueIsSentOrStaysWhereItWas) {
  Channel<std::unique_ptr<int>> full(1);
  Channel<std::unique_ptr<int>> closed;
  ASSERT_TRUE(full.trySend(std::make_unique<int>(1)));
  closed.close();
  auto mine = std::make_unique<int>(2);
  std::optional<bool> sent;
  EXPECT_TRUE(select(onSend(full, std::move(mine), kNever), onTimeout(0ns, [] {})));
  ASSERT_NE(mine, nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(select(onSend(closed, std::move(mine), [&](bool was_sent) { sent = was_sent; })));
  ASSERT_NE(mine, nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(sent, false);
  EXPECT_TRUE(full.receive().has_value());
  EXPECT_TRUE(select(onSend(full, std::move(mine), [&](bool was_sent) { sent = was_sent; })));
  EXPECT_EQ(mine, nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(sent, true);
  EXPECT_EQ(**full.receive(), 2);
}

// A select with both ends of one channel must not take its own offer for somebody else's.
TEST(Select, DoesNotMeetItself) {
  Channel<int> channel;
  IOManager iom(1, false, "alone");
  std::optional<int> got;
  const Fiber::ptr alone = waiterOn(iom, [&] {
    EXPECT_TRUE(select(onSend(channel, 1, kNever), onReceive(channel, [&](std::optional<int> number) { got = number; })));
  });
  EXPECT_TRUE(channel.send(5));
  alone->join();
  EXPECT_EQ(got, 5);
}

/// Cannot be queued, and just then somebody has sent.
class FailsToWait : public detail::SelectCase {
 public:
  explicit FailsToWait(Channel<int>& channel) : m_channel(channel) {}
  const void* place() const override { return reinterpret_cast<const void*>(UINTPTR_MAX); }  // the last
  bool tryNow() override { return false; }
  bool enqueue(detail::SyncWait& /*wait*/) override {
    sent += m_channel.trySend(1);
    throw std::logic_error("cannot wait");
  }
  void dequeue() override {}
  bool isDone() const override { return false; }
  void run() override {}
  int sent = 0;

 private:
  Channel<int>& m_channel;
};

TEST(Select, AValueThatCameBeforeAFailureIsNotLost) {
  Channel<int> channel;
  std::optional<int> got;
  FailsToWait fails(channel);
  EXPECT_TRUE(select(onReceive(channel, [&](auto value) { got = value; }), std::move(fails)));
  EXPECT_EQ(fails.sent, 1);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(got, 1);
  EXPECT_THROW(select(std::move(fails)), std::logic_error);
}

TEST(Select, ACaseMayBeMadeBeforeTheCall) {
  Event event;
  event.set();
  const std::string word = "long enough for the heap, so that a dangling copy shows";
  std::string seen;
  auto one = onSet(event, [word, &seen] { seen = word; });
  EXPECT_TRUE(select(std::move(one)));
  EXPECT_EQ(seen, word);
}

TEST_P(SelectTest, WakesForEachKindOfCase) {
  Channel<int> in, out;
  Event event;
  Promise<int> promise;
  Future<int> future = promise.getFuture();
  Semaphore go_on;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  std::string done;
  IOManager iom(workers(), false, "kinds");
  const auto other = std::make_shared<Fiber>([&] { go_on.wait(); });
  iom.schedule(other);
  const auto selectOne = [&] {
    EXPECT_TRUE(select(onReceive(in, [&](std::optional<int> number) { done = "receive " + std::to_string(number.value_or(-1)); }),
                       onSend(out, 3, [&](bool sent) { done = sent ? "send" : "closed"; }), onSet(event, [&] { done = "event"; }),
                       onReady(future, [&] { done = "future"; }), onReadable(ends[0], [&] { done = "readable"; }),
                       onEnd(other, [&] { done = "end"; }), onTimeout(1h, kNever)));
  };
  const auto wait = [&] { return waiterOn(iom, selectOne); };
  const auto finds = [&] {
    const auto fiber = std::make_shared<Fiber>(selectOne);
    iom.schedule(fiber);
    fiber->join();
    return done;
  };
  Fiber::ptr waiter = wait();
  EXPECT_TRUE(in.trySend(4));
  waiter->join();
  EXPECT_EQ(done, "receive 4");
  waiter = wait();
  EXPECT_EQ(out.tryReceive(), 3);
  waiter->join();
  EXPECT_EQ(done, "send");
  waiter = wait();
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  waiter->join();
  EXPECT_EQ(done, "readable");
  char byte;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  waiter = wait();
  event.set();
  waiter->join();
  EXPECT_EQ(done, "event");
  event.reset();
  waiter = wait();
  go_on.notify();
  waiter->join();
  EXPECT_EQ(done, "end");
  EXPECT_EQ(finds(), "end");
  promise.setValue(1);
  EXPECT_EQ(finds(), "future");
  out.close();
  EXPECT_EQ(finds(), "closed");
  in.close();
  EXPECT_EQ(finds(), "receive -1");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_P(SelectTest, ADescriptorThatIsClosedMeanwhileCounts) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Event never;
  IOManager iom(workers(), false, "close");
  bool told = false;
  const Fiber::ptr waiter =
      waiterOn(iom, [&] { EXPECT_TRUE(select(onSet(never, kNever), onReadable(ends[0], [&] { told = true; }))); });
  const auto closer = std::make_shared<Fiber>([&] { ::close(ends[0]); });
  iom.schedule(closer);
  waiter->join();
  EXPECT_TRUE(told);
  ::close(ends[1]);
}

TEST(Select, WritableWhenThereIsRoom) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const std::vector<char> block(1 << 16);
  while (::write(ends[0], block.data(), block.size()) > 0) continue;
  IOManager iom(1, false, "writable");
  bool told = false;
  const Fiber::ptr waiter =
      waiterOn(iom, [&] { EXPECT_TRUE(select(onReadable(ends[0], kNever), onWritable(ends[0], [&] { told = true; }))); });
  std::vector<char> taken(1 << 20);
  while (::read(ends[1], taken.data(), taken.size()) > 0) continue;
  waiter->join();
  EXPECT_TRUE(told);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Select, OnVirtualTimeTheEarliestTimeoutCounts) {
  VirtualTime time;
  int which = 0;
  time.run([&] {
    Event never;
    EXPECT_TRUE(select(onTimeout(2h, [&] { which = 2; }), onSet(never, kNever), onTimeout(1h, [&] { which = 1; })));
    EXPECT_EQ(time.elapsed(), 1h);
    const auto wait = [&] { return select(onSet(never, kNever), onTimeout(3h, kNever)); };
    EXPECT_FALSE(withDeadline(Deadline::after(1h, time), wait)) << "the scope's deadline comes first, and that is no case";
    EXPECT_EQ(time.elapsed(), 2h);
  });
  EXPECT_EQ(which, 1);
}

TEST_P(SelectTest, ACancelledFiberGetsWhatIsThereAndDoesNotWait) {
  Channel<int> channel(1);
  Event never;
  IOManager iom(workers(), false, "cancel");
  bool got = false;
  const Fiber::ptr waiter = waiterOn(iom, [&] {
    EXPECT_FALSE(select(onReceive(channel, kNever), onSet(never, kNever), onTimeout(1h, kNever)));
    EXPECT_TRUE(channel.trySend(1));
    EXPECT_TRUE(select(onSet(never, kNever), onReceive(channel, [&](auto value) { got = value == 1; })));
  });
  waiter->cancel();
  waiter->join();
  EXPECT_TRUE(got);
}

}  // namespace
}  // namespace sylar
