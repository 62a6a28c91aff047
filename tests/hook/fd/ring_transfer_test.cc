// Receives and sends that the worker's ring makes (IOEngine::kUring), and when it makes them (kAuto). What every call promises is
// tested with the other tests of hooks, which run with that engine as well.
#include <linux/net_tstamp.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <stdexcept>

#include "sylar/base/sanitizers.h"
#include "sylar/cancel.h"
#include "sylar/hook_stats.h"
#include "sylar/io/epoll_engine.h"
#include "sylar/io/fd_table.h"
#include "sylar/io/ring.h"
#include "sylar/sched/park.h"
#include "sylar/sync/wait_group.h"
#include "sylar/testing/virtual_time.h"
#include "tests/hook/core/refuse_call.h"
#include "tests/hook/fd/counted_buffer.h"
#include "tests/hook/support.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

bool ringTransfers() { return EpollEngine::current()->transferRing(false) != nullptr; }

/// RLIMIT_NOFILE, which it restores at its end.
class DescriptorLimit {
 public:
  DescriptorLimit() { EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &m_was), 0); }
  ~DescriptorLimit() { restore(); }
  void set(rlim_t most) const {
    const rlimit limit{most, m_was.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  void restore() const { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &m_was), 0); }

 private:
  rlimit m_was{};
};

class RingTransfers : public testing::Test {
 protected:
  void SetUp() override {
    bool has = false;
    inFiber([&] { has = ringTransfers(); });
    if (!has) GTEST_SKIP() << "no io_uring here";
  }
  LeakCheck& leaks() { return m_leaks; }

 private:
  const EngineMode m_uring{IOEngine::kUring};
  LeakCheck m_leaks;
};

Fiber::ptr spawn(std::function<void()> body) {
  auto fiber = std::make_shared<Fiber>(std::move(body));
  IOManager::GetThis()->schedule(fiber);
  return fiber;
}

std::string takeNow(int fd) {
  char bytes[64];
  const ssize_t n = libcCalls().recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
  return n < 0 ? std::string(::strerror(errno)) : std::string(bytes, static_cast<size_t>(n));
}

TEST_F(RingTransfers, AReceiveThatWaitsIsTheRingsAndNotTheEpolls) {
  inFiber([] {
    const Pair pair = tcpPair();
    for (int round = 0; round < 3; ++round) {
      char byte = 0;
      whenParked([&] {
        EXPECT_FALSE(FdTable::at(pair.a)->registered());
        EXPECT_EQ(::write(pair.b, "x", 1), 1);
      });
      EXPECT_EQ(::read(pair.a, &byte, 1), 1);
      EXPECT_EQ(byte, 'x');
    }
  });
}

// It goes out with those of the other fibers of its turn.
TEST_F(RingTransfers, ASendIsHandedOverWhenTheTurnEnds) {
  inFiber([] {
    const auto polls = [] { return IOManager::GetThis()->getWorkerStats().polls; };
    const Pair pair = tcpPair();
    setBuffer(pair.b, SO_SNDBUF, 1 << 20);
    setBuffer(pair.a, SO_RCVBUF, 1 << 20);
    const uint64_t before = polls();
    EXPECT_EQ(::send(pair.b, "hello", 5, 0), 5);
    EXPECT_GT(polls(), before);
    EXPECT_EQ(takeNow(pair.a), "hello");
    const std::vector<char> much(64 * 1024);
    const uint64_t then = polls();
    EXPECT_EQ(::send(pair.b, much.data(), much.size(), 0), static_cast<ssize_t>(much.size()));
    EXPECT_EQ(polls(), then) << "one that is worth a call of its own is made at once";
  });
}

// A send by the ring takes a turn, so one who sends to many would take as many turns.
TEST_F(RingTransfers, ASendBehindASendIsMadeAtOnce) {
  inFiber([] {
    const auto waits = [] {
      uint64_t sum = 0;
      for (const HookStats& one : hookStats()) sum += one.parks;
      return sum;
    };
    std::deque<Pair> pairs;
    for (int i = 0; i < 20; ++i) pairs.emplace_back(makeTcp(hookedCalls()));
    for (int round = 0; round < 2; ++round) {
      const uint64_t before = waits();
      for (const Pair& pair : pairs) EXPECT_EQ(::send(pair.b, "x", 1, 0), 1);
      EXPECT_EQ(waits() - before, 1U) << "the first one is the ring's";
      char byte = 0;
      const auto peer = spawn([&, sender = Fiber::GetThis()] {
        untilParked(*sender);
        EXPECT_EQ(libcCalls().write(pairs[1].a, "y", 1), 1);
      });
      EXPECT_EQ(::recv(pairs[1].b, &byte, 1, 0), 1);
      peer->join();
    }
  });
}

