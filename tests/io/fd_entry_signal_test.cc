// Protocol P3 against signal handlers that interrupt it on their own thread: they wait for nothing, and nothing is lost.
#include <csignal>

#include "tests/io/fake_engine.h"

namespace sylar::test {
namespace {

using Entry = FdEntry<FakeEngine>;
using Waiter = FdWaiter<FakeEngine>;
constexpr auto kRead = Direction::kRead;

class FdEntrySignal : public testing::Test {
 public:
  FdEntrySignal() {
    FakeEngine::closed_later.clear();
    waiter.engine = &engine;
    waiter.fire = [](Waiter*, WakeReason reason) {
      EXPECT_EQ(reason, WakeReason::kClosed);
      ++t_woken;
    };
    t_woken = 0;
    s_this = this;
  }
  ~FdEntrySignal() override { ::signal(SIGUSR1, SIG_DFL); }

  /// Runs `body` in a signal handler on this thread, now.
  void inHandler(void (*body)(FdEntrySignal&)) {
    s_body = body;
    ::signal(SIGUSR1, [](int) { s_body(*s_this); });
    ::raise(SIGUSR1);
  }
  uint32_t generation() const { return Entry::generationOf(entry.life()); }
  bool closing() const { return Entry::isClosing(entry.life()); }
  int enqueue() { return entry.enqueue(kFd, generation(), kRead, entry.edges(kRead), false, waiter); }

  ZeroMemory memory;
  ZeroMemory other_memory;
  Entry& entry = memory.entry();
  Entry& other = other_memory.entry();
  FakeEngine engine;
  Waiter waiter;
  static inline int t_woken;

 private:
  static inline FdEntrySignal* s_this;
  static inline void (*s_body)(FdEntrySignal&);
};

// P3: a close that finds the lock held by its own thread is completed by the holder.
TEST_F(FdEntrySignal, ACloseUnderTheLockIsDoneByItsHolder) {
  engine.on_call = [&] {
    inHandler([](FdEntrySignal& my) {
      EXPECT_TRUE(Entry::interrupting());
      EXPECT_TRUE(my.entry.closeLater(kFd));
      EXPECT_TRUE(my.closing());
      EXPECT_FALSE(my.entry.closeLater(kFd)) << "somebody is at it";
    });
    EXPECT_TRUE(FakeEngine::closed_later.empty());
  };
  EXPECT_EQ(enqueue(), 0);  // queued, and then told
  EXPECT_EQ(t_woken, 1);
  EXPECT_EQ(FakeEngine::closed_later, std::vector<int>{kFd});
  EXPECT_EQ(engine.calls.back().what, "remove");
  EXPECT_FALSE(closing());
  EXPECT_EQ(generation(), 1u);
  EXPECT_FALSE(Entry::interrupting());
}

// P3: the same for a pin, which the close would wait for.
TEST_F(FdEntrySignal, ACloseUnderAPinIsDoneWhenThePinGoes) {
  ASSERT_EQ(enqueue(), 0);
  ASSERT_TRUE(entry.pin(0));
  inHandler([](FdEntrySignal& my) { EXPECT_TRUE(my.entry.closeLater(kFd)); });
  EXPECT_EQ(t_woken, 0);
  EXPECT_FALSE(entry.pin(0)) << "no new ones";
  EXPECT_EQ(t_woken, 0) << "the first pin is still held";
  entry.unpin();
  EXPECT_EQ(t_woken, 1);
  EXPECT_EQ(FakeEngine::closed_later, std::vector<int>{kFd});
}

// Two threads in sections whose handlers close each other's descriptors would wait for each other forever.
TEST_F(FdEntrySignal, ACloseOfAnotherDescriptorWaitsForNothingEither) {
  engine.on_call = [&] { inHandler([](FdEntrySignal& my) { EXPECT_TRUE(my.other.closeLater(8)); }); };
  EXPECT_EQ(enqueue(), 0);
  EXPECT_EQ(t_woken, 0);
  EXPECT_TRUE(waiter.linked);
  EXPECT_EQ(FakeEngine::closed_later, std::vector<int>{8});
  EXPECT_EQ(Entry::generationOf(other.life()), 1u);
  entry.dequeue(kRead, waiter);
}

TEST_F(FdEntrySignal, SeveralAreAllDone) {
  ASSERT_TRUE(entry.pin(0));
  inHandler([](FdEntrySignal& my) {
    EXPECT_TRUE(my.entry.closeLater(kFd));
    EXPECT_TRUE(my.other.closeLater(8));
  });
  entry.unpin();
  EXPECT_EQ(FakeEngine::closed_later, (std::vector<int>{8, kFd}));
  EXPECT_FALSE(closing() || Entry::isClosing(other.life()));
}

// dup2 in a handler: the number is another file's at once, its waiters are told afterwards.
TEST_F(FdEntrySignal, WhatMustHappenAtOnceDoes) {
  ASSERT_EQ(enqueue(), 0);
  ASSERT_TRUE(entry.pin(0));
  inHandler([](FdEntrySignal& my) { EXPECT_EQ(my.entry.close(kFd, [] { return 5; }), 5); });
  EXPECT_TRUE(closing());
  entry.unpin();
  EXPECT_EQ(t_woken, 1);
  EXPECT_TRUE(FakeEngine::closed_later.empty()) << "the number is somebody's";
  EXPECT_FALSE(closing());
}

// A number that a handler's creator got is one of which nothing is known.
TEST_F(FdEntrySignal, ACreatorUnderTheLockLeavesANewGeneration) {
  entry.open(kFd, FdKind::kTcp, true, true);
  ASSERT_TRUE(entry.pin(1));
  inHandler([](FdEntrySignal& my) { my.entry.open(kFd, FdKind::kPipe, true, false); });
  entry.unpin();
  EXPECT_EQ(generation(), 2u);
  EXPECT_FALSE(closing());
  EXPECT_EQ(entry.kind(), FdKind::kUnknown);
  EXPECT_FALSE(entry.isPrivate());
}

// A handler that interrupted the real close itself: the number is being closed, and calls do not wait for that.
TEST_F(FdEntrySignal, UnderTheRealCloseNothingWaitsForIt) {
  EXPECT_EQ(entry.close(kFd,
                        [&] {
                          EXPECT_FALSE(Entry::interrupting()) << "it may take long: others are closed meanwhile";
                          inHandler([](FdEntrySignal& my) {
                            EXPECT_TRUE(Entry::isClosing(my.entry.awaitOpen(kFd)));
                            EXPECT_EQ(my.entry.close(kFd, [] { return -1; }), -1);
                            EXPECT_EQ(my.other.close(8, [] { return 8; }), 8);
                          });
                          return 3;
                        }),
            3);
  EXPECT_FALSE(closing());
  EXPECT_EQ(generation(), 1u);
}

}  // namespace
}  // namespace sylar::test
