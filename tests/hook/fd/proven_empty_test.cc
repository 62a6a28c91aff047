// What is there is read: a descriptor counts as empty after a read that proved it, and after nothing else.
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "sylar/fiber/fiber_control.h"
#include "sylar/io/fd_table.h"
#include "tests/hook/support.h"
#include "tests/support/sanitized.h"

namespace sylar::test {
namespace {

/// Makes `call` in a fiber of its own. If it waits, it is cancelled, and gives ECANCELED.
ssize_t unlessItWaits(std::function<ssize_t()> call) {
  ssize_t result = -1;
  int error = 0;
  const auto fiber = std::make_shared<Fiber>([&] {
    result = call();
    error = errno;
  });
  IOManager::GetThis()->schedule(fiber);
  while (stateOf(*fiber) != FiberState::kParked && stateOf(*fiber) != FiberState::kEnded) Fiber::YieldToReady();
  untilPolled();  // what the kernel has to report comes
  fiber->cancel();
  fiber->join();
  errno = error;
  return result;
}

/// Leaves `pair.a` read empty and registered, as a connection is between two requests.
void takeOneByte(const Pair& pair) {
  char byte;
  IOManager::GetThis()->schedule([&pair] { EXPECT_EQ(::write(pair.b, "0", 1), 1); });
  ASSERT_EQ(::read(pair.a, &byte, 1), 1);
}

Pair eventPair() {
  const int fd = ::eventfd(0, 0);
  return Pair({fd, ::dup(fd)});
}

struct Kind {
  std::string name;
  Ends (*make)();
};
const Kind kKinds[] = {
    {"tcp", [] { return makeTcp(hookedCalls()); }},
    {"unix stream", [] { return makeUnix(hookedCalls(), SOCK_STREAM); }},
    {"unix datagram", [] { return makeUnix(hookedCalls(), SOCK_DGRAM); }},
    {"udp", [] { return makeUdp(hookedCalls()); }},
    {"pipe", [] { return makePipe(hookedCalls()); }},
};
constexpr short kOtherEvents[] = {0, POLLPRI, POLLRDHUP};

TEST(ProvenEmpty, APollForSomethingElseProvesNothing) {
  for (const Kind& kind : kKinds) {
    for (const short events : kOtherEvents) {
      SCOPED_TRACE(kind.name + ", events " + std::to_string(events));
      inFiber([&] {
        const Pair pair(kind.make());
        takeOneByte(pair);
        ASSERT_EQ(::write(pair.b, "12345678", 8), 8);
        untilPolled();  // the event comes before the poll
        pollfd one{pair.a, events, 0};
        EXPECT_EQ(::poll(&one, 1, 1), 0);
        char buffer[64];
        EXPECT_EQ(unlessItWaits([&] { return ::read(pair.a, buffer, sizeof buffer); }), 8) << ::strerror(errno);
      });
    }
  }
}

TEST(ProvenEmpty, AWatchForTheHangUpBesideAReaderProvesNothing) {
  inFiber([] {
    const Pair pair = tcpPair();
    takeOneByte(pair);
    const auto watcher = std::make_shared<Fiber>([&] {
      pollfd one{pair.a, POLLRDHUP, 0};
      EXPECT_EQ(::poll(&one, 1, -1), -1);
    });
    ASSERT_EQ(::write(pair.b, "request", 7), 7);
    untilPolled();  // the event comes before anybody waits
    IOManager::GetThis()->schedule(watcher);
    untilParked(*watcher);
    char buffer[64];
    EXPECT_EQ(unlessItWaits([&] { return ::recv(pair.a, buffer, sizeof buffer, 0); }), 7) << ::strerror(errno);
    watcher->cancel();
    watcher->join();
  });
}

TEST(ProvenEmpty, APeekForMoreThanThereIsProvesNothing) {
  for (const bool tcp : {true, false}) {
    inFiber([=] {
      const Pair pair(tcp ? makeTcp(hookedCalls()) : makeUnix(hookedCalls(), SOCK_SEQPACKET));
      setTimeout(hookedCalls(), pair.a, SO_RCVTIMEO, 1000);
      ASSERT_EQ(::write(pair.b, "12345", 5), 5);
      char buffer[64];
      EXPECT_EQ(::recv(pair.a, buffer, 10, MSG_PEEK | MSG_WAITALL), 5);
      EXPECT_EQ(::recv(pair.a, buffer, 10, 0), 5) << ::strerror(errno);
    });
  }
}

// The kernel says these before it waits; a call that takes the descriptor for empty would never hear of them.
TEST(ProvenEmpty, AWaitHidesNoErrorOfTheNextCall) {
  inFiber([] {
    const Pair events = eventPair();
    pollfd one{events.a, POLLIN, 0};
    EXPECT_EQ(::poll(&one, 1, 1), 0);
    char buffer[8];
    EXPECT_EQ(unlessItWaits([&] { return ::read(events.a, buffer, 3); }), -1);
    EXPECT_EQ(errno, EINVAL);
  });
  inFiber([] {
    const Pair listener({boundSocket(hookedCalls(), SOCK_STREAM), -1});
    pollfd one{listener.a, POLLIN, 0};
    EXPECT_EQ(::poll(&one, 1, 1), 0);
    char byte;
    EXPECT_EQ(unlessItWaits([&] { return ::recv(listener.a, &byte, 1, 0); }), -1);
    EXPECT_EQ(errno, ENOTCONN);
  });
}

// A read ends early, too, where the memory ends that the kernel can write.
TEST(ProvenEmpty, AReadThatEndsAtUnwritableMemoryProvesNothing) {
  constexpr size_t kPage = 4096, kGood = 40 * kPage, kAll = 2 * kGood;
  char* const memory = static_cast<char*>(::mmap(nullptr, kAll, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::mprotect(memory + kGood, kAll - kGood, PROT_NONE), 0);
  inFiber([&] {
    const Pair pair = tcpPair();
    setBuffer(pair.a, SO_RCVBUF, 4 << 20);
    setBuffer(pair.b, SO_SNDBUF, 4 << 20);
    takeOneByte(pair);
    size_t sent = 0;  // in pieces that the kernel does not join
    const std::vector<char> piece(16 * kPage);
    for (ssize_t n = 1; sent < kAll && n > 0; sent += static_cast<size_t>(n)) {
      n = ::send(pair.b, piece.data(), piece.size(), MSG_DONTWAIT);
      ASSERT_GT(n, 0) << sent;
    }
    untilPolled();
    const ssize_t got = ::read(pair.a, memory, kAll);
    ASSERT_GT(got, 0) << ::strerror(errno);
    int left = 0;
    ASSERT_EQ(::ioctl(pair.a, FIONREAD, &left), 0);
    ASSERT_GT(left, 0) << "the kernel stopped at the end of the memory, after " << got;
    EXPECT_GT(unlessItWaits([&] { return ::read(pair.a, memory, 1); }), 0) << ::strerror(errno);
  });
  EXPECT_EQ(::munmap(memory, kAll), 0);
}

/// Whether a read of 4096 bytes into `buffer` that brings one lets the next read go straight to its wait.
bool oneByteProves(const Pair& pair, char* buffer) {
  takeOneByte(pair);
  EXPECT_EQ(::write(pair.b, "x", 1), 1);
  untilPolled();
  EXPECT_EQ(::read(pair.a, buffer, 4096), 1);
  const Entry& entry = *FdTable::find(pair.a);
  return entry.knownEmpty(Direction::kRead, entry.edges(Direction::kRead));
}

// The saving is for memory of which it is known that the kernel can write it: else one call more says that nothing is there.
TEST(ProvenEmpty, AShortReadProvesItOnTheStackAndWithinAPage) {
  alignas(4096) static char memory[3 * 4096];
  inFiber([] {
    const Pair pair = tcpPair();
    char on_stack[4096];
    EXPECT_TRUE(oneByteProves(pair, on_stack) || kSanitized) << "a sanitizer has arrays elsewhere";
    EXPECT_TRUE(oneByteProves(pair, memory)) << "one page";
    EXPECT_FALSE(oneByteProves(pair, memory + 8)) << "the second page may be anything";
  });
}

/// Leaves `pair.a` known to be empty by a short read, with a byte that came behind it and that no event has told of yet.
void byteBehindAShortRead(const Pair& pair) {
  char buffer[64];
  ASSERT_EQ(::write(pair.b, "x", 1), 1);
  untilPolled();
  ASSERT_EQ(::read(pair.a, buffer, sizeof buffer), 1);
  ASSERT_EQ(::write(pair.b, "y", 1), 1);
}

// FM-40: -1/ECANCELED exactly where it would park.
TEST(ProvenEmpty, ACancelledFiberReadsWhatIsThere) {
  inFiber([] {
    for (const bool at_once : {true, false}) {
      const Pair pair = tcpPair();
      const auto fiber = std::make_shared<Fiber>([&] {
        char buffer[64];
        takeOneByte(pair);
        if (at_once) {
          Fiber::GetThis()->cancel();
          untilPolled();
        }
        byteBehindAShortRead(pair);
        if (!at_once) Fiber::GetThis()->cancel();
        EXPECT_EQ(::read(pair.a, buffer, sizeof buffer), 1) << ::strerror(errno);
        EXPECT_EQ(::read(pair.a, buffer, sizeof buffer), -1);
        EXPECT_EQ(errno, ECANCELED);
        ASSERT_EQ(::write(pair.b, "z", 1), 1);
        EXPECT_EQ(::read(pair.a, buffer, sizeof buffer), 1) << ::strerror(errno);
      });
      IOManager::GetThis()->schedule(fiber);
      fiber->join();
    }
  });
}

// A negative timeout is none to wait for.
TEST(ProvenEmpty, AReadThatDoesNotWaitGetsWhatIsThere) {
  inFiber([] {
    const Pair pair = tcpPair();
    takeOneByte(pair);
    byteBehindAShortRead(pair);
    const timeval negative{-1, 0};
    ASSERT_EQ(::setsockopt(pair.a, SOL_SOCKET, SO_RCVTIMEO, &negative, sizeof negative), 0);
    char buffer[64];
    EXPECT_EQ(::read(pair.a, buffer, sizeof buffer), 1) << ::strerror(errno);
  });
}

}  // namespace
}  // namespace sylar::test
