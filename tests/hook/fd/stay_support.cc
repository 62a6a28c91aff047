#include "tests/hook/fd/stay_support.h"

#include <pty.h>
#include <sys/eventfd.h>
#include <termios.h>

namespace sylar::test {
namespace {

constexpr size_t kLong = 1'000'000;  // more than the buffers take

/// Two ends, of which the test closes the first.
struct HalfPair {
  explicit HalfPair(Ends ends) : fd(ends[0]), other(std::make_shared<Pair>(Ends{-1, ends[1]})) {}
  int fd;
  std::shared_ptr<Pair> other;
};

/// Writes to the other end.
std::function<void()> writing(const HalfPair& pair, std::string bytes) {
  return [other = pair.other, bytes = std::move(bytes)] {
    EXPECT_EQ(::write(other->b, bytes.data(), bytes.size()), ssize_t(bytes.size()));
  };
}
/// Reads from the other end all that a long write brings.
std::function<void()> draining(const HalfPair& pair) {
  return [other = pair.other] {
    std::vector<char> got(kLong);
    for (size_t done = 0; done < kLong;) {
      const ssize_t n = ::read(other->b, got.data() + done, kLong - done);
      ASSERT_GT(n, 0);
      done += static_cast<size_t>(n);
    }
    EXPECT_EQ(got, streamBytes(kLong));
  };
}

HalfPair unixHalf(int type = SOCK_STREAM) { return HalfPair(makeUnix(hookedCalls(), type)); }
HalfPair tcpHalf() { return HalfPair(makeTcp(hookedCalls())); }
/// It takes little at once.
HalfPair smallTcpHalf() {
  const Ends ends = makeTcp(hookedCalls());
  setBuffer(ends[0], SO_SNDBUF, 16'384);
  setBuffer(ends[1], SO_RCVBUF, 16'384);
  return HalfPair(ends);
}
HalfPair readHalf() { return HalfPair(makePipe(hookedCalls())); }
HalfPair writeHalf() {
  const Ends ends = makePipe(hookedCalls());
  return HalfPair({ends[1], ends[0]});
}

StayingCall reads(const HalfPair& pair, std::string bytes = "data") {
  return {pair.fd, [fd = pair.fd] { return toldRead(fd); }, writing(pair, std::move(bytes))};
}
StayingCall writes(const HalfPair& pair) {
  const auto bytes = std::make_shared<std::vector<char>>(streamBytes(kLong));
  return {pair.fd, [=, fd = pair.fd] { return told(::write(fd, bytes->data(), bytes->size())); }, draining(pair)};
}

StayingCall readv() {
  const HalfPair pair = unixHalf();
  return {pair.fd,
          [fd = pair.fd] {
            char bytes[8];
            const iovec parts[] = {{bytes, 3}, {bytes + 3, 5}};
            return told(::readv(fd, parts, 2), bytes);
          },
          writing(pair, "data")};
}
/// A receive that has got a part of what it waits for.
StayingCall waitall() {
  const HalfPair pair = tcpHalf();
  writing(pair, "da")();
  return {pair.fd,
          [fd = pair.fd] {
            char bytes[4];
            return told(::recv(fd, bytes, sizeof bytes, MSG_WAITALL), bytes);
          },
          writing(pair, "ta")};
}
StayingCall recvmsg() {
  const HalfPair pair = unixHalf(SOCK_SEQPACKET);
  return {pair.fd,
          [fd = pair.fd] {
            char bytes[8];
            iovec part{bytes, sizeof bytes};
            msghdr message{};
            message.msg_iov = &part;
            message.msg_iovlen = 1;
            return told(::recvmsg(fd, &message, 0), bytes);
          },
          writing(pair, "data")};
}
/// It has got the first of two messages.
StayingCall recvmmsg() {
  const HalfPair pair = unixHalf(SOCK_DGRAM);
  writing(pair, "1")();
  return {pair.fd,
          [fd = pair.fd] {
            char bytes[2];
            iovec parts[] = {{bytes, 1}, {bytes + 1, 1}};
            mmsghdr messages[2]{};
            for (int i = 0; i < 2; ++i) {
              messages[i].msg_hdr.msg_iov = &parts[i];
              messages[i].msg_hdr.msg_iovlen = 1;
            }
            return told(::recvmmsg(fd, messages, 2, 0, nullptr), bytes);
          },
          writing(pair, "2")};
}
StayingCall sendmsg() {
  const HalfPair pair = smallTcpHalf();
  const auto bytes = std::make_shared<std::vector<char>>(streamBytes(kLong));
  return {pair.fd,
          [=, fd = pair.fd] {
            iovec parts[] = {{bytes->data(), 10}, {bytes->data() + 10, kLong - 10}};
            msghdr message{};
            message.msg_iov = parts;
            message.msg_iovlen = 2;
            return told(::sendmsg(fd, &message, 0));
          },
          draining(pair)};
}
StayingCall eventfd() {
  const int fd = ::eventfd(0, 0);
  const auto copy = std::make_shared<Pair>(Ends{-1, ::dup(fd)});
  return {fd,
          [fd] {
            eventfd_t value = 0;
            const int result = ::eventfd_read(fd, &value);
            return told(result) + " of " + std::to_string(value);
          },
          [copy] { EXPECT_EQ(::eventfd_write(copy->b, 3), 0); }};
}
StayingCall terminal() {
  Ends ends{};
  EXPECT_EQ(::openpty(&ends[1], &ends[0], nullptr, nullptr, nullptr), 0);
  return reads(HalfPair(ends), "data\n");  // a terminal gives whole lines
}

StayingCall accept(bool shared) {
  const int fd = boundSocket(hookedCalls(), SOCK_STREAM);
  const sockaddr_in address = addressOf(fd);
  if (shared) ::close(::dup(fd));
  const auto client = std::make_shared<Pair>(Ends{-1, -1});
  return {fd,
          [fd] {
            const int accepted = ::accept(fd, nullptr, nullptr);
            return accepted < 0 ? told(accepted) : "accepted " + told(::close(accepted));
          },
          [client, address] {
            client->b = ::socket(AF_INET, SOCK_STREAM, 0);
            EXPECT_EQ(connectTo(hookedCalls(), client->b, address), 0);
          }};
}
/// To a listener of AF_UNIX that takes no more.
StayingCall connect() {
  const auto listener = std::make_shared<Pair>(Ends{::socket(AF_UNIX, SOCK_STREAM, 0), ::socket(AF_UNIX, SOCK_STREAM, 0)});
  const sa_family_t family = AF_UNIX;
  EXPECT_EQ(::bind(listener->a, reinterpret_cast<const sockaddr*>(&family), sizeof family), 0);
  sockaddr_un address{};
  socklen_t size = sizeof address;
  ::getsockname(listener->a, reinterpret_cast<sockaddr*>(&address), &size);
  EXPECT_EQ(::listen(listener->a, 0), 0);
  const auto connects = [address, size](int fd) { return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), size); };
  EXPECT_EQ(connects(listener->b), 0);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  return {fd, [=] { return told(connects(fd)); }, [listener] { EXPECT_EQ(::close(::accept(listener->a, nullptr, nullptr)), 0); }};
}

std::string toldPoll(std::vector<pollfd> fds) {
  std::string all = told(::poll(fds.data(), fds.size(), -1));
  for (const pollfd& one : fds) all += " " + std::to_string(one.revents);
  return all;
}
/// The kernel looks at the number again when the old file has woken it, and finds it closed.
StayingCall poll() {
  const HalfPair pair = unixHalf();
  return {pair.fd, [fd = pair.fd] { return toldPoll({{fd, POLLIN, 0}}); }, writing(pair, "data")};
}
StayingCall pollWokenByAnother() {
  const HalfPair pair = unixHalf();
  const HalfPair awake = unixHalf();
  awake.other->a = awake.fd;
  return {pair.fd,
          [fd = pair.fd, other = awake.fd] {
            return toldPoll({{fd, POLLIN, 0}, {other, POLLIN, 0}});
          },
          [pair, end = writing(awake, "data")] { end(); }};
}
StayingCall select() {
  const HalfPair pair = unixHalf();
  return {pair.fd,
          [fd = pair.fd] {
            fd_set reads, writes;
            FD_ZERO(&reads);
            FD_ZERO(&writes);
            FD_SET(fd, &reads);
            const int n = ::select(fd + 1, &reads, &writes, nullptr, nullptr);
            return told(n) + " set " + std::to_string(FD_ISSET(fd, &reads)) + std::to_string(FD_ISSET(fd, &writes));
          },
          writing(pair, "data")};
}
StayingCall epollWait() {
  const HalfPair pair = unixHalf();
  pair.other->a = pair.fd;
  const int epoll = ::epoll_create1(0);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = 7;
  EXPECT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, pair.fd, &event), 0);
  return {epoll,
          [epoll] {
            epoll_event got{};
            const int n = ::epoll_wait(epoll, &got, 1, -1);
            return told(n) + " event " + std::to_string(got.data.u32);
          },
          writing(pair, "data")};
}

