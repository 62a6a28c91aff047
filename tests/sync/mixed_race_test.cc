// Fibers of two managers and plain threads do random things with all primitives at once, with random deadlines and cancels. Each
// primitive keeps its own law, and nobody waits in vain.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/mutex.h"
#include "sylar/sync/channel.h"
#include "sylar/sync/condition_variable.h"
#include "sylar/sync/event.h"
#include "sylar/sync/future.h"
#include "sylar/sync/latch.h"
#include "sylar/sync/once.h"
#include "sylar/sync/select.h"
#include "sylar/sync/task_group.h"
#include "sylar/sync/wait_group.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"
#include "tests/support/sanitized.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;
using this_fiber::CancelShield;

constexpr uint64_t kFibers = 24;
constexpr uint64_t kThreads = 2;
constexpr uint64_t kPlayers = kFibers + kThreads;
constexpr uint64_t kPermits = 3;
constexpr size_t kCapacities[] = {0, 1, 16};
constexpr size_t kSlots = std::size(kCapacities);

// The tests for 1, 2 and 4 workers make more than 10^6 operations together. One is a call of Player::playOnce.
constexpr int64_t kRoundOperations = test::kSanitized ? 25'000 : 50'000;
constexpr uint64_t kRounds = 7;

/// A value that is in one place at a time. What was moved away is 0.
class Token {
 public:
  Token(uint64_t sender, uint64_t number) : m_bits(sender << 48 | number) {}
  Token(Token&& other) noexcept : m_bits(std::exchange(other.m_bits, 0)) {}
  Token& operator=(Token&&) = delete;
  ~Token() = default;

  uint64_t bits() const { return m_bits; }
  uint64_t sender() const { return m_bits >> 48; }
  uint64_t number() const { return m_bits & ((uint64_t{1} << 48) - 1); }

 private:
  uint64_t m_bits;
};

/// What was counted, in whatever order.
struct Tally {
  uint64_t count = 0;
  uint64_t sum = 0;
  uint64_t squares = 0;

  void add(uint64_t bits) { *this += Tally{1, bits, bits * bits}; }
  void operator+=(const Tally& other) {
    count += other.count;
    sum += other.sum;
    squares += other.squares;
  }
  bool operator==(const Tally&) const = default;
};

using TokenChannel = Channel<Token>;

/// A channel that is closed now and then, and followed by another.
class Slot {
 public:
  explicit Slot(size_t capacity) : m_capacity(capacity), m_channel(std::make_shared<TokenChannel>(capacity)) {}

  std::shared_ptr<TokenChannel> now() {
    const ThreadMutex::Lock lock(m_lock);
    return m_channel;
  }
  void replace(const std::shared_ptr<TokenChannel>& closed) {
    const ThreadMutex::Lock lock(m_lock);
    if (m_channel == closed && !m_ended) m_channel = std::make_shared<TokenChannel>(m_capacity);
  }
  /// Closes the channel for good.
  void end() {
    const ThreadMutex::Lock lock(m_lock);
    m_ended = true;
    m_channel->close();
  }

 private:
  const size_t m_capacity;
  ThreadMutex m_lock;
  bool m_ended = false;
  std::shared_ptr<TokenChannel> m_channel;
};

class Player;

/// The objects that all share, and what their laws are told by.
struct Table {
  explicit Table(size_t workers) : iom(workers, false, "mixed"), other(1, false, "other") {}

  /// Lets everybody go who waits for something that others would have done.
  void end() {
    for (Slot& slot : slots) slot.end();
    made += kPlayers;
    items.notify(kPlayers);
    const Mutex::Lock lock(queue_mutex);
    queue_ended = true;
    not_empty.notify_all();
    not_full.notify_all();
  }

  std::atomic<int64_t> left{kRoundOperations};
  std::atomic<uint64_t> patient{0};  // those who wait without a deadline for what others do of their own accord
  std::atomic<uint64_t> beside{0};   // fibers that players have started besides
  test::Gate spent, gone;

  Mutex mutex;
  uint64_t mutex_uses = 0;