// A socket that is alone waits in the epoll, which costs less, and many that are ready together in the ring.
TEST_F(RingTransfers, UnderAutoSocketsAreTheRingsWhileManyAreReady) {
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
  GTEST_SKIP() << "sanitizers do not see what the ring does with memory";
#endif
  static constexpr ptrdiff_t kMany = 12;
  const EngineMode automatic(IOEngine::kAuto);
  inFiber([] {
    std::deque<Pair> pairs;
    std::vector<Fiber::ptr> readers;
    size_t received = 0;
    for (size_t i = 0; i < size_t{kMany}; ++i) {
      pairs.emplace_back(makeTcp(hookedCalls()));
      readers.push_back(spawn([&received, fd = pairs.back().a] {
        for (char byte; ::read(fd, &byte, 1) == 1;) ++received;
      }));
    }
    const auto countWatched = [&] {
      for (const Fiber::ptr& reader : readers) untilParked(*reader);
      return std::count_if(pairs.begin(), pairs.end(), [](const Pair& pair) { return FdTable::at(pair.a)->registered(); });
    };
    const auto sendTo = [&](size_t count) {
      for (size_t round = 0; round < 40; ++round) {
        const size_t expected = received + count;
        for (size_t i = 0; i < count; ++i) EXPECT_EQ(libcCalls().write(pairs[i].b, "x", 1), 1);
        while (received < expected) Fiber::YieldToReady();
      }
    };
    EXPECT_EQ(countWatched(), kMany);
    sendTo(1);
    EXPECT_EQ(countWatched(), kMany);
    sendTo(kMany);
    EXPECT_EQ(countWatched(), 0);
    sendTo(1);
    EXPECT_EQ(countWatched(), 1) << "the others wait as they did";
    sendTo(kMany);
    EXPECT_EQ(countWatched(), 0);
    for (Pair& pair : pairs) pair.closeB();
    for (const Fiber::ptr& reader : readers) reader->join();
  });
}