/// From a pipe to a socket; one of them is closed while the pipe is empty.
StayingCall splice(bool closes_pipe) {
  const HalfPair in = readHalf();
  const HalfPair out = unixHalf();
  (closes_pipe ? out : in).other->a = (closes_pipe ? out : in).fd;
  return {(closes_pipe ? in : out).fd, [in = in.fd, out = out.fd] { return told(::splice(in, nullptr, out, nullptr, 4, 0)); },
          [out, end = writing(in, "data")] {
            end();
            EXPECT_EQ(toldRead(out.other->b), "4 data");
          }};
}
StayingCall sendfile() {
  const HalfPair out = smallTcpHalf();
  const auto file = std::make_shared<Pair>(Ends{-1, ::memfd_create("bytes", 0)});
  const std::vector<char> bytes = streamBytes(kLong);
  EXPECT_EQ(::write(file->b, bytes.data(), kLong), ssize_t(kLong));
  return {out.fd,
          [fd = out.fd, file] {
            off_t offset = 0;
            return told(::sendfile(fd, file->b, &offset, kLong));
          },
          draining(out)};
}

}  // namespace

std::vector<StayingCase> stayingCases() {
  return {
      {"readUnix", [] { return reads(unixHalf()); }},
      {"readTcp", [] { return reads(tcpHalf()); }},
      {"readDatagram", [] { return reads(unixHalf(SOCK_DGRAM)); }},
      {"readPipe", [] { return reads(readHalf()); }},
      {"readTerminal", terminal},
      {"readEventfd", eventfd},
      {"readv", readv},
      {"recvWaitall", waitall},
      {"recvmsg", recvmsg},
      {"recvmmsg", recvmmsg},
      {"writeUnix", [] { return writes(unixHalf()); }},
      {"writeTcp", [] { return writes(smallTcpHalf()); }},
      {"writePipe", [] { return writes(writeHalf()); }},
      {"sendmsg", sendmsg},
      {"accept", [] { return accept(false); }},
      {"acceptShared", [] { return accept(true); }},
      {"connect", connect},
      {"poll", poll},
      {"pollWokenByAnother", pollWokenByAnother},
      {"select", select},
      {"epollWait", epollWait},
      {"spliceFromClosed", [] { return splice(true); }},
      {"spliceToClosed", [] { return splice(false); }},
      {"sendfile", sendfile},
  };
}

}  // namespace sylar::test