  RWMutex rw_mutex;
  uint64_t writes = 0, writes_again = 0;
  std::atomic<int> readers{0}, writers{0};

  Semaphore permits{kPermits};
  std::atomic<uint64_t> permitted{0};

  Semaphore items;
  std::atomic<uint64_t> made{0};

  Mutex queue_mutex;
  ConditionVariable not_empty, not_full;
  std::deque<Token> queue;
  bool queue_ended = false;

  Event event;
  WaitGroup wait_group;
  std::array<Slot, kSlots> slots{Slot(kCapacities[0]), Slot(kCapacities[1]), Slot(kCapacities[2])};

  std::vector<std::unique_ptr<Player>> players;
  IOManager iom, other;  // the first to go
};

/// A fiber, together with those that follow it when it was cancelled, or a thread.
class Player {
 public:
  Player(Table& table, uint64_t number, uint64_t seed) : t(table), m_number(number), m_random(seed + number) {}

  /// Plays in a new fiber.
  void start() {
    const auto fiber = std::make_shared<Fiber>([this] {
      play();
      this_fiber::cancelled() ? start() : t.gone.open();
    });
    {
      const ThreadMutex::Lock lock(m_lock);
      m_fiber = fiber;
    }
    EXPECT_TRUE((m_number % 6 == 0 ? t.other : t.iom).trySchedule(fiber));
  }
  /// Plays on the calling thread. A thread does less, because a loaded machine lets it wait for its turn.
  void playOnThread() {
    m_most = kRoundOperations / 200;
    play();
    t.gone.open();
  }
  Fiber::ptr fiber() {
    const ThreadMutex::Lock lock(m_lock);
    return m_fiber;
  }

  // To be read when all have gone.
  uint64_t mutex_uses = 0, writes = 0, taken = 0, cancels = 0;
  Tally put, got_of_queue;
  std::array<Tally, kSlots> sent, received;

 private:
  void play() {
    for (; m_most > 0 && !this_fiber::cancelled(); --m_most) {
      const int64_t left = t.left.fetch_sub(1);
      if (left <= 0) return;
      if (left == 1) t.spent.open();
      if (one(8)) {
        withDeadline(soon(), [&] { playOnce(); });
      } else {
        playOnce();
      }
      if (one(4)) Fiber::YieldToReady();
    }
  }

  void playOnce() {
    static constexpr void (Player::*kOften[])() = {
        &Player::lock,     &Player::read,       &Player::write,         &Player::pass,       &Player::makeItem,
        &Player::takeItem, &Player::putInQueue, &Player::takeFromQueue, &Player::send,       &Player::receive,
        &Player::trySend,  &Player::tryReceive, &Player::selectSend,    &Player::selectBoth, &Player::selectReceive};
    static constexpr void (Player::*kSeldom[])() = {
        &Player::awaitEvent,  &Player::awaitGroup, &Player::arrive,    &Player::arriveLate,       &Player::callOnce,
        &Player::awaitFuture, &Player::runTasks,   &Player::takeTurns, &Player::readBehindWriter, &Player::passPermit,
        &Player::meet,        &Player::close,      &Player::cancel,    &Player::selectEnd};
    (this->*(one(16) ? kSeldom[below(std::size(kSeldom))] : kOften[below(std::size(kOften))]))();
  }

  // ---- Chance. ----

  uint64_t below(uint64_t limit) { return m_random() % limit; }
  bool one(uint64_t of) { return below(of) == 0; }
  Deadline soon() { return Deadline::after(std::chrono::microseconds(below(one(2) ? 30 : 300))); }
  Deadline soonOrNever() { return one(3) ? soon() : Deadline::never(); }
  Scheduler& anyManager() { return one(4) ? t.other : t.iom; }
  /// Runs `function` in a fiber of its own.
  template <class Function>
  void beside(Function function) {
    ++t.beside;
    anyManager().schedule([&table = t, function]() mutable {
      function();
      --table.beside;
    });
  }
  size_t anySlot() { return below(kSlots); }
  Token newToken() { return Token(m_number + 1, ++m_tokens); }