// Each attempt to make a ring costs more than many calls.
TEST_F(RingTransfers, AWorkerThatGotNoRingTriesAgainSomeTurnsLater) {
#ifdef SYLAR_ASAN
  GTEST_SKIP() << "the sanitizers' own checks need descriptors";
#endif
  const DescriptorLimit limit;
  inFiber([&] {
    limit.set(3);
    EXPECT_FALSE(ringTransfers());
    limit.restore();
    EXPECT_FALSE(ringTransfers());
    for (int i = 0; i < 100'000 && !ringTransfers(); ++i) untilPolled();
    EXPECT_TRUE(ringTransfers());
  });
}

// As many receives and sends as it takes at once, and more, are refused in one turn.
TEST_F(RingTransfers, WithAKernelThatRefusesThemFibersWaitByTheEpoll) {
  constexpr int kMany = 300;
  std::thread([] {  // the filter stays with the thread
    IOManager iom(1, true, "refused");
    iom.schedule([] {
      std::deque<Pair> pairs;
      for (int i = 0; i < kMany; ++i) pairs.emplace_back(makeTcp(hookedCalls()));
      EXPECT_EQ(::send(pairs[0].b, "x", 1, 0), 1);  // makes the ring
      EXPECT_EQ(takeNow(pairs[0].a), "x");
      refuseCall(SYS_io_uring_enter, EAGAIN);
      std::vector<Fiber::ptr> fibers;
      for (const Pair& pair : pairs) {
        fibers.push_back(spawn([&pair] {
          char byte = 0;
          EXPECT_EQ(::recv(pair.a, &byte, 1, 0), 1);
          EXPECT_EQ(byte, 'y');
        }));
        fibers.push_back(spawn([&pair] {
          Fiber::YieldToReady();
          EXPECT_EQ(::send(pair.b, "y", 1, 0), 1);
        }));
      }
      for (const Fiber::ptr& fiber : fibers) fiber->join();
      char byte = 0;
      const auto last = spawn([&] { EXPECT_EQ(::read(pairs[0].a, &byte, 1), 1); });
      untilParked(*last);
      EXPECT_TRUE(FdTable::at(pairs[0].a)->registered());
      EXPECT_EQ(::write(pairs[0].b, "z", 1), 1);
      last->join();
      EXPECT_EQ(byte, 'z');
    });
    iom.stop();
  })
      .join();
}

// ---- The calls of a server that may be made late. ------------------------------------------------------------------------------

TEST_F(RingTransfers, ALateReceiveHoldsNoBufferWhileTheKernelReceives) {
  inFiber([] {
    const Pair pair = tcpPair();
    const std::vector<char> bytes = streamBytes(PooledBuffer::kSize + 100);
    std::string received;
    whenParked([&] {
      EXPECT_FALSE(FdTable::at(pair.a)->registered());
      EXPECT_EQ(::write(pair.b, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    });
    for (size_t part : {size_t{PooledBuffer::kSize}, size_t{100}}) {
      CountedBuffer buffer;
      EXPECT_EQ(receiveIntoPool(pair.a, buffer, 0), static_cast<ssize_t>(part));
      EXPECT_TRUE(buffer.held);
      received += buffer.bytes(static_cast<ssize_t>(part));
    }
    EXPECT_TRUE(std::equal(received.begin(), received.end(), bytes.begin(), bytes.end()));
  });
}

TEST_F(RingTransfers, ALateReceiveWithoutMemoryTellsSo) {
  inFiber([] {
    const Pair pair = tcpPair();
    CountedBuffer buffer;
    whenParked([&] {
      buffer.refuses = true;
      EXPECT_EQ(::write(pair.b, "x", 1), 1);
    });
    EXPECT_EQ(receiveIntoPool(pair.a, buffer, 0), -1);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_FALSE(buffer.held);
  });
}

TEST_F(RingTransfers, ALateReceiveThatEndsWithoutBytesHoldsNoBuffer) {
  inFiber([] {
    const Pair pair = tcpPair();
    CountedBuffer buffer;
    const auto ended = [&](int error, auto end) {
      const auto receiver = spawn([&] {
        const ssize_t n = receiveIntoPool(pair.a, buffer, 0);
        EXPECT_EQ(n < 0 ? errno : 0, error);
        EXPECT_LE(n, 0);
      });
      untilParked(*receiver);
      untilPolled();
      end(*receiver);
      receiver->join();
      EXPECT_FALSE(buffer.held);
    };
    ended(ECANCELED, [](Fiber& receiver) { receiver.cancel(); });
    ended(0, [&](Fiber&) { EXPECT_EQ(::shutdown(pair.b, SHUT_WR), 0); });
  });
}

/// Receives a byte into memory that the ring lends, and does not give it back. Returns 1 or -errno.
long keepBlock(const Pair& pair) {
  EXPECT_EQ(libcCalls().write(pair.b, "k", 1), 1);
  io_uring_sqe entry{};
  io_uring_prep_recv(&entry, pair.a, nullptr, 1, 0);
  LentMemory::lendTo(entry);
  return EpollEngine::current()->ring()->run(entry);
}

TEST_F(RingTransfers, ALateReceiveGivesTheRingItsMemoryBack) {
  inFiber([] {
    const Pair pair = tcpPair(), other = tcpPair();
    for (int round = 0; round < 1000; ++round) {
      CountedBuffer buffer;
      const char sent = static_cast<char>(round);
      whenParked([&] { EXPECT_EQ(libcCalls().write(pair.b, &sent, 1), 1); });
      ASSERT_EQ(receiveIntoPool(pair.a, buffer, 0), 1);
      ASSERT_EQ(buffer.bytes(1)[0], sent);
    }
    EXPECT_EQ(keepBlock(other), 1);
  });
}

TEST_F(RingTransfers, ALateReceiveIsACallIfTheRingHasNoMemoryLeft) {
  inFiber([] {
    const Pair pair = tcpPair(), other = tcpPair();
    ASSERT_NE(EpollEngine::current()->ring()->memory(), nullptr);
    long result = 1;
    for (int kept = 0; result == 1 && kept < 1000; ++kept) result = keepBlock(other);
    ASSERT_EQ(result, -ENOBUFS);
    for (int round = 0; round < 3; ++round) {
      CountedBuffer buffer;
      whenParked([&] { EXPECT_EQ(libcCalls().write(pair.b, "ab", 2), 2); });
      EXPECT_EQ(receiveIntoPool(pair.a, buffer, 0), 2);
      EXPECT_TRUE(buffer.held);
      EXPECT_EQ(buffer.bytes(2), "ab");
    }
  });
}

TEST_F(RingTransfers, ALateSendGoesOutWhenTheTurnEnds) {
  inFiber([] {
    const Pair pair = tcpPair();
    bool others_ran = false;
    IOManager::GetThis()->schedule([&] {
      others_ran = true;
      EXPECT_EQ(takeNow(pair.a), ::strerror(EAGAIN));
    });
    EXPECT_EQ(sendBatched(pair.b, "hello", 5), 5);
    EXPECT_TRUE(others_ran);
    EXPECT_EQ(takeNow(pair.a), "hello");
  });
}

TEST_F(RingTransfers, ALateSendDoesNotWaitForRoom) {
  inFiber([] {
    const Pair pair = tcpPair();
    setBuffer(pair.b, SO_SNDBUF, 4096);
    setBuffer(pair.a, SO_RCVBUF, 4096);
    const std::vector<char> bytes = streamBytes(16 * 1024);
    size_t sent = 0;
    for (ssize_t n; (n = sendBatched(pair.b, bytes.data(), bytes.size())) > 0;) sent += static_cast<size_t>(n);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_GT(sent, 0U);
    EXPECT_EQ(::shutdown(pair.b, SHUT_WR), 0);
    size_t received = 0;
    std::vector<char> room(64 * 1024);
    for (ssize_t n; (n = ::recv(pair.a, room.data(), room.size(), 0)) > 0;) received += static_cast<size_t>(n);
    EXPECT_EQ(received, sent);
  });
}

// A server that is told to end still answers.
TEST_F(RingTransfers, NeitherACancelNorADeadlineEndsALateSend) {
  inFiber([] {
    const Pair pair = tcpPair();
    const auto cancelled = spawn([&] { EXPECT_EQ(sendBatched(pair.b, "bye", 3), 3); });
    cancelled->cancel();
    cancelled->join();
    EXPECT_EQ(takeNow(pair.a), "bye");
    const this_fiber::DeadlineScope over(Deadline::after(0ms));
    EXPECT_EQ(sendBatched(pair.b, "late", 4), 4);
    EXPECT_EQ(takeNow(pair.a), "late");
  });
}

TEST_F(RingTransfers, ALateSendKnowsAClosedNumberAndABrokenConnection) {
  inFiber([] {
    Pair pair = tcpPair(), next = tcpPair();
    const auto sender = spawn([&] {
      EXPECT_EQ(sendBatched(pair.b, "mine", 4), -1);
      EXPECT_EQ(errno, EBADF);
    });
    const auto closer =
        spawn([&] { EXPECT_EQ(::dup2(next.a, pair.b), pair.b); });  // in the turn in which the other has begun to wait
    for (const auto& one : {sender, closer}) one->join();
    EXPECT_EQ(takeNow(next.b), ::strerror(EAGAIN)) << "nobody has sent there";
    EXPECT_EQ(::shutdown(next.b, SHUT_WR), 0);
    EXPECT_EQ(sendBatched(next.b, "x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
    EXPECT_EQ(sendBatched(-1, "x", 1), -1);
    EXPECT_EQ(errno, EBADF);
  });
}

// The kernel gets the number when the turn is over. Until then it may be closed, and belong to somebody else.
TEST_F(RingTransfers, ANumberThatIsClosedBeforeItIsHandedOverIsNotItsNextOwners) {
  inFiber([] {
    const Pair pair = tcpPair(), next = tcpPair();
    ASSERT_EQ(libcCalls().write(next.b, "others", 6), 6);
    ssize_t received = 0, sent = 0;
    int receive_error = 0, send_error = 0;
    const auto receiver = spawn([&] {
      char bytes[16];
      received = ::recv(pair.a, bytes, sizeof bytes, 0);
      receive_error = errno;
    });
    const auto sender = spawn([&] {
      sent = ::send(pair.b, "mine", 4, 0);
      send_error = errno;
    });
    const auto closer = spawn([&] {  // in the turn in which the others have begun to wait
      EXPECT_EQ(::dup2(next.a, pair.a), pair.a);
      EXPECT_EQ(::dup2(next.a, pair.b), pair.b);
    });
    for (const auto& one : {receiver, sender, closer}) one->join();
    EXPECT_EQ(received, -1);
    EXPECT_EQ(receive_error, EBADF);
    EXPECT_EQ(sent, -1);
    EXPECT_EQ(send_error, EBADF);
    EXPECT_EQ(takeNow(next.a), "others");
    EXPECT_EQ(takeNow(next.b), ::strerror(EAGAIN)) << "nobody has sent there";
  });
}

// The one who closes the number may not have come to its waiters yet.
TEST_F(RingTransfers, ATransferThatIsNotHandedOverWakesItsFiber) {
  struct Refused final : Ring::Transfer {
    bool pin() override { return false; }
    void unpin() override { ADD_FAILURE(); }
  };
  inFiber([] {
    io_uring_sqe call{};
    io_uring_prep_nop(&call);
    Refused transfer;
    transfer.call = &call;
    Wait wait;
    transfer.waker = wait.waker();
    EpollEngine::current()->transferRing(false)->begin(transfer);
    EXPECT_EQ(wait.park(), WakeReason::kReady);
    EXPECT_TRUE(transfer.done);
    EXPECT_EQ(transfer.result, -ECANCELED);
  });
}

TEST_F(RingTransfers, ACloseEndsAReceiveThatTheKernelHas) {
  inFiber([] {
    Pair pair = tcpPair();
    ssize_t received = 0;
    int error = 0;
    const auto receiver = spawn([&] {
      char byte;
      received = ::read(pair.a, &byte, 1);
      error = errno;
    });
    untilParked(*receiver);
    untilPolled();
    pair.closeA();
    receiver->join();
    EXPECT_EQ(received, -1);
    EXPECT_EQ(error, EBADF);
    char byte;
    EXPECT_EQ(::read(pair.b, &byte, 1), 0) << "the kernel has let go of the file";
  });
}

/// Ends a wait in a receive at the very time at which a byte comes.
template <class End>
void expectNoByteLost(End end) {
  inFiber([&] {
    const Pair pair = tcpPair();
    for (int round = 0; round < 50; ++round) {
      ssize_t received = 0;
      char byte = 0;
      const auto receiver = spawn([&] { received = ::recv(pair.a, &byte, 1, 0); });
      untilParked(*receiver);
      if (round % 2 == 0) untilPolled();
      if (round % 3 == 0) end(pair.a, *receiver);
      EXPECT_EQ(libcCalls().write(pair.b, "x", 1), 1);
      if (round % 3 != 0) end(pair.a, *receiver);
      receiver->join();
      if (received == 1) {
        EXPECT_EQ(byte, 'x');
        EXPECT_EQ(takeNow(pair.a), ::strerror(EAGAIN));
      } else {
        EXPECT_EQ(received, -1);
        EXPECT_EQ(takeNow(pair.a), "x");
      }
    }
  });
}

TEST_F(RingTransfers, ACancelLosesNoByte) {
  expectNoByteLost([](int, Fiber& receiver) { receiver.cancel(); });
}

TEST_F(RingTransfers, AWakeUpForNothingLosesNoByte) {
  expectNoByteLost([](int fd, Fiber&) { FdTable::at(fd)->wakeAll(Direction::kRead); });
}

TEST_F(RingTransfers, ADeadlineEndsTheReceiveOfTheKernelToo) {
  inFiber([] {
    const Pair pair = tcpPair();
    setTimeout(hookedCalls(), pair.a, SO_RCVTIMEO, 1000);
    char byte = 0;
    EXPECT_EQ(::recv(pair.a, &byte, 1, 0), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
    EXPECT_EQ(::recv(pair.a, &byte, 1, 0), 1);
    EXPECT_EQ(byte, 'x');
  });
}

// The result counts the bytes that have gone out, as in the kernel.
TEST_F(RingTransfers, ASendThatIsEndedTellsWhatWentOut) {
  inFiber([] {
    const Pair pair = tcpPair();
    setBuffer(pair.b, SO_SNDBUF, 4096);
    setBuffer(pair.a, SO_RCVBUF, 4096);
    setTimeout(hookedCalls(), pair.b, SO_SNDTIMEO, 1000);
    const std::vector<char> bytes = streamBytes(16 * 1024);
    size_t sent = 0;
    ssize_t n;
    while ((n = ::send(pair.b, bytes.data(), 8192, 0)) == 8192) sent += 8192;
    if (n > 0) {
      sent += static_cast<size_t>(n);
      EXPECT_EQ(::send(pair.b, bytes.data(), 1, 0), -1);
    }
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(::shutdown(pair.b, SHUT_WR), 0);
    size_t received = 0;
    std::vector<char> room(64 * 1024);
    while ((n = ::recv(pair.a, room.data(), room.size(), 0)) > 0) received += static_cast<size_t>(n);
    EXPECT_EQ(received, sent);
  });
}

TEST_F(RingTransfers, ASendWaitsForRoomAndSendsAll) {
  inFiber([] {
    const Pair pair = tcpPair();
    setBuffer(pair.b, SO_SNDBUF, 4096);
    const std::vector<char> bytes = streamBytes(1 << 20);
    const auto sender = spawn([&] {
      for (size_t done = 0; done < bytes.size(); done += 8192) EXPECT_EQ(::write(pair.b, bytes.data() + done, 8192), 8192);
      EXPECT_EQ(::shutdown(pair.b, SHUT_WR), 0);
    });
    std::vector<char> received;
    char room[3000];
    for (ssize_t n; (n = ::read(pair.a, room, sizeof room)) > 0;) received.insert(received.end(), room, room + n);
    sender->join();
    EXPECT_TRUE(received == bytes);
  });
}

TEST_F(RingTransfers, AReceiveOfAnotherFiberHasItsOwnBytes) {
  inFiber([] {
    const Pair pair = tcpPair();
    std::string got;
    std::vector<Fiber::ptr> receivers;
    for (int i = 0; i < 8; ++i) {
      receivers.push_back(spawn([&] {
        char byte = 0;
        EXPECT_EQ(::recv(pair.a, &byte, 1, 0), 1);
        got += byte;
      }));
    }
    for (const auto& one : receivers) untilParked(*one);
    EXPECT_EQ(::send(pair.b, "abcdefgh", 8, 0), 8);
    for (const auto& one : receivers) one->join();
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, "abcdefgh");
  });
}

TEST_F(RingTransfers, MoreMayWaitThanItTakesAtOnce) {
  inFiber([] {
    constexpr int kMany = 300;  // more than it takes at once, with fewer descriptors than most processes may have
    std::vector<std::unique_ptr<Pair>> pairs;
    for (int i = 0; i < kMany; ++i) pairs.push_back(std::make_unique<Pair>(makeTcp(hookedCalls())));
    WaitGroup all;
    for (const auto& pair : pairs) {
      all.add();
      IOManager::GetThis()->schedule([&all, fd = pair->a] {
        char bytes[4];
        for (int round = 0; round < 3; ++round) {
          EXPECT_EQ(::read(fd, bytes, sizeof bytes), 4);
          EXPECT_EQ(::write(fd, bytes, sizeof bytes), 4);
        }
        all.done();
      });
    }
    for (int round = 0; round < 3; ++round) {
      for (const auto& pair : pairs) ASSERT_EQ(libcCalls().write(pair->b, "ping", 4), 4);
      for (const auto& pair : pairs) {
        char bytes[4];
        EXPECT_EQ(::recv(pair->b, bytes, sizeof bytes, MSG_WAITALL), 4);
      }
    }
    all.wait();
  });
}

TEST_F(RingTransfers, MailTimersAndOtherDescriptorsWakeTheWorkerToo) {
  const Pair pair = pipePair();
  std::atomic<bool> reads{false}, waits{false};
  WaitGroup mail;
  mail.add();
  std::thread others([&] {
    spinUntil(reads, true);
    EXPECT_EQ(libcCalls().write(pair.b, "x", 1), 1);
    spinUntil(waits, true);
    mail.done();
  });
  inFiber([&] {
    char byte = 0;
    reads = true;
    EXPECT_EQ(::read(pair.a, &byte, 1), 1);
    waits = true;
    mail.wait();
    WaitGroup timer;
    timer.add();
    IOManager::GetThis()->addTimer(1, [&] { timer.done(); });
    timer.wait();
    ::usleep(1000);
  });
  others.join();
}

/// Runs `body` in a fiber of `iom`, and returns when the kernel has its receive.
void untilTheKernelReceives(IOManager& iom, std::function<void()> body) {
  std::atomic<bool> receives{false};
  iom.schedule([&] {
    const auto receiver = spawn(std::move(body));
    untilParked(*receiver);
    untilPolled();
    receives = true;
  });
  spinUntil(receives, true);
}

TEST_F(RingTransfers, AStopWithADeadlineTakesTheReceivesBack) {
  const Pair pair = tcpPair();
  IOManager iom(1, false, "abandons");
  char byte = 0;
  untilTheKernelReceives(iom, [&] {
    const this_fiber::CancelShield shield;
    while (::recv(pair.a, &byte, 1, 0) != 1) continue;
  });
  EXPECT_EQ(iom.stop(Deadline::after(1ms)).abandoned.size(), 1U);
  leaks().excuseLateWorkersOf(iom);
  if (lateWorkersOf(iom) > 0) GTEST_SKIP() << "the machine is too busy";
  ASSERT_EQ(::write(pair.b, "x", 1), 1);
  EXPECT_EQ(::recv(pair.a, &byte, 1, 0), 1) << "no kernel receives for the fiber that was given up";
}

// It has a number of waits left, and the end of a transfer takes none of them.
TEST_F(RingTransfers, TheLastPhaseOfAStopUnwindsAFiberThatReceives) {
  const Pair pair = tcpPair();
  IOManager iom(1, false, "unwinds");
  bool unwound = false;
  untilTheKernelReceives(iom, [&] {
    const this_fiber::CancelShield shield;
    char byte;
    EXPECT_EQ(::recv(pair.a, &byte, 1, 0), -1);
    EXPECT_EQ(errno, ECANCELED);
    unwound = true;
  });
  const StopResult result = iom.stop(Deadline::after(1ms));
  leaks().excuseLateWorkersOf(iom);
  if (lateWorkersOf(iom) > 0) GTEST_SKIP() << "the machine is too busy";
  EXPECT_TRUE(result.abandoned.empty());
  EXPECT_TRUE(unwound);
}

// It ignores that it was cancelled, until it is given up. Then the bytes are the next one's.
TEST_F(RingTransfers, AFiberThatIsGivenUpReceivesNothingMore) {
  inFiber([] {
    Pair pair = tcpPair();
    char lost;
    const auto stubborn = spawn([&] {
      while (::recv(pair.a, &lost, 1, 0) != 1) continue;
    });
    untilParked(*stubborn);
    stubborn->cancel();
    EXPECT_THROW(stubborn->join(), std::runtime_error);
    untilPolled();
    EXPECT_EQ(::send(pair.b, "x", 1, 0), 1);
    char byte = 0;
    EXPECT_EQ(::recv(pair.a, &byte, 1, 0), 1);
    EXPECT_EQ(byte, 'x');
    pair.closeA();
    EXPECT_EQ(::recv(pair.b, &byte, 1, 0), 0) << "nobody holds the file";
  });
}

// Those who find that another one sends have not asked the kernel yet, and no event would tell them that there is room.
TEST_F(RingTransfers, SendersOfOneSocketDoNotWaitForItsPeer) {
  inFiber([] {
    const Pair pair = tcpPair();
    for (int round = 0; round < 5; ++round) {
      std::vector<Fiber::ptr> senders;
      for (int i = 0; i < 4; ++i) senders.push_back(spawn([&] { EXPECT_EQ(::send(pair.b, "x", 1, 0), 1); }));
      for (const auto& one : senders) one->join();
    }
    std::string all;
    while (all.size() < 20) all += takeNow(pair.a);
    EXPECT_EQ(all, std::string(20, 'x'));
  });
}

// Reports in its error queue would wake each attempt of the kernel, which then takes a thread for it.
TEST_F(RingTransfers, AreNotOfASocketWhoseErrorQueueMayFill) {
  inFiber([] {
    for (const int option : {SO_TIMESTAMPING, SO_ZEROCOPY}) {
      const Pair pair = tcpPair();
      const int value = option == SO_ZEROCOPY ? 1 : SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
      ASSERT_EQ(::setsockopt(pair.a, SOL_SOCKET, option, &value, sizeof value), 0);
      char byte = 0;
      whenParked([&] {
        EXPECT_TRUE(FdTable::at(pair.a)->registered()) << "it waits in the epoll";
        EXPECT_EQ(::send(pair.b, "x", 1, 0), 1);
      });
      EXPECT_EQ(::recv(pair.a, &byte, 1, 0), 1);
      EXPECT_EQ(byte, 'x');
    }
  });
}

// A transfer holds its file, and the end of a file may linger, which must not keep the worker.
TEST_F(RingTransfers, EndWhereClosesMayLinger) {
  inFiber([] {
    const Pair pair = tcpPair();
    char byte = 0;
    const auto receiver = spawn([&] { EXPECT_EQ(::recv(pair.a, &byte, 1, 0), 1); });
    untilParked(*receiver);
    untilPolled();
    const linger option{1, 1};
    EXPECT_EQ(::setsockopt(pair.a, SOL_SOCKET, SO_LINGER, &option, sizeof option), 0);
    untilPolled();
    EXPECT_TRUE(FdTable::at(pair.a)->registered()) << "it waits in the epoll";
    EXPECT_EQ(::send(pair.b, "x", 1, 0), 1);
    receiver->join();
    EXPECT_EQ(byte, 'x');
    const linger none{0, 0};
    EXPECT_EQ(::setsockopt(pair.a, SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
  });
}

// Any of them may be told to linger and be closed at once.
TEST_F(RingTransfers, TheFirstSocketThatLingersEndsTheReceivesOfAll) {
  inFiber([] {
    const Pair lingering = tcpPair(), other = tcpPair();
    char byte = 0;
    const auto receiver = spawn([&] { EXPECT_EQ(::recv(other.a, &byte, 1, 0), 1); });
    untilParked(*receiver);
    untilPolled();
    EXPECT_FALSE(FdTable::at(other.a)->registered());
    const linger option{1, 1}, none{0, 0};
    EXPECT_EQ(::setsockopt(lingering.a, SOL_SOCKET, SO_LINGER, &option, sizeof option), 0);
    untilPolled();
    EXPECT_TRUE(FdTable::at(other.a)->registered()) << "it waits in the epoll";
    EXPECT_EQ(::send(other.b, "x", 1, 0), 1);
    receiver->join();
    EXPECT_EQ(::setsockopt(lingering.a, SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
  });
}

// Then each send is a call of its own, after which nobody waits.
TEST_F(RingTransfers, WhereClosesMayLingerASenderLetsOthersRun) {
  inFiber([] {
    const Pair pair = tcpPair();
    const linger option{1, 1}, none{0, 0};
    ASSERT_EQ(::setsockopt(pair.b, SOL_SOCKET, SO_LINGER, &option, sizeof option), 0);
    bool others_ran = false;
    IOManager::GetThis()->schedule([&] { others_ran = true; });
    for (int i = 0; i < 1000 && !others_ran; ++i) {
      ASSERT_EQ(i % 2 == 0 ? ::send(pair.b, "x", 1, 0) : ::write(pair.b, "x", 1), 1);
    }
    EXPECT_TRUE(others_ran);
    ASSERT_EQ(::setsockopt(pair.b, SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
  });
}

// The one who closes the number right after a send keeps what it has sent, and a signal ends a wait, not an attempt.
TEST_F(RingTransfers, InThePosixModesASendIsMadeAtOnce) {
  setHookClose(HookClose::kPosix);
  inFiber([] {
    const Pair pair = tcpPair();
    bool others_ran = false;
    IOManager::GetThis()->schedule([&] { others_ran = true; });
    EXPECT_EQ(::send(pair.b, "hello", 5, 0), 5);
    EXPECT_FALSE(others_ran);
    EXPECT_EQ(takeNow(pair.a), "hello");
  });
  setHookClose(HookClose::kWake);
}

std::atomic<int> g_pipe_signals{0};

TEST_F(RingTransfers, ABrokenConnectionRaisesOneSignal) {
  struct sigaction counts {
  }, before{};
  counts.sa_handler = [](int) { g_pipe_signals.fetch_add(1); };
  ASSERT_EQ(::sigaction(SIGPIPE, &counts, &before), 0);
  inFiber([] {
    const Pair pair = tcpPair();
    const auto sends = [&](int flags) {
      g_pipe_signals = 0;
      EXPECT_EQ(::send(pair.b, "x", 1, flags), -1);
      EXPECT_EQ(errno, EPIPE);
    };
    const auto sender = spawn([&] { sends(0); });
    EXPECT_EQ(::shutdown(pair.b, SHUT_WR), 0);
    sender->join();
    EXPECT_EQ(g_pipe_signals, 1);
    sends(0);
    EXPECT_EQ(g_pipe_signals, 1);
    sends(MSG_NOSIGNAL);
    EXPECT_EQ(g_pipe_signals, 0);
    const auto cancelled = spawn([&] { sends(0); });
    cancelled->cancel();
    cancelled->join();
    EXPECT_EQ(g_pipe_signals, 1);
  });
  ASSERT_EQ(::sigaction(SIGPIPE, &before, nullptr), 0);
}

// The kernel hands a receive that was woken for nothing too often to a thread of its own.
TEST_F(RingTransfers, ReceivesOfOneSocketTakeNoThreadsOfTheKernel) {
  inFiber([] {
    constexpr int kMessages = 1000;
    const Pair pair = tcpPair();
    const size_t before = threads();
    int received = 0;
    WaitGroup all;
    for (int i = 0; i < 8; ++i) {
      all.add();
      IOManager::GetThis()->schedule([&] {
        for (char byte; ::recv(pair.a, &byte, 1, 0) == 1;) ++received;
        all.done();
      });
    }
    for (int i = 0; i < kMessages; ++i) {
      EXPECT_EQ(libcCalls().send(pair.b, "x", 1, 0), 1);
      while (received <= i) Fiber::YieldToReady();
    }
    EXPECT_LE(threads(), before);
    EXPECT_EQ(::shutdown(pair.b, SHUT_WR), 0);
    all.wait();
    EXPECT_EQ(received, kMessages);
  });
}

TEST_F(RingTransfers, AMessageWakesItsWorkerOnce) {
  constexpr unsigned kMessages = 200;
  std::atomic<unsigned> waits{0};
  std::vector<std::unique_ptr<WaitGroup>> messages;
  for (unsigned i = 0; i < kMessages; ++i) messages.push_back(std::make_unique<WaitGroup>());
  for (const auto& one : messages) one->add();
  uint64_t sleeps = 0;
  std::thread sender([&] {
    for (unsigned i = 0; i < kMessages; ++i) {
      spinUntil(waits, i + 1);
      messages[i]->done();
    }
  });
  inFiber([&] {
    const auto counted = [] { return IOManager::GetThis()->getWorkerStats().sleeps; };
    const uint64_t before = counted();
    for (const auto& one : messages) {
      waits.fetch_add(1);
      one->wait();
    }
    sleeps = counted() - before;
  });
  sender.join();
  EXPECT_LE(sleeps, kMessages + kMessages / 10);
}

TEST_F(RingTransfers, AForkedChildHasNoneOfThem) {
  inFiber([] {
    const Pair pair = tcpPair();
    char byte = 0;
    const auto receiver = spawn([&] { EXPECT_EQ(::recv(pair.a, &byte, 1, 0), 1); });
    untilParked(*receiver);
    untilPolled();
    const pid_t child = ::fork();
    if (child == 0) {
      char mine = 0;
      ::_exit(::send(pair.b, "c", 1, 0) == 1 && ::recv(pair.b, &mine, 1, 0) == 1 && mine == 'p' ? 7 : 8);
    }
    receiver->join();
    EXPECT_EQ(byte, 'c');
    EXPECT_EQ(::send(pair.a, "p", 1, 0), 1);
    EXPECT_EQ(exitOf(child), 7);
  });
}

TEST_F(RingTransfers, AreNotMadeOnVirtualTime) {
  VirtualTime time;
  time.run([] {
    EXPECT_FALSE(ringTransfers());
    const Pair pair = tcpPair();
    setTimeout(hookedCalls(), pair.a, SO_RCVTIMEO, 3'600'000'000);
    char byte = 0;
    EXPECT_EQ(::recv(pair.a, &byte, 1, 0), -1);
    EXPECT_EQ(errno, EAGAIN);
  });
}

TEST_F(RingTransfers, ASpinningWorkerSeesThem) {
  const Pair pair = tcpPair();
  std::thread peer([&] {
    char byte = 0;
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
    EXPECT_EQ(::read(pair.b, &byte, 1), 1);
    EXPECT_EQ(byte, 'y');
  });
  IOManager iom({.threads = 1, .use_caller = false, .name = "spins", .spin = 50us});
  iom.schedule([&] {
    char byte = 0;
    EXPECT_EQ(::recv(pair.a, &byte, 1, 0), 1);
    EXPECT_EQ(::send(pair.a, "y", 1, 0), 1);
  });
  iom.stop();
  peer.join();
}

}  // namespace
}  // namespace sylar::test
