// While one fiber waits in a call that passes many messages, or bytes from one descriptor to another, another fiber of the only
// worker runs. Without the hook that other one would never begin, and the call never end.
#include <functional>

#include "sylar/testing/virtual_time.h"
#include "tests/hook/core/busy_helper.h"
#include "tests/hook/fd/kinds.h"

namespace sylar::test {
namespace {

/// A file of the test's own, with the bytes of the stream.
int fileOf(Owned& owned, size_t size) {
  const int fd = owned.keep(::open(owned.file().c_str(), O_RDWR | O_CLOEXEC));
  const std::vector<char> bytes = streamBytes(size);
  EXPECT_EQ(::write(fd, bytes.data(), size), ssize_t(size));
  EXPECT_EQ(::lseek(fd, 0, SEEK_SET), 0);
  return fd;
}

/// Reads `size` bytes, which must be those of the stream.
void takeStream(int fd, size_t size) {
  std::vector<char> got(size);
  for (size_t done = 0; done < size;) {
    const ssize_t n = ::read(fd, got.data() + done, size - done);
    ASSERT_GT(n, 0);
    done += static_cast<size_t>(n);
  }
  EXPECT_EQ(got, streamBytes(size));
}

/// Fills a pipe or a stream socket, and returns with how many bytes.
size_t fill(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  EXPECT_EQ(::fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
  const std::vector<char> page = streamBytes(4096);
  size_t size = 0;
  for (ssize_t n; (n = ::write(fd, page.data(), page.size())) > 0;) size += static_cast<size_t>(n);
  EXPECT_EQ(::fcntl(fd, F_SETFL, flags), 0);
  return size;
}
void drain(int fd, size_t size) {
  std::vector<char> bytes(size);
  for (size_t done = 0; done < size;) {
    const ssize_t n = ::read(fd, bytes.data(), size - done);
    ASSERT_GT(n, 0);
    done += static_cast<size_t>(n);
  }
}

struct Messages {
  explicit Messages(size_t count, size_t size = 1) : bytes(count, std::vector<char>(size, 'm')), parts(count), headers(count) {
    for (size_t i = 0; i < count; ++i) {
      parts[i] = {bytes[i].data(), size};
      headers[i].msg_hdr.msg_iov = &parts[i];
      headers[i].msg_hdr.msg_iovlen = 1;
    }
  }
  std::vector<std::vector<char>> bytes;
  std::vector<iovec> parts;
  std::vector<mmsghdr> headers;
};

TEST(TransferParking, RecvmmsgWaitsForEachOfItsMessages) {
  const Pair pair = udpPair();
  Messages messages(3);
  waitsFor([&] { EXPECT_EQ(::recvmmsg(pair.a, messages.headers.data(), 3, 0, nullptr), 3); },
           [&] {
             for (const char* text : {"a", "b", "c"}) {
               EXPECT_EQ(::send(pair.b, text, 1, 0), 1);
               untilPolled();
             }
           });
  EXPECT_EQ(messages.bytes[0][0], 'a');
  EXPECT_EQ(messages.bytes[2][0], 'c');
}

TEST(TransferParking, SendmmsgWaitsForRoom) {
  const Pair pair = unixPair(SOCK_DGRAM);
  Messages messages(100, 1000);
  waitsFor([&] { EXPECT_EQ(::sendmmsg(pair.a, messages.headers.data(), 100, 0), 100); },
           [&] {
             char buffer[1000];
             for (int i = 0; i < 100; ++i) EXPECT_EQ(::recv(pair.b, buffer, sizeof buffer, 0), 1000);
           });
}

TEST(TransferParking, SendmmsgOnAStreamSendsEachMessageWhole) {
  const Pair pair = tcpPair();
  constexpr size_t kSize = 3'000'000;
  Messages messages(3, kSize);
  waitsFor([&] { EXPECT_EQ(::sendmmsg(pair.a, messages.headers.data(), 3, 0), 3); }, [&] { drain(pair.b, 3 * kSize); });
  for (const mmsghdr& one : messages.headers) EXPECT_EQ(one.msg_len, kSize);
}

constexpr size_t kFile = 4 << 20;

TEST(TransferParking, SendfileSendsAllToASlowReader) {
  for (const auto& make : {makeTcp, +[](const Calls& calls) { return makeUnix(calls, SOCK_STREAM); }}) {
    Owned owned;
    const Pair pair(make(hookedCalls()));
    const int file = fileOf(owned, kFile);
    waitsFor([&] { EXPECT_EQ(::sendfile(pair.a, file, nullptr, kFile), ssize_t(kFile)); }, [&] { takeStream(pair.b, kFile); });
    EXPECT_EQ(::lseek(file, 0, SEEK_CUR), off_t(kFile));
  }
}

TEST(TransferParking, SendfileWaitsForRoomInAPipe) {
  Owned owned;
  const Pair pair = pipePair();
  const int file = fileOf(owned, 4096);
  const size_t full = fill(pair.b);
  off_t offset = 0;
  waitsFor([&] { EXPECT_EQ(::sendfile(pair.b, file, &offset, 4096), 4096); }, [&] { drain(pair.a, full); });
  EXPECT_EQ(offset, 4096);
  takeStream(pair.a, 4096);
}

TEST(TransferParking, SpliceWaitsForASocketToHaveSomething) {
  const Pair socket = tcpPair();
  const Pair pipe = pipePair();
  for (const unsigned flags : {0u, unsigned{SPLICE_F_NONBLOCK}}) {  // which the kernel's TCP does not look at
    waitsFor([&] { EXPECT_EQ(::splice(socket.a, nullptr, pipe.b, nullptr, 100, flags), 5); },
             [&] { EXPECT_EQ(::send(socket.b, "hello", 5, 0), 5); });
    drain(pipe.a, 5);
  }
}

TEST(TransferParking, SpliceWaitsForAPipeToHaveSomething) {
  const Pair socket = tcpPair();
  const Pair from = pipePair();
  const Pair to = pipePair();
  for (const int out : {socket.a, to.b}) {
    waitsFor([&] { EXPECT_EQ(::splice(from.a, nullptr, out, nullptr, 100, 0), 5); },
             [&] { EXPECT_EQ(::write(from.b, "hello", 5), 5); });
  }
  drain(socket.b, 5);
  drain(to.a, 5);
}

// SPLICE_F_NONBLOCK is about the pipe. The kernel waits for the socket all the same.
TEST(TransferParking, SpliceWaitsForRoomInASocket) {
  for (const unsigned flags : {0u, unsigned{SPLICE_F_NONBLOCK}}) {
    const Pair socket = tcpPair();
    const Pair pipe = pipePair();
    const size_t full = fill(socket.a);
    const size_t size = fill(pipe.b);
    waitsFor([&] { EXPECT_EQ(::splice(pipe.a, nullptr, socket.a, nullptr, 1 << 20, flags), ssize_t(size)); },
             [&] { drain(socket.b, full + size); });
  }
}

TEST(TransferParking, TeeWaitsForBothPipes) {
  const Pair from = pipePair();
  const Pair to = pipePair();
  waitsFor([&] { EXPECT_EQ(::tee(from.a, to.b, 100, 0), 5); }, [&] { EXPECT_EQ(::write(from.b, "hello", 5), 5); });
  drain(to.a, 5);
  const size_t full = fill(to.b);
  waitsFor([&] { EXPECT_EQ(::tee(from.a, to.b, 100, 0), 5); }, [&] { drain(to.a, full); });
}

TEST(TransferParking, VmspliceWaitsForRoomAndForBytes) {
  const Pair pipe = pipePair();
  char bytes[8] = "hello";
  const iovec part{bytes, 5};
  waitsFor([&] { EXPECT_EQ(::vmsplice(pipe.a, &part, 1, 0), 5); }, [&] { EXPECT_EQ(::write(pipe.b, "world", 5), 5); });
  EXPECT_STREQ(bytes, "world");
  const size_t full = fill(pipe.b);
  waitsFor([&] { EXPECT_EQ(::vmsplice(pipe.b, &part, 1, 0), 5); }, [&] { drain(pipe.a, full); });
}

TEST(TransferParking, VectorsAtNoOffsetWaitAsReadvAndWritev) {
  const Pair pipe = pipePair();
  char bytes[8] = {};
  const iovec part{bytes, 5};
  waitsFor([&] { EXPECT_EQ(::preadv2(pipe.a, &part, 1, -1, 0), 5); }, [&] { EXPECT_EQ(::pwritev2(pipe.b, &part, 1, -1, 0), 5); });
  const size_t full = fill(pipe.b);
  waitsFor([&] { EXPECT_EQ(::pwritev64v2(pipe.b, &part, 1, -1, 0), 5); }, [&] { drain(pipe.a, full); });
}

// A close by another fiber ends the wait at either end, and no transfer is made with a number that changed hands.
TEST(TransferParking, CloseOfEitherEndEndsASplice) {
  for (const bool closes_in : {true, false}) {
    Pair from = pipePair();
    Pair to = pipePair();
    const size_t full = closes_in ? 0 : fill(to.b);
    if (!closes_in) {
      EXPECT_EQ(::write(from.b, "x", 1), 1);
    }
    waitsFor(
        [&] {
          EXPECT_EQ(::splice(from.a, nullptr, to.b, nullptr, 10, 0), -1);
          EXPECT_EQ(errno, EBADF);
        },
        [&] { closes_in ? from.closeA() : to.closeB(); });
    EXPECT_EQ(full == 0, closes_in);
  }
}

// The file's number has no waiter of its own. A transfer that goes on must not take another file for it.
TEST(TransferParking, CloseOfTheFileEndsASendfile) {
  Owned owned;
  const Pair pair = tcpPair();
  const int file = ::dup(fileOf(owned, 4096));
  const size_t full = fill(pair.a);
  waitsFor(
      [&] {
        EXPECT_EQ(::sendfile(pair.a, file, nullptr, 4096), -1);
        EXPECT_EQ(errno, EBADF);
      },
      [&] {
        EXPECT_EQ(::close(file), 0);
        EXPECT_EQ(::open("/dev/zero", O_RDONLY | O_CLOEXEC), file);
        drain(pair.b, full);
        EXPECT_EQ(::close(file), 0);
      });
}

// socket(7), SO_SNDTIMEO: the kernel counts it for each piece. Cause: it was counted once for the whole call, which ended half-way.
TEST(TransferParking, TheTimeoutOfASocketIsThatOfEachPiece) {
  using Send = ssize_t (*)(int out, int file);
  const Send sends[] = {[](int out, int file) { return ::sendfile(out, file, nullptr, kFile); },
                        [](int out, int file) {
                          const Pair pipe = pipePair();
                          ssize_t sent = 0;
                          for (ssize_t n; sent < ssize_t(kFile); sent += n) {
                            n = ::sendfile(pipe.b, file, nullptr, 65536);
                            EXPECT_GT(n, 0);
                            EXPECT_EQ(::splice(pipe.a, nullptr, out, nullptr, static_cast<size_t>(n), 0), n);
                          }
                          return sent;
                        }};
  for (const Send send : sends) {
    Owned owned;
    const int file = fileOf(owned, kFile);
    VirtualTime time;
    time.run([&] {
      const Pair pair = tcpPair();
      const timeval minute{60, 0};
      EXPECT_EQ(::setsockopt(pair.a, SOL_SOCKET, SO_SNDTIMEO, &minute, sizeof minute), 0);
      size_t done = 0;
      const auto reader = std::make_shared<Fiber>([&] {
        std::vector<char> bytes(1 << 16);
        for (size_t part = 1; part <= 4; ++part) {
          ::sleep(40);
          while (done < part * kFile / 4) {  // without a pause, so that no time passes
            const ssize_t n = ::recv(pair.b, bytes.data(), std::min(bytes.size(), part * kFile / 4 - done), MSG_DONTWAIT);
            if (n > 0) done += static_cast<size_t>(n);
            Fiber::YieldToReady();
          }
        }
      });
      IOManager::GetThis()->schedule(reader);
      EXPECT_EQ(send(pair.a, file), ssize_t(kFile));
      reader->join();
    });
    EXPECT_GT(time.elapsed(), std::chrono::minutes(2));
  }
}

// Cause: the number was looked at when the helper came to the call, and then was another file's, into which it wrote.
TEST(ACallOnFilesThatWaitsForAHelper, IsNotMadeOnTheNumbersNextOwner) {
  using Call = ssize_t (*)(int file, int number);
  const Call calls[] = {
      [](int file, int number) { return ::sendfile(number, file, nullptr, 7); },
      [](int file, int number) { return ::sendfile(file, number, nullptr, 7); },
      [](int file, int number) { return ::copy_file_range(file, nullptr, number, nullptr, 7, 0); },
      [](int file, int number) { return ::copy_file_range(number, nullptr, file, nullptr, 7, 0); },
      [](int, int number) { return ssize_t{::fdatasync(number)}; },
  };
  const EngineMode helper_threads(IOEngine::kEpoll);
  for (const Call call : calls) {
    BusyHelper helper;
    Owned owned;
    const int file = fileOf(owned, 7);
    const int number = ::dup(fileOf(owned, 7));
    inFiber([&] {
      helper.begin();
      const auto caller = std::make_shared<Fiber>([&] {
        EXPECT_EQ(call(file, number), -1);
        EXPECT_EQ(errno, EBADF);
      });
      IOManager::GetThis()->schedule(caller);
      untilParked(*caller);
      EXPECT_EQ(::close(number), 0);
      EXPECT_EQ(owned.keep(::open(owned.file().c_str(), O_RDWR | O_CLOEXEC)), number);
      helper.release();
      caller->join();
      EXPECT_EQ(::lseek(number, 0, SEEK_END), 0);
    });
  }
}

}  // namespace
}  // namespace sylar::test