  /// The deadline of a wait for what others do of their own accord. It is never only while enough others go on.
  class Patience {
   public:
    explicit Patience(Player& player) : m_patient(player.t.patient), m_counted(player.one(2)) {
      if (!m_counted || ++m_patient > kPlayers / 2) deadline = player.soon();
    }
    ~Patience() {
      if (m_counted) --m_patient;
    }
    Patience(const Patience&) = delete;
    Patience& operator=(const Patience&) = delete;

    Deadline deadline = Deadline::never();

   private:
    std::atomic<uint64_t>& m_patient;
    const bool m_counted;
  };

  /// A wait with `deadline` has ended in vain. There is a reason for it.
  static void expectReason(Deadline deadline) {
    const Deadline earliest = std::min(deadline, this_fiber::deadline());
    EXPECT_TRUE(this_fiber::cancelled() || steadyClock().nowNs() >= earliest.ns());
  }

  // ---- Locks. ----

  void lock() {
    const Deadline deadline = soonOrNever();
    switch (below(3)) {
      case 0: t.mutex.lock(); break;
      case 1:
        if (!t.mutex.lock(deadline)) return expectReason(deadline);
        break;
      default:
        if (!t.mutex.try_lock()) return;
    }
    const uint64_t seen = t.mutex_uses;
    if (one(16)) Fiber::YieldToReady();
    t.mutex_uses = seen + 1;
    t.mutex.unlock();
    ++mutex_uses;
  }

  void read() {
    const Deadline deadline = soonOrNever();
    switch (below(3)) {
      case 0: t.rw_mutex.rdlock(); break;
      case 1:
        if (!t.rw_mutex.rdlock(deadline)) return expectReason(deadline);
        break;
      default:
        if (!t.rw_mutex.try_lock_shared()) return;
    }
    ++t.readers;
    EXPECT_EQ(t.writers, 0);
    if (one(16)) Fiber::YieldToReady();
    EXPECT_EQ(t.writes, t.writes_again);
    --t.readers;
    t.rw_mutex.unlock();
  }

  void write() {
    const Deadline deadline = soonOrNever();
    switch (below(3)) {
      case 0: t.rw_mutex.wrlock(); break;
      case 1:
        if (!t.rw_mutex.wrlock(deadline)) return expectReason(deadline);
        break;
      default:
        if (!t.rw_mutex.try_lock()) return;
    }
    EXPECT_EQ(++t.writers, 1);
    EXPECT_EQ(t.readers, 0);
    ++t.writes;
    if (one(16)) Fiber::YieldToReady();
    ++t.writes_again;
    --t.writers;
    t.rw_mutex.unlock();
    ++writes;
  }

  // ---- Semaphores. ----

  void pass() {
    const Deadline deadline = soonOrNever();
    if (one(4)) {
      if (!t.permits.tryWait()) return;
    } else if (!t.permits.wait(deadline)) {
      return expectReason(deadline);
    }
    EXPECT_LE(++t.permitted, kPermits);
    if (one(8)) Fiber::YieldToReady();
    --t.permitted;
    t.permits.notify();
  }

  void makeItem() {
    const uint64_t count = one(8) ? 3 : 1;
    t.made += count;
    t.items.notify(count);
  }

  void takeItem() {
    const Patience patience(*this);
    if (one(8)) {
      taken += t.items.tryWait() ? 1 : 0;
    } else if (t.items.wait(patience.deadline)) {
      ++taken;
    } else {
      expectReason(patience.deadline);
    }
  }

  // ---- A queue of a mutex and two conditions. ----

  void putInQueue() {
    const Patience patience(*this);
    const auto may_put = [&] { return t.queue.size() < 3 || t.queue_ended; };
    std::unique_lock lock(t.queue_mutex);
    if (!t.not_full.wait(lock, may_put, patience.deadline)) return expectReason(patience.deadline);
    if (t.queue_ended) return;
    t.queue.push_back(newToken());
    put.add(t.queue.back().bits());
    t.not_empty.notify_one();
  }

