// Every kind of descriptor that can wait parks the fiber that waits for it, in both directions; what cannot wait never parks.
#include "tests/hook/fd/kinds.h"

namespace sylar::test {
namespace {

/// One read that gets what one feed gave.
void readOne(const Source& source) {
  std::vector<char> buffer(source.size);
  EXPECT_EQ(::read(source.fd, buffer.data(), buffer.size()), ssize_t(buffer.size())) << ::strerrorname_np(errno);
}

/// A read that waits until another fiber of the same worker feeds.
void readParks(const Source& source) {
  bool fed = false;
  IOManager::GetThis()->schedule(
      [&] {
        fed = true;
        source.feed();
      },
      threadId());
  readOne(source);
  EXPECT_TRUE(fed);
}

class Readable : public testing::TestWithParam<NamedSource> {};

// HA-8, CD-H14: no read of these blocks the worker.
TEST_P(Readable, ReadParks) {
  const Source source = GetParam().make();
  inFiber([&] {
    for (int i = 0; i < 5; ++i) readParks(source);
  });
}

// FM-17
TEST_P(Readable, ReadvParks) {
  const Source source = GetParam().make();
  inFiber([&] {
    for (int i = 0; i < 5; ++i) {
      bool fed = false;
      IOManager::GetThis()->schedule([&] {
        fed = true;
        source.feed();
      });
      std::vector<char> buffer(source.size);
      const iovec part{buffer.data(), buffer.size()};  // inotify refuses to begin with less
      EXPECT_EQ(::readv(source.fd, &part, 1), ssize_t(buffer.size()));
      EXPECT_TRUE(fed);
    }
  });
}

// FM-19
TEST_P(Readable, PollParks) {
  const Source source = GetParam().make();
  inFiber([&] {
    for (int i = 0; i < 5; ++i) {
      pollfd one{source.fd, POLLIN, 0};
      EXPECT_EQ(::poll(&one, 1, 0), 0);
      IOManager::GetThis()->schedule(source.feed);
      EXPECT_EQ(::poll(&one, 1, -1), 1);
      EXPECT_NE(one.revents & POLLIN, 0);
      readOne(source);
    }
  });
}

// FM-18: whoever gets it, the others wait on.
TEST_P(Readable, ManyReadersAreAllServed) {
  constexpr int kReaders = 20;
  const Source source = GetParam().make();
  for (const size_t workers : {1, 2, 4}) {
    std::atomic<int> served{0};
    IOManager iom(workers, false, "readers");
    for (int i = 0; i < kReaders; ++i) {
      iom.schedule([&] {
        readOne(source);
        served.fetch_add(1);
      });
    }
    iom.schedule([&] {
      for (int i = 0; i < kReaders; ++i) {
        source.feed();
        while (served.load() == i) Fiber::YieldToReady();
      }
    });
    iom.stop();
    EXPECT_EQ(served.load(), kReaders);
  }
}

/// Runs `readParks` on two threads in turn, in new fibers.
void inTurn(const Source& source, IOManager& first, int first_thread, IOManager& second, int second_thread) {
  for (int i = 0; i < 20; ++i) {
    std::atomic<bool> done{false};
    (i % 2 == 0 ? first : second)
        .schedule(
            [&] {
              readParks(source);
              done.store(true, std::memory_order_release);
            },
            i % 2 == 0 ? first_thread : second_thread);
    spinUntil(done, true);
  }
}

// P3: used from fibers of two workers in turn.
TEST_P(Readable, ParksOnTwoWorkersInTurn) {
  const Source source = GetParam().make();
  IOManager iom(2, false, "two");
  const std::vector<pid_t> threads = threadsOf(iom, 2);
  inTurn(source, iom, threads[0], iom, threads[1]);
}

TEST_P(Readable, ParksOnTwoManagersInTurn) {
  const Source source = GetParam().make();
  IOManager first(1, false, "first");
  IOManager second(1, false, "second");
  inTurn(source, first, -1, second, -1);
}

// FM-13
TEST_P(Readable, CloseWakesItsReader) {
  const Source source = GetParam().make();
  const int copy = ::dup(source.fd);
  inFiber([&] {
    const auto reader = std::make_shared<Fiber>([&] {
      char buffer[256];
      EXPECT_EQ(::read(copy, buffer, sizeof buffer), -1);
      EXPECT_EQ(errno, EBADF);
    });
    IOManager::GetThis()->schedule(reader);
    untilParked(*reader);
    EXPECT_EQ(::close(copy), 0);
    reader->join();
  });
}

// CD-H2, FM-16
TEST_P(Readable, NonblockingByTheUserDoesNotPark) {
  const Source source = GetParam().make();
  ASSERT_EQ(::fcntl(source.fd, F_SETFL, O_NONBLOCK), 0);
  inFiber([&] {
    char buffer[256];
    EXPECT_EQ(::read(source.fd, buffer, sizeof buffer), -1);
    EXPECT_EQ(errno, EAGAIN);
  });
  EXPECT_EQ(libcCalls().fcntl(source.fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
}

// HA-7
TEST_P(Readable, KeepsItsFlags) {
  const Source source = GetParam().make();
  const int flags = libcCalls().fcntl(source.fd, F_GETFL);
  inFiber([&] {
    IOManager::GetThis()->schedule([&] {
      EXPECT_EQ(libcCalls().fcntl(source.fd, F_GETFL), flags);
      source.feed();
    });
    readOne(source);
  });
  EXPECT_EQ(libcCalls().fcntl(source.fd, F_GETFL), flags);
}

INSTANTIATE_TEST_SUITE_P(Of, Readable, testing::ValuesIn(sources()), [](const auto& one) { return one.param.name; });

// FM-19: one poll over all kinds; each of them wakes it.
TEST(ReadableOfAllKinds, OnePollWaitsForAll) {
  std::vector<Source> all;
  std::vector<pollfd> fds;
  for (const NamedSource& one : sources()) {
    all.push_back(one.make());
    fds.push_back({all.back().fd, POLLIN, 0});
  }
  const Pair file({::open("/tmp", O_TMPFILE | O_RDWR, 0600), -1});
  fds.push_back({file.a, 0, 0});  // never reports anything
  inFiber([&] {
    for (size_t i = 0; i < all.size(); ++i) {
      IOManager::GetThis()->schedule(all[i].feed);
      EXPECT_EQ(::poll(fds.data(), fds.size(), -1), 1) << sources()[i].name;
      EXPECT_NE(fds[i].revents & POLLIN, 0) << sources()[i].name;
      readOne(all[i]);
    }
  });
}

// Cause: what epoll does not take made the thread wait in libc's poll.
TEST(ReadableOfAllKinds, PollOfAFileForNothingParks) {
  const Pair file({::open("/tmp", O_TMPFILE | O_RDWR, 0600), -1});
  const Pair pair = unixPair();
  inFiber([&] {
    bool written = false;
    IOManager::GetThis()->schedule([&] {
      written = true;
      EXPECT_EQ(::write(pair.b, "x", 1), 1);
    });
    pollfd fds[2] = {{file.a, 0, 0}, {pair.a, POLLIN, 0}};
    EXPECT_EQ(::poll(fds, 2, 5000), 1);
    EXPECT_TRUE(written);
    EXPECT_EQ(::poll(fds, 1, 1), 0);
  });
}

// ---- Writing. -----------------------------------------------------------------------------------------------------------------

// HA-8: an eventfd at its maximum.
TEST(Writable, EventfdThatIsFullParks) {
  const Pair event({::eventfd(0, 0), -1});
  uint64_t value = UINT64_MAX - 1;
  ASSERT_EQ(::write(event.a, &value, sizeof value), ssize_t(sizeof value));
  inFiber([&] {
    bool emptied = false;
    IOManager::GetThis()->schedule([&] {
      emptied = true;
      EXPECT_EQ(::eventfd_read(event.a, &value), 0);
    });
    EXPECT_EQ(::eventfd_write(event.a, 7), 0);
    EXPECT_TRUE(emptied);
    EXPECT_EQ(value, UINT64_MAX - 1);
    EXPECT_EQ(::eventfd_read(event.a, &value), 0);
    EXPECT_EQ(value, 7u);
  });
}

/// A write of `text`, more than the way to the reader holds, in one fiber; `expected` arrives in another one of the same worker.
void arrives(int writer, int reader, const std::string& text, const std::string& expected, bool by_vector) {
  inFiber([&] {
    bool written = false;
    const auto sender = std::make_shared<Fiber>([&] {
      char* const bytes = const_cast<char*>(text.data());
      const size_t third = text.size() / 3;
      const iovec parts[4] = {{bytes, third}, {bytes, 0}, {bytes + third, third}, {bytes + 2 * third, text.size() - 2 * third}};
      const ssize_t n = by_vector ? ::writev(writer, parts, 4) : ::write(writer, bytes, text.size());
      EXPECT_EQ(n, ssize_t(text.size()));
      written = true;
    });
    IOManager::GetThis()->schedule(sender);
    untilParked(*sender);
    EXPECT_FALSE(written);
    std::string got;
    while (got.size() < expected.size()) {
      char buffer[5000];
      const ssize_t n = ::read(reader, buffer, sizeof buffer);
      ASSERT_GT(n, 0);
      got.append(buffer, static_cast<size_t>(n));
    }
    sender->join();
    EXPECT_TRUE(got == expected);
  });
}

std::string lines(size_t count, const char* end) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += "line " + std::to_string(i) + end;
  return text;
}

// CD-H8
TEST(Writable, FifoThatIsFullParksAndTakesAll) {
  Owned owned;
  const Ends ends = makeFifo(owned);
  const std::string text = lines(40'000, "\n");
  for (const bool by_vector : {false, true}) arrives(ends[1], ends[0], text, text, by_vector);
}

// CD-H8, HA-7
TEST(Writable, TerminalThatIsFullParksAndTakesAll) {
  Owned owned;
  for (const bool by_vector : {false, true}) {
    const Ends ends = makeTerminal(owned, false);
    arrives(ends[0], ends[1], lines(20'000, "\n"), lines(20'000, "\r\n"), by_vector);  // each line end becomes two bytes
    EXPECT_EQ(libcCalls().fcntl(ends[0], F_GETFL) & O_NONBLOCK, 0);
  }
}
TEST(Writable, RawTerminalThatIsFullParksAndTakesAll) {
  Owned owned;
  const std::string text = lines(20'000, "\n");
  for (const bool by_vector : {false, true}) {
    const Ends ends = makeTerminal(owned, true);
    arrives(ends[0], ends[1], text, text, by_vector);
    arrives(ends[1], ends[0], text, text, by_vector);  // and from the master
  }
}

// FM-31: a handler that writes to the FIFO to which the interrupted code writes.
TEST(Writable, FifoFromASignalHandlerOverAWriter) {
  Owned owned;
  static Ends ends;
  ends = makeFifo(owned);
  struct sigaction action {};
  action.sa_handler = [](int) { EXPECT_EQ(::write(ends[1], "h", 1), 1); };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
  inFiber([] {
    std::atomic<bool> done{false};
    std::atomic<int> round{0};
    // At most one signal a round: many in a row could fill the FIFO, and then the handler waits for the reader that it has
    // interrupted.
    std::thread signaller([&, writer = ::pthread_self()] {
      for (int last = -1; !done.load(std::memory_order_acquire);) {
        const int now = round.load(std::memory_order_relaxed);
        if (std::exchange(last, now) != now) ::pthread_kill(writer, SIGUSR1);
      }
    });
    char buffer[4096];
    for (int i = 0; i < 2000; ++i) {
      round.store(i, std::memory_order_relaxed);
      EXPECT_EQ(::write(ends[1], "w", 1), 1);
      EXPECT_GT(::read(ends[0], buffer, sizeof buffer), 0);
    }
    done.store(true, std::memory_order_release);
    signaller.join();
  });
  ::signal(SIGUSR1, SIG_DFL);
}

// ---- What cannot wait. --------------------------------------------------------------------------------------------------------

// FM-12: devices and files give what libc gives, at once.
TEST(NeverParks, DevicesAndFiles) {
  Owned owned;
  const int file = owned.keep(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  const int null = owned.keep(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const int zero = owned.keep(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  const int full = owned.keep(::open("/dev/full", O_RDWR | O_CLOEXEC));
  const int random = owned.keep(::open("/dev/urandom", O_RDONLY | O_CLOEXEC));
  const int directory = owned.keep(::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  bool other_ran = false;  // set when the fiber below has ended
  inFiber([&] {
    IOManager::GetThis()->schedule([&] { other_ran = true; });
    char buffer[64] = "text";
    EXPECT_EQ(::write(file, buffer, 64), 64);
    EXPECT_EQ(::read(file, buffer, 64), 0);
    EXPECT_EQ(::write(null, buffer, 64), 64);
    EXPECT_EQ(::read(null, buffer, 64), 0);
    EXPECT_EQ(::read(zero, buffer, 64), 64);
    EXPECT_EQ(::write(full, buffer, 64), -1);
    EXPECT_EQ(errno, ENOSPC);
    EXPECT_EQ(::read(random, buffer, 64), 64);
    EXPECT_EQ(::read(directory, buffer, 64), -1);
    EXPECT_EQ(errno, EISDIR);
    EXPECT_FALSE(other_ran);
  });
}

}  // namespace
}  // namespace sylar::test
