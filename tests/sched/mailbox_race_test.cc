// Many threads on one mailbox, for a bounded number of letters. Made for ThreadSanitizer: what the letters carry is plain.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <semaphore>
#include <thread>
#include <vector>

#include "sylar/base/sanitizers.h"
#include "sylar/sched/mailbox.h"

namespace sylar {
namespace {

#ifdef SYLAR_TSAN
constexpr size_t kLetters = 10'000;
#else
constexpr size_t kLetters = 50'000;
#endif
constexpr size_t kSenders = 4;

struct Letter : QueueNode {
  Letter(size_t from, size_t what) : QueueNode(Kind::kMessage), source(from), value(what) {}
  const size_t source;
  size_t value;
};

/// The owner's side: sleeps whenever it may, and is woken by nothing but a notification.
struct Owner {
  Mailbox<> box;
  std::counting_semaphore<> notified{0};
  std::atomic<size_t> notifications{0};
  size_t sleeps = 0;
  size_t received = 0;
  std::vector<size_t> next = std::vector<size_t>(kSenders, 0);

  void notify() {
    notifications.fetch_add(1);
    notified.release();
  }
  void read() {
    NodeList mail = box.drain();
    while (QueueNode* node = mail.pop()) {
      const auto& letter = *static_cast<Letter*>(node);
      ASSERT_EQ(letter.value, next[letter.source]++) << "of source " << letter.source;
      ++received;
    }
  }
  void receive(size_t count) {
    while (received < count) {
      read();
      if (received == count || !box.trySleep()) continue;
      ++sleeps;
      notified.acquire();
      box.wakeUp();
    }
  }
};

std::vector<std::thread> send(Owner& owner, std::deque<Letter>& letters) {
  for (size_t i = 0; i < kSenders * kLetters; ++i) letters.emplace_back(i / kLetters, i % kLetters);
  std::vector<std::thread> threads;
  for (size_t source = 0; source < kSenders; ++source) {
    threads.emplace_back([&owner, &letters, source] {
      for (size_t i = 0; i < kLetters; ++i) {
        if (owner.box.push(&letters[source * kLetters + i])) owner.notify();
      }
    });
  }
  return threads;
}

// RT-7.2: none lost, none twice, FIFO for each source, and each sleep costs exactly one notification.
TEST(MailboxRace, EveryLetterArrivesOnceInItsOrderForOneNotificationASleep) {
  Owner owner;
  std::deque<Letter> letters;
  std::vector<std::thread> threads = send(owner, letters);
  owner.receive(kSenders * kLetters);
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(owner.box.drain().empty());
  EXPECT_EQ(owner.notifications.load(), owner.sleeps);
}

TEST(MailboxRace, WakersWithoutALetterLoseNothing) {
  Owner owner;
  std::deque<Letter> letters;
  std::atomic<bool> over{false};
  std::vector<std::thread> wakers;
  for (int i = 0; i < 2; ++i) {
    wakers.emplace_back([&] {
      while (!over.load()) {
        if (owner.box.tryWake()) owner.notify();
      }
    });
  }
  std::vector<std::thread> threads = send(owner, letters);
  owner.receive(kSenders * kLetters);
  over = true;
  for (auto& thread : threads) thread.join();
  for (auto& waker : wakers) waker.join();
  EXPECT_EQ(owner.notifications.load(), owner.sleeps);
}

}  // namespace
}  // namespace sylar