  void takeFromQueue() {
    const Patience patience(*this);
    const auto may_take = [&] { return !t.queue.empty() || t.queue_ended; };
    Mutex::Lock lock(t.queue_mutex);
    if (!t.not_empty.wait(lock, may_take, patience.deadline)) return expectReason(patience.deadline);
    if (t.queue.empty()) return;
    got_of_queue.add(t.queue.front().bits());
    t.queue.pop_front();
    t.not_full.notify_one();
  }

  /// Two that wake each other with no third one who could make up for a lost notification.
  void takeTurns() {
    struct Turns {
      Mutex mutex;
      ConditionVariable changed;
      int turn = 0;

      void play(int mine) {
        for (int i = 0; i < 5; ++i) {
          std::unique_lock lock(mutex);
          EXPECT_TRUE(changed.wait(lock, [&] { return turn % 2 == mine; }));
          ++turn;
          changed.notify_one();
        }
      }
    };
    const CancelShield shield;
    const auto turns = std::make_shared<Turns>();
    beside([turns] { turns->play(1); });
    turns->play(0);
  }

  /// A writer that leaves lets the reader behind it in, although nobody unlocks meanwhile.
  void readBehindWriter() {
    struct Readers {
      RWMutex mutex;
      Semaphore writer_comes, reader_is_in;
    };
    const CancelShield shield;
    const auto readers = std::make_shared<Readers>();
    readers->mutex.rdlock();
    beside([readers, deadline = soon()] {
      readers->writer_comes.notify();
      if (readers->mutex.wrlock(deadline)) readers->mutex.unlock();  // the reader came first
    });
    beside([readers] {
      EXPECT_TRUE(readers->writer_comes.wait());
      readers->mutex.rdlock();
      readers->reader_is_in.notify();
      readers->mutex.unlock();
    });
    EXPECT_TRUE(readers->reader_is_in.wait());
    readers->mutex.unlock();
  }

  /// Two that pass a permit on, and give up and come again meanwhile.
  void passPermit() {
    struct Court {
      Semaphore sides[2];

      void play(int mine, const std::array<uint64_t, 5>& patience) {
        for (const uint64_t microseconds : patience) {
          while (!sides[mine].wait(Deadline::after(std::chrono::microseconds(microseconds)))) continue;
          sides[1 - mine].notify();
        }
      }
    };
    std::array<uint64_t, 5> patience[2];
    for (auto& of_one : patience) {
      for (uint64_t& microseconds : of_one) microseconds = 1 + below(30);
    }
    const CancelShield shield;
    const auto court = std::make_shared<Court>();
    beside([court, patience = patience[1]] { court->play(1, patience); });
    court->sides[0].notify();
    court->play(0, patience[0]);
    EXPECT_TRUE(court->sides[0].wait());
  }

  /// Two that meet at two channels, whichever way they go there, with no third one who could make up for a missed meeting.
  void meet() {
    struct Meetings {
      explicit Meetings(size_t capacity) : there(capacity), back(capacity) {}

      /// Sends to `out` and receives from `in`, `selects` together or one after the other.
      static void meet(TokenChannel& out, TokenChannel& in, bool selects) {
        bool sent = false, got = false;
        Token token(1, 1);
        if (selects) {
          const auto gets = [&](const std::optional<Token>& answer) { got = answer.has_value(); };
          const auto sends = [&](bool was_sent) { sent = was_sent; };
          EXPECT_TRUE(select(onSend(out, std::move(token), sends), onReceive(in, gets)));
        }
        if (!sent) {
          EXPECT_TRUE(out.send(std::move(token)));
        }
        if (!got) {
          EXPECT_TRUE(in.receive().has_value());
        }
      }

      TokenChannel there, back;
    };
    const CancelShield shield;
    const auto meetings = std::make_shared<Meetings>(below(2));
    std::array<bool, 5> selects;
    for (bool& one_selects : selects) one_selects = one(2);
    beside([meetings, selects] {
      for (const bool now : selects) Meetings::meet(meetings->back, meetings->there, !now || selects[0]);
    });
    for (const bool now : selects) Meetings::meet(meetings->there, meetings->back, now || selects[0]);
  }

