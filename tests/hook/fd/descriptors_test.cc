// Copies of descriptors, descriptors that nobody told the library about, and descriptors that wander between workers.
#include <cstdio>
#include <functional>

#include "tests/hook/support.h"

namespace sylar::test {
namespace {

/// A read on `fd` that waits until another fiber of the same worker writes to `peer`.
void readParks(int fd, int peer) {
  std::atomic<bool> written{false};  // the writer may run on another worker
  IOManager::GetThis()->schedule([&] {
    written = true;
    EXPECT_EQ(::write(peer, "x", 1), 1);
  });
  char byte = 0;
  EXPECT_EQ(::read(fd, &byte, 1), 1) << ::strerrorname_np(errno);
  EXPECT_EQ(byte, 'x');
  EXPECT_TRUE(written);
}

/// The same in the other direction: a write into a full `fd`.
void writeParks(int fd, int peer) {
  const std::vector<char> bytes = streamBytes(1 << 20);
  const auto writer = std::make_shared<Fiber>([&] { EXPECT_EQ(::write(fd, bytes.data(), bytes.size()), ssize_t(bytes.size())); });
  IOManager::GetThis()->schedule(writer);
  std::vector<char> got(bytes.size());
  for (size_t done = 0; done < got.size();) {
    const ssize_t n = ::read(peer, got.data() + done, got.size() - done);
    ASSERT_GT(n, 0);
    done += static_cast<size_t>(n);
  }
  writer->join();
  EXPECT_TRUE(got == bytes);
}

using Copy = int (*)(int fd);
const Copy kCopies[] = {
    [](int fd) { return ::dup(fd); },
    [](int fd) { return ::dup2(fd, 500); },
    [](int fd) { return ::dup3(fd, 501, O_CLOEXEC); },
    [](int fd) { return ::fcntl(fd, F_DUPFD, 300); },
    [](int fd) { return ::fcntl(fd, F_DUPFD_CLOEXEC, 300); },
};

// FM-15
TEST(CopiedDescriptor, ParksLikeItsOriginal) {
  const LeakCheck leaks;
  inFiber([] {
    for (const Copy copy_of : kCopies) {
      const Pair pair = unixPair();
      const Pair copies({copy_of(pair.a), -1});
      readParks(pair.a, pair.b);
      readParks(copies.a, pair.b);
      readParks(pair.a, pair.b);
      writeParks(copies.a, pair.b);
      writeParks(pair.a, pair.b);
    }
  });
}

// FM-15: the kernel keeps reporting under the number that was registered, also when it is closed.
TEST(CopiedDescriptor, ParksWhenItsOriginalIsClosed) {
  const LeakCheck leaks;
  inFiber([] {
    for (const Copy copy_of : kCopies) {
      Pair pair = unixPair();
      readParks(pair.a, pair.b);  // registered
      const Pair copies({copy_of(pair.a), -1});
      const int old_number = pair.a;
      pair.closeA();
      readParks(copies.a, pair.b);
      const Pair next = unixPair();  // takes the number, whose late events must not disturb it
      EXPECT_EQ(next.a, old_number);
      readParks(next.a, next.b);
      readParks(copies.a, pair.b);
      readParks(next.a, next.b);
    }
  });
}

TEST(CopiedDescriptor, AWaiterOnACopySurvivesTheCloseOfTheOriginal) {
  const LeakCheck leaks;
  inFiber([] {
    Pair pair = unixPair();
    const Pair copies({::dup(pair.a), -1});
    bool got = false;
    const auto waiter = std::make_shared<Fiber>([&] {
      char byte;
      EXPECT_EQ(::read(copies.a, &byte, 1), 1);
      got = true;
    });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    pair.closeA();
    for (int i = 0; i < 10; ++i) Fiber::YieldToReady();
    EXPECT_FALSE(got);
    EXPECT_EQ(::write(pair.b, "x", 1), 1);
    waiter->join();
    EXPECT_TRUE(got);
  });
}

TEST(CopiedDescriptor, BothCopiesAreWokenByOneEvent) {
  const LeakCheck leaks;
  const Pair pair = unixPair(SOCK_SEQPACKET);
  const Pair copies({::dup(pair.a), ::dup(pair.a)});
  int served = 0;
  inFiber([&] {
    for (const int fd : {pair.a, copies.a, copies.b}) {
      IOManager::GetThis()->schedule([&, fd] {
        char byte;
        EXPECT_EQ(::read(fd, &byte, 1), 1);
        ++served;
      });
    }
    IOManager::GetThis()->schedule([&] {
      for (int i = 0; i < 3; ++i) EXPECT_EQ(::write(pair.b, "x", 1), 1);
    });
  });
  EXPECT_EQ(served, 3);
}

// FM-17
TEST(AdoptedDescriptor, ParksThoughNoHookMadeIt) {
  const LeakCheck leaks;
  inFiber([] {
    {  // Forgets whatever had these numbers: UBSan makes pipes by the hook and closes them without.
      const Pair sockets = unixPair();
      const Pair pipe = pipePair();
    }
    for (int round = 0; round < 3; ++round) {  // the numbers are used again, by raw closes
      int fds[4];
      ASSERT_EQ(sys::call(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, fds), 0);
      ASSERT_EQ(sys::call(SYS_pipe2, fds + 2, 0), 0);
      readParks(fds[0], fds[1]);
      writeParks(fds[1], fds[0]);
      readParks(fds[2], fds[3]);
      writeParks(fds[3], fds[2]);
      std::swap(fds[0], fds[2 * (round % 2)]);  // socket and pipe change places
      for (const int fd : fds) sys::call(SYS_close, fd);
    }
  });
}

// FM-17: closed behind our back while its number was registered. (Opened behind our back as well, it is lost: no call tells the
// two apart without asking the kernel each time. docs/design/hook-deviations.md)
TEST(AdoptedDescriptor, MakesNoTroubleForTheNextOneBehindItsNumber) {
  const LeakCheck leaks;
  inFiber([] {
    for (int round = 0; round < 3; ++round) {
      const Ends old = makeUnix(round == 1 ? libcCalls() : hookedCalls(), SOCK_STREAM);
      readParks(old[0], old[1]);
      writeParks(old[0], old[1]);
      for (const int fd : old) sys::call(SYS_close, fd);
      const Pair next = unixPair();
      EXPECT_EQ(next.a, old[0]);
      readParks(next.a, next.b);
      writeParks(next.a, next.b);
      readParks(next.b, next.a);
    }
  });
}

// Opened behind our back as well, but as another kind of file: the kernel tells that a receive is not for it.
TEST(AdoptedDescriptor, ThatIsNoSocketAnyMoreIsRead) {
  inFiber([] {
    for (const bool by_vector : {false, true}) {
      for (const int mark : {1, 2}) {
        const Pair pair = unixPair();
        EXPECT_EQ(::setsockopt(pair.a, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark), 0);
        EXPECT_EQ(::write(pair.b, "xx", 2), 2);
        char bytes[2] = "x";
        EXPECT_EQ(::read(pair.a, bytes, 2), 2);
        const int zeros = ::open("/dev/zero", O_RDONLY);
        EXPECT_EQ(libcCalls().dup2(zeros, pair.a), pair.a);
        EXPECT_EQ(::close(zeros), 0);
        const iovec part{bytes, 2};
        EXPECT_EQ(by_vector ? ::readv(pair.a, &part, 1) : ::read(pair.a, bytes, 2), 2)
            << ::strerrorname_np(errno) << ", mark " << mark;
        EXPECT_EQ(bytes[0], '\0');
      }
    }
  });
}

// fclose is a close: the waiter is told, and nothing of the old descriptor is left under its number.
TEST(AdoptedDescriptor, ParksBehindANumberThatFcloseClosed) {
  const LeakCheck leaks;
  inFiber([] {
    const Ends old = makeUnix(hookedCalls(), SOCK_STREAM);
    readParks(old[0], old[1]);
    FILE* const file = ::fdopen(old[0], "r");
    const auto waiter = std::make_shared<Fiber>([&] {
      char byte;
      EXPECT_EQ(::read(old[0], &byte, 1), -1);
      EXPECT_EQ(errno, EBADF);
    });
    IOManager::GetThis()->schedule(waiter);
    untilParked(*waiter);
    EXPECT_EQ(std::fclose(file), 0);
    waiter->join();
    EXPECT_EQ(::close(old[1]), 0);
    const Pair next(makeUnix(libcCalls(), SOCK_STREAM));
    EXPECT_EQ(next.a, old[0]);
    readParks(next.a, next.b);
    writeParks(next.a, next.b);
  });
}

TEST(AdoptedDescriptor, ReceivedInAMessageParks) {
  const LeakCheck leaks;
  inFiber([] {
    const Pair carrier = unixPair();
    const Pair passenger = unixPair();
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    char byte = 'c';
    iovec part{&byte, 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    *rights = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(rights), &passenger.a, sizeof(int));
    EXPECT_EQ(::sendmsg(carrier.b, &message, 0), 1);
    EXPECT_EQ(::recvmsg(carrier.a, &message, 0), 1);
    int received = -1;
    std::memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
    readParks(received, passenger.b);
    readParks(passenger.a, passenger.b);
    EXPECT_EQ(::close(received), 0);
    readParks(passenger.a, passenger.b);
  });
}

/// Runs `step(i)` for i = 0 .. 2 * rounds - 1, in turn on the two, in new fibers.
void inTurn(IOManager& first, int first_thread, IOManager& second, int second_thread, int rounds,
            const std::function<void(int)>& step) {
  for (int i = 0; i < 2 * rounds; ++i) {
    std::atomic<bool> done{false};
    (i % 2 == 0 ? first : second)
        .schedule(
            [&, i] {
              step(i);
              done.store(true, std::memory_order_release);
            },
            i % 2 == 0 ? first_thread : second_thread);
    spinUntil(done, true);
  }
}

// The registration follows the one who waits.
TEST(WanderingDescriptor, ParksOnTwoWorkersInTurn) {
  const LeakCheck leaks;
  for (const bool adopted : {false, true}) {
    const Pair pair(makeUnix(adopted ? libcCalls() : hookedCalls(), SOCK_STREAM));
    IOManager iom(2, false, "two");
    const std::vector<pid_t> threads = threadsOf(iom, 2);
    inTurn(iom, threads[0], iom, threads[1], 30, [&](int) {
      readParks(pair.a, pair.b);
      writeParks(pair.a, pair.b);
    });
  }
}

TEST(WanderingDescriptor, ParksOnTwoManagersInTurn) {
  for (const bool adopted : {false, true}) {
    const Pair pair(makeUnix(adopted ? libcCalls() : hookedCalls(), SOCK_STREAM));
    IOManager first(1, false, "first");
    IOManager second(1, false, "second");
    inTurn(first, -1, second, -1, 30, [&](int) {
      readParks(pair.a, pair.b);
      writeParks(pair.a, pair.b);
    });
  }
}

// An engine that ends takes no registration along.
TEST(WanderingDescriptor, OutlivesTheManagersThatWaitedForIt) {
  const LeakCheck leaks;
  const Pair pair = tcpPair();
  for (int i = 0; i < 20; ++i) {
    inFiber([&] {
      readParks(pair.a, pair.b);
      writeParks(pair.a, pair.b);
    });
  }
}

// A reader waits at one manager, a writer at the other; the reader's manager is where the registration is.
TEST(WanderingDescriptor, ReaderAndWriterOfDifferentManagers) {
  constexpr size_t kSize = 1 << 20;
  const Pair pair = tcpPair();
  const std::vector<char> bytes = streamBytes(kSize);
  std::vector<char> answer(kSize);
  std::vector<char> got(kSize);
  {
    IOManager second(1, false, "second");
    IOManager first(1, false, "first");  // ends first
    first.schedule([&] { EXPECT_EQ(::recv(pair.a, answer.data(), kSize, MSG_WAITALL), ssize_t(kSize)); });
    second.schedule([&] { EXPECT_EQ(::write(pair.a, bytes.data(), kSize), ssize_t(kSize)); });
    first.schedule([&] {
      EXPECT_EQ(::recv(pair.b, got.data(), kSize, MSG_WAITALL), ssize_t(kSize));
      EXPECT_EQ(::write(pair.b, got.data(), kSize), ssize_t(kSize));
    });
  }
  EXPECT_TRUE(got == bytes);
  EXPECT_TRUE(answer == bytes);
}

// ---- Short reads: when they prove that a socket is empty, and when they do not.
// ------------------------------------------------

/// Receives once with room for more than there is.
ssize_t readWithRoom(int fd, int flags = 0) {
  char buffer[64];
  return ::recv(fd, buffer, sizeof buffer, flags);
}

class ShortRead : public testing::TestWithParam<Ends (*)(const Calls& creators)> {
 protected:
  Ends make() const { return GetParam()(hookedCalls()); }
};

TEST_P(ShortRead, ThenTheEndThatCameWithTheData) {
  inFiber([&] {
    Pair pair(make());
    whenParked([&] {
      EXPECT_EQ(::write(pair.b, "data", 4), 4);
      pair.closeB();
    });
    EXPECT_EQ(readWithRoom(pair.a), 4);
    EXPECT_EQ(readWithRoom(pair.a), 0);
    EXPECT_EQ(readWithRoom(pair.a), 0);
  });
}

TEST_P(ShortRead, ThenTheEndThatComesLater) {
  inFiber([&] {
    Pair pair(make());
    whenParked([&] { EXPECT_EQ(::write(pair.b, "data", 4), 4); });
    EXPECT_EQ(readWithRoom(pair.a), 4);
    whenParked([&] { pair.closeB(); });
    EXPECT_EQ(readWithRoom(pair.a), 0);
  });
}

TEST_P(ShortRead, ThenMoreData) {
  inFiber([&] {
    const Pair pair(make());
    for (int i = 0; i < 100; ++i) {
      whenParked([&] { EXPECT_EQ(::write(pair.b, "data", 4), 4); });
      EXPECT_EQ(readWithRoom(pair.a), 4);
      EXPECT_EQ(::write(pair.b, "more", 4), 4);  // between two reads, with nobody waiting
      EXPECT_EQ(readWithRoom(pair.a), 4);
    }
  });
}

TEST_P(ShortRead, AfterAPeek) {
  inFiber([&] {
    const Pair pair(make());
    whenParked([&] { EXPECT_EQ(::write(pair.b, "data", 4), 4); });
    EXPECT_EQ(readWithRoom(pair.a, MSG_PEEK), 4);
    EXPECT_EQ(readWithRoom(pair.a, MSG_PEEK), 4);
    EXPECT_EQ(readWithRoom(pair.a), 4);
    whenParked([&] { EXPECT_EQ(::write(pair.b, "data", 4), 4); });
    EXPECT_EQ(readWithRoom(pair.a), 4);
  });
}

TEST_P(ShortRead, ThenOurOwnShutdown) {
  inFiber([&] {
    const Pair pair(make());
    whenParked([&] { EXPECT_EQ(::write(pair.b, "data", 4), 4); });
    EXPECT_EQ(readWithRoom(pair.a), 4);
    whenParked([&] { EXPECT_EQ(::shutdown(pair.a, SHUT_RD), 0); });
    EXPECT_EQ(readWithRoom(pair.a), 0);
  });
}

TEST_P(ShortRead, ThenNothingWithoutWaiting) {
  inFiber([&] {
    const Pair pair(make());
    whenParked([&] { EXPECT_EQ(::write(pair.b, "data", 4), 4); });
    EXPECT_EQ(readWithRoom(pair.a), 4);
    EXPECT_EQ(readWithRoom(pair.a, MSG_DONTWAIT), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(::write(pair.b, "data", 4), 4);
    EXPECT_EQ(readWithRoom(pair.a, MSG_DONTWAIT), 4);
  });
}

INSTANTIATE_TEST_SUITE_P(Tcp, ShortRead, testing::Values(makeTcp));
INSTANTIATE_TEST_SUITE_P(Unix, ShortRead, testing::Values([](const Calls& creators) { return makeUnix(creators, SOCK_STREAM); }));

// An urgent byte cuts a read short with more bytes behind it.
TEST(ShortReadOnTcp, AtAnUrgentByteLeavesTheRest) {
  inFiber([] {
    const Pair pair = tcpPair();
    for (int i = 0; i < 20; ++i) {
      whenParked([&] {
        EXPECT_EQ(::send(pair.b, "ab", 2, 0), 2);
        EXPECT_EQ(::send(pair.b, "!", 1, MSG_OOB), 1);
        EXPECT_EQ(::send(pair.b, "cd", 2, 0), 2);
      });
      size_t received = 0;
      while (received < 4) {
        const ssize_t n = readWithRoom(pair.a);
        ASSERT_GT(n, 0);
        received += static_cast<size_t>(n);
      }
      EXPECT_EQ(received, 4u);
    }
  });
}

TEST(ShortReadOnTcp, ThenAReset) {
  inFiber([] {
    Pair pair = tcpPair();
    whenParked([&] { EXPECT_EQ(::write(pair.b, "data", 4), 4); });
    EXPECT_EQ(readWithRoom(pair.a), 4);
    whenParked([&] {
      resetOnClose(pair.b);
      pair.closeB();
    });
    EXPECT_EQ(readWithRoom(pair.a), -1);
    EXPECT_EQ(errno, ECONNRESET);
    EXPECT_EQ(readWithRoom(pair.a), 0);
  });
}

// Data and the end may come between any two steps of the reader: no wake-up is lost.
TEST(ShortReadOnTcp, AgainstAWriterOnAnotherThread) {
  inFiber([] {
    for (int i = 0; i < 300; ++i) {
      Pair pair = tcpPair();
      std::thread writer([&pair, i] {
        for (int k = 0; k < i % 7; ++k) EXPECT_EQ(libcCalls().write(pair.b, "data", 4), 4);
        pair.closeB();
      });
      ssize_t received = 0;
      for (ssize_t n; (n = readWithRoom(pair.a)) != 0; received += n) ASSERT_GT(n, 0);
      EXPECT_EQ(received, 4 * (i % 7));
      writer.join();
    }
  });
}

}  // namespace
}  // namespace sylar::test