  // ---- Channels. ----

  /// The tokens of one sender come to one receiver in the order of their sends.
  void count(size_t slot, const Token& token) {
    ASSERT_NE(token.bits(), 0u) << "it was here twice";
    received[slot].add(token.bits());
    uint64_t& last = m_last[slot][token.sender() - 1];
    EXPECT_GT(token.number(), last);
    last = token.number();
  }

  /// The token has gone if it was sent, and is as it was if not.
  void count(size_t slot, const Token& token, uint64_t bits, bool was_sent) {
    EXPECT_EQ(token.bits(), was_sent ? 0 : bits);
    if (was_sent) sent[slot].add(bits);
  }

  void send() {
    const Patience patience(*this);
    const size_t slot = anySlot();
    const auto channel = t.slots[slot].now();
    Token token = newToken();
    const uint64_t bits = token.bits();
    const bool was_sent = channel->send(std::move(token), patience.deadline);
    count(slot, token, bits, was_sent);  // NOLINT(bugprone-use-after-move): that is the question
    if (!was_sent && !channel->isClosed()) expectReason(patience.deadline);
  }

  void receive() {
    const Patience patience(*this);
    const size_t slot = anySlot();
    const auto channel = t.slots[slot].now();
    if (const std::optional<Token> token = channel->receive(patience.deadline)) return count(slot, *token);
    if (!channel->isClosed()) expectReason(patience.deadline);
  }

  void trySend() {
    const size_t slot = anySlot();
    Token token = newToken();
    const uint64_t bits = token.bits();
    const bool was_sent = t.slots[slot].now()->trySend(std::move(token));
    count(slot, token, bits, was_sent);  // NOLINT(bugprone-use-after-move)
  }

  void tryReceive() {
    const size_t slot = anySlot();
    if (const std::optional<Token> token = t.slots[slot].now()->tryReceive()) count(slot, *token);
  }

  void close() {
    const size_t slot = anySlot();
    const auto channel = t.slots[slot].now();
    channel->close();
    t.slots[slot].replace(channel);
    while (const std::optional<Token> token = channel->tryReceive()) count(slot, *token);
  }

  // ---- Selects. ----

  /// Calls a select with the deadline and the counter of called functions.
  template <class Select>
  void selecting(Select select) {
    const Patience patience(*this);
    int calls = 0;
    const bool any = select(patience.deadline, calls);
    EXPECT_EQ(calls, any ? 1 : 0);
    if (!any) expectReason(Deadline::never());
  }

  auto counted(size_t slot, int& calls) {
    return [this, slot, &calls](const std::optional<Token>& token) {
      ++calls;
      if (token) count(slot, *token);
    };
  }
  auto timedOut(Deadline deadline, int& calls) {
    return [deadline, &calls] {
      ++calls;
      EXPECT_GE(steadyClock().nowNs(), deadline.ns());
    };
  }

  void selectReceive() {
    const size_t slots[] = {anySlot(), anySlot()};
    const auto a = t.slots[slots[0]].now(), b = t.slots[slots[1]].now();
    selecting([&](Deadline deadline, int& calls) {
      return select(onReceive(*a, counted(slots[0], calls)), onReceive(*b, counted(slots[1], calls)),
                    onTimeout(deadline, timedOut(deadline, calls)));
    });
  }

  void selectSend() {
    const size_t slots[] = {anySlot(), anySlot()};
    const auto a = t.slots[slots[0]].now(), b = t.slots[slots[1]].now();
    Token tokens[] = {newToken(), newToken()};
    const uint64_t bits[] = {tokens[0].bits(), tokens[1].bits()};
    bool was_sent[2] = {};
    selecting([&](Deadline deadline, int& calls) {
      const auto sends = [&](size_t i) {
        return [&, i](bool now_sent) {
          ++calls;
          was_sent[i] = now_sent;
        };
      };
      return select(onSend(*a, std::move(tokens[0]), sends(0)), onSend(*b, std::move(tokens[1]), sends(1)),
                    onTimeout(deadline, timedOut(deadline, calls)));
    });
    for (size_t i = 0; i < 2; ++i) count(slots[i], tokens[i], bits[i], was_sent[i]);  // NOLINT(bugprone-use-after-move)
  }

  /// Either may be of the same channel, and then the select does not meet itself.
  void selectBoth() {
    const size_t slots[] = {anySlot(), anySlot()};
    const auto a = t.slots[slots[0]].now(), b = t.slots[slots[1]].now();
    Token token = newToken();
    const uint64_t bits = token.bits();
    bool was_sent = false;
    selecting([&](Deadline deadline, int& calls) {
      const auto sends = [&](bool now_sent) {
        ++calls;
        was_sent = now_sent;
      };
      return select(onReceive(*a, counted(slots[0], calls)), onSend(*b, std::move(token), sends),
                    onTimeout(deadline, timedOut(deadline, calls)));
    });
    count(slots[1], token, bits, was_sent);  // NOLINT(bugprone-use-after-move)
  }

  /// One of these comes in any case: a fiber ends, a future is ready, or an event is set.
  void selectEnd() {
    const CancelShield shield;
    const size_t slot = anySlot();
    const auto channel = t.slots[slot].now();
    const auto event = std::make_shared<Event>();
    const auto fiber = std::make_shared<Fiber>([event] { event->set(); });
    Future<int> future;
    if (one(2)) {
      anyManager().schedule(fiber);
    } else {
      future = go(
          [fiber, event, scheduler = &anyManager()] {
            scheduler->schedule(fiber);
            return 7;
          },
          &anyManager());
    }
    int calls = 0;
    const auto ready = [&] { calls += future.get() == 7 ? 1 : 0; };
    const auto ended = [&] {
      ++calls;
      fiber->join();
      EXPECT_TRUE(event->isSet());
    };
    const auto set = [&] { calls += event->isSet() ? 1 : 0; };
    if (!future.valid()) {
      EXPECT_TRUE(select(onReceive(*channel, counted(slot, calls)), onEnd(fiber, ended), onSet(*event, set)));
    } else {
      EXPECT_TRUE(select(onSet(*event, set), onReady(future, ready), onReceive(*channel, counted(slot, calls))));
    }
    EXPECT_EQ(calls, 1);
    fiber->join();
  }

  // ---- Events and counters. ----

  /// Everybody who resets the event sets it again, so a wait without a deadline ends.
  void awaitEvent() {
    if (one(2)) {
      t.event.reset();
      if (one(2)) Fiber::YieldToReady();
      t.event.set();
      return;
    }
    const Deadline deadline = soonOrNever();
    if (!t.event.wait(deadline)) expectReason(deadline);
  }

  /// Everybody who counts ends what was counted, so a wait without a deadline ends.
  void awaitGroup() {
    const Deadline deadline = soonOrNever();
    if (one(2) && !t.wait_group.wait(deadline)) return expectReason(deadline);
    const uint64_t count = 1 + below(3);
    t.wait_group.add(count);
    if (one(2)) Fiber::YieldToReady();
    if (one(2)) {
      if (!t.wait_group.doneAndWait(count, deadline)) expectReason(deadline);
    } else {
      t.wait_group.done(count);
    }
  }

  /// A latch, or a group, that goes as soon as its owner's wait has returned.
  void arrive() {
    const CancelShield shield;
    const uint64_t others = 1 + below(3);
    uint64_t arrived[3] = {};
    const auto latch = std::make_unique<Latch>(others + 1);
    const auto group = std::make_unique<WaitGroup>();
    group->add(others);
    for (uint64_t i = 0; i < others; ++i) {
      beside([latch = latch.get(), group = group.get(), mine = &arrived[i], waits = one(2)] {
        *mine = 1;
        if (waits) {
          EXPECT_TRUE(latch->arrive_and_wait());
        } else {
          latch->count_down();
        }
        group->done();
      });
    }
    if (one(2)) {
      EXPECT_TRUE(latch->arrive_and_wait());
    } else {
      latch->count_down();
      EXPECT_TRUE(latch->wait());
    }
    EXPECT_EQ(arrived[0] + arrived[1] + arrived[2], others);
    EXPECT_TRUE(group->wait());
  }

  /// Some of those who meet at this latch leave it early.
  void arriveLate() {
    const uint64_t others = 1 + below(3);
    const auto latch = std::make_shared<Latch>(others + 1);
    for (uint64_t i = 0; i < others; ++i) {
      beside([latch, deadline = soonOrNever()] {
        if (!latch->arrive_and_wait(1, deadline)) expectReason(deadline);
      });
    }
    const Deadline deadline = soonOrNever();
    if (!latch->arrive_and_wait(1, deadline)) expectReason(deadline);
  }

  // ---- Functions. ----

  void callOnce() {
    struct Calls {
      Once once;
      int tries = 0, failures = 0, successes = 0;

      void call() {
        try {
          once.call([this] {
            Fiber::YieldToReady();
            if (tries++ < failures) throw std::runtime_error("not yet");
            ++successes;
          });
          EXPECT_EQ(successes, 1);
        } catch (const std::runtime_error&) {
        }
      }
    };
    const auto calls = std::make_shared<Calls>();
    calls->failures = static_cast<int>(below(3));
    for (uint64_t i = below(4); i > 0; --i) beside([calls] { calls->call(); });
    calls->call();
  }

  Future<uint64_t> makeFuture(uint64_t kind) {
    switch (kind) {
      case 0: return go([number = m_number] { return number; }, &anyManager());
      case 1: return go([]() -> uint64_t { throw std::runtime_error("no number"); }, &anyManager());
      default: break;
    }
    const auto promise = std::make_shared<Promise<uint64_t>>();
    Future<uint64_t> future = promise->getFuture();
    beside([promise, kind, number = m_number] {
      Fiber::YieldToReady();
      if (kind == 2) promise->setValue(number);
    });
    return future;
  }

  /// Returns false if the fiber was cancelled, or a deadline passed, before the future was ready.
  bool getIsOver(Future<uint64_t>& future, uint64_t kind) {
    try {
      EXPECT_EQ(future.get(), m_number);
      EXPECT_TRUE(kind == 0 || kind == 2);
    } catch (const std::system_error& e) {
      EXPECT_TRUE(e.code().value() == ECANCELED || e.code().value() == ETIMEDOUT);
      expectReason(Deadline::never());
      return false;
    } catch (const std::runtime_error&) {
      EXPECT_EQ(kind, 1u);
    } catch (const std::future_error&) {
      EXPECT_EQ(kind, 3u);
    }
    return true;
  }

  /// A future that was not ready in time is kept.
  void awaitFuture() {
    const uint64_t kind = below(4);
    Future<uint64_t> future = makeFuture(kind);
    const Deadline deadline = soonOrNever();
    if (one(2) && !future.wait(deadline)) expectReason(deadline);
    if (getIsOver(future, kind)) return;
    const CancelShield shield;
    EXPECT_TRUE(getIsOver(future, kind));
  }

  void runTasks() {
    std::atomic<uint64_t> begun{0}, running{0};
    uint64_t accepted = 0;
    Event event;
    try {
      TaskGroup group(below(3), &anyManager());
      const uint64_t tasks = below(5), thrower = below(12);
      for (uint64_t i = 0; i < tasks; ++i) {
        accepted += group.spawn([&, i, waits = one(2), yields = one(2), deadline = soon()] {
          ++running;
          ++begun;
          if (waits && !event.wait(deadline)) expectReason(deadline);
          if (yields) Fiber::YieldToReady();
          --running;
          if (i == thrower) throw std::runtime_error("of a task");
        })
                        ? 1
                        : 0;
      }
      if (one(4)) group.cancel();
      const Deadline deadline = soonOrNever();
      if (one(2) && !group.join(deadline)) expectReason(deadline);
      event.set();
      group.join();
    } catch (const std::system_error& e) {
      EXPECT_TRUE(e.code().value() == ECANCELED || e.code().value() == ETIMEDOUT);
      expectReason(Deadline::never());
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(running, 0u);
    EXPECT_EQ(begun, accepted);
  }

  void cancel() {
    if (const Fiber::ptr fiber = t.players[below(kFibers)]->fiber()) {
      fiber->cancel();
      ++cancels;
    }
  }

  Table& t;
  const uint64_t m_number;
  std::mt19937_64 m_random;
  uint64_t m_most = ~uint64_t{0};
  uint64_t m_tokens = 0;
  uint64_t m_last[kSlots][kPlayers] = {};

  ThreadMutex m_lock;
  Fiber::ptr m_fiber;
};

/// There is no way on from a hang.
void expectEnd(Table& table, bool ends) {
  if (ends) return;
  std::cerr << "after " << table.gone.count() << " players have gone, " << table.beside << " fibers are left besides\n";
  table.other.dump(table.iom.dump(std::cerr));
  std::abort();
}

void playRound(size_t workers, uint64_t seed) {
  Table table(workers);
  table.event.set();
  for (uint64_t i = 0; i < kPlayers; ++i) table.players.push_back(std::make_unique<Player>(table, i, seed));
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kFibers; ++i) table.players[i]->start();
  for (uint64_t i = kFibers; i < kPlayers; ++i) threads.emplace_back([&, i] { table.players[i]->playOnThread(); });
  expectEnd(table, table.spent.wait());
  table.end();
  expectEnd(table, table.gone.wait(kPlayers));
  expectEnd(table, test::eventually([&] { return table.beside == 0; }));
  for (std::thread& thread : threads) thread.join();
  table.iom.stop();
  table.other.stop();

  uint64_t mutex_uses = 0, writes = 0, taken = 0, cancels = 0;
  Tally put, got_of_queue;
  std::array<Tally, kSlots> sent, received;
  for (const auto& player : table.players) {
    mutex_uses += player->mutex_uses;
    writes += player->writes;
    taken += player->taken;
    cancels += player->cancels;
    put += player->put;
    got_of_queue += player->got_of_queue;
    for (size_t i = 0; i < kSlots; ++i) {
      sent[i] += player->sent[i];
      received[i] += player->received[i];
    }
  }
  EXPECT_EQ(table.mutex_uses, mutex_uses);
  EXPECT_EQ(table.writes, writes);
  EXPECT_EQ(table.writes_again, writes);
  EXPECT_EQ(table.permits.getConcurrency(), kPermits);
  EXPECT_EQ(taken + table.items.getConcurrency(), table.made);
  EXPECT_TRUE(table.wait_group.isDone());
  for (const Token& token : table.queue) got_of_queue.add(token.bits());
  EXPECT_EQ(put, got_of_queue);
  for (size_t i = 0; i < kSlots; ++i) {
    const auto last = table.slots[i].now();
    while (const std::optional<Token> left = last->tryReceive()) received[i].add(left->bits());
    EXPECT_EQ(sent[i], received[i]) << "of the channel with capacity " << kCapacities[i];
    EXPECT_GT(sent[i].count, 0u);
  }
  EXPECT_TRUE(table.mutex.try_lock());
  table.mutex.unlock();
  EXPECT_TRUE(table.rw_mutex.try_lock());
  table.rw_mutex.unlock();
  EXPECT_GT(cancels, 0u);
}

class MixedRaceTest : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, MixedRaceTest, testing::Values(1, 2, 4));

// No wake-up and no value is lost or doubled.
TEST_P(MixedRaceTest, EveryPrimitiveKeepsItsLaw) {
  const test::LeakCheck leaks;
  const uint64_t seed = test::seed();
  for (uint64_t round = 0; round < test::scaled(kRounds) && !HasFailure(); ++round) playRound(workers(), seed + round * kPlayers);
}

}  // namespace
}  // namespace sylar
