// Hooked against raw: receives that wait for more than the first byte, and what ends them; descriptors in messages.
#include <netinet/tcp.h>

#include <algorithm>

#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {
namespace {

struct Kind {
  std::string name;
  Ends (*make)(const Calls& creators);
};
const Kind kStreams[] = {
    {"Tcp", makeTcp},
    {"Unix", [](const Calls& creators) { return makeUnix(creators, SOCK_STREAM); }},
};

/// The calls that receive from a stream.
struct Receiver {
  std::string name;
  ssize_t (*receive)(const Calls& call, int fd, char* buffer, size_t size, int flags);
  bool takes_flags;
};

ssize_t byMessage(const Calls& call, int fd, char* buffer, size_t size, int flags) {
  const size_t cut = size / 3;
  iovec parts[3] = {{buffer, cut}, {buffer + cut, 0}, {buffer + cut, size - cut}};
  alignas(cmsghdr) char control[128];
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 3;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = call.recvmsg(fd, &message, flags);
  if (n >= 0) {
    EXPECT_EQ(message.msg_controllen, 0u);
    EXPECT_EQ(message.msg_flags & ~MSG_CMSG_CLOEXEC, 0);
  }
  return n;
}

const Receiver kReceivers[] = {
    {"recv", [](const Calls& call, int fd, char* b, size_t n, int flags) { return call.recv(fd, b, n, flags); }, true},
    {"recvfrom",
     [](const Calls& call, int fd, char* b, size_t n, int flags) {
       sockaddr_storage from{};
       socklen_t size = sizeof from;
       return call.recvfrom(fd, b, n, flags, reinterpret_cast<sockaddr*>(&from), &size);
     },
     true},
    {"recvmsg", byMessage, true},
    {"read", [](const Calls& call, int fd, char* b, size_t n, int) { return call.read(fd, b, n); }, false},
    {"readv",
     [](const Calls& call, int fd, char* b, size_t n, int) {
       const iovec parts[2] = {{b, n / 2}, {b + n / 2, n - n / 2}};
       return call.readv(fd, parts, 2);
     },
     false},
};

void receive(Run& run, const Receiver& by, int fd, size_t size, int flags) {
  std::string buffer(size, '#');
  const ssize_t n = by.receive(run.call, fd, buffer.data(), size, flags);
  run.got(by.name, n);
  run.note("buffer", buffer);
}

constexpr int kAll = MSG_WAITALL;
constexpr int kAllPeeked = MSG_WAITALL | MSG_PEEK;

/// Writes the pieces with a moment between them, from the other side.
void laterInPieces(Run& run, int fd, std::vector<std::string> pieces) {
  run.later([=](const Calls& libc) {
    for (const std::string& piece : pieces) {
      libc.write(fd, piece.data(), piece.size());
      libc.usleep(3000);
    }
  });
}

using Body = void (*)(Run& run, const Kind& kind);

void withFlags(Run& run, const Kind& kind, int flags) {
  // A peek on AF_UNIX gives what is there when it looks, as one without MSG_WAITALL does.
  const bool any_will_do = (flags & MSG_WAITALL) == 0 || ((flags & MSG_PEEK) != 0 && kind.name == "Unix");
  for (const Receiver& by : kReceivers) {
    if (!by.takes_flags) continue;
    const Ends ends = run.keep(kind.make(run.make));
    laterInPieces(run, ends[1],
                  any_will_do ? std::vector<std::string>{"abcdefghij"} : std::vector<std::string>{"ab", "cde", "fghij"});
    receive(run, by, ends[0], 9, flags);
    run.join();
    receive(run, by, ends[0], 10, MSG_DONTWAIT);
    libcCalls().write(ends[1], "12", 2);  // some wait already
    if (!any_will_do) laterInPieces(run, ends[1], {"34", "5678"});
    receive(run, by, ends[0], 6, flags);
    run.join();
    receive(run, by, ends[0], 10, MSG_DONTWAIT);
  }
}
void all(Run& run, const Kind& kind) { withFlags(run, kind, MSG_WAITALL); }
void allPeeked(Run& run, const Kind& kind) { withFlags(run, kind, MSG_WAITALL | MSG_PEEK); }
void allThrownAway(Run& run, const Kind& kind) { withFlags(run, kind, MSG_WAITALL | MSG_TRUNC); }
void peeked(Run& run, const Kind& kind) { withFlags(run, kind, MSG_PEEK); }

void untilTheEnd(Run& run, const Kind& kind) {
  for (const Receiver& by : kReceivers) {
    for (const int flags : {kAll, kAllPeeked}) {
      const Ends ends = run.keep(kind.make(run.make));
      run.later([=](const Calls& libc) {
        libc.write(ends[1], "short", 5);
        libc.usleep(3000);
        ::shutdown(ends[1], SHUT_WR);
      });
      if (by.takes_flags) receive(run, by, ends[0], 11, flags);
      run.join();
      receive(run, by, ends[0], 11, flags);  // the end is there already
      receive(run, by, ends[0], 11, flags);
      receive(run, by, ends[0], 0, flags);
    }
  }
}

void untilTheTimeout(Run& run, const Kind& kind) {
  for (const Receiver& by : kReceivers) {
    if (!by.takes_flags) continue;
    for (const int flags : {kAll, kAllPeeked}) {
      const Ends ends = run.keep(kind.make(run.make));
      setTimeout(run.call, ends[0], SO_RCVTIMEO, 15'000);
      libcCalls().write(ends[1], "short", 5);
      receive(run, by, ends[0], 11, flags);
      receive(run, by, ends[0], 11, flags);
      receive(run, by, ends[0], 11, flags);
    }
  }
}

void nonblocking(Run& run, const Kind& kind) {
  for (const Receiver& by : kReceivers) {
    const Ends ends = run.keep(kind.make(run.make));
    run.got("F_SETFL", run.call.fcntl(run.keep(run.make.dup(ends[0])), F_SETFL, O_NONBLOCK));
    receive(run, by, ends[0], 11, MSG_WAITALL);
    libcCalls().write(ends[1], "short", 5);
    receive(run, by, ends[0], 11, MSG_WAITALL | MSG_PEEK);
    receive(run, by, ends[0], 11, MSG_WAITALL);
  }
}

void ofSizeZero(Run& run, const Kind& kind) {
  for (const Receiver& by : kReceivers) {
    const Ends ends = run.keep(kind.make(run.make));
    laterInPieces(run, ends[1], {"x"});
    receive(run, by, ends[0], 0, MSG_WAITALL);
    run.join();
    receive(run, by, ends[0], 0, MSG_WAITALL | MSG_PEEK);
    receive(run, by, ends[0], 4, MSG_DONTWAIT | MSG_PEEK);
  }
}

// CD-H1: the mark of SO_RCVLOWAT, in all that it may meet.
void lowWaterMark(Run& run, const Kind& kind) {
  for (const Receiver& by : kReceivers) {
    const Ends ends = run.keep(kind.make(run.make));
    const int mark = 6;
    run.got("SO_RCVLOWAT", run.call.setsockopt(ends[0], SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark));
    laterInPieces(run, ends[1], {"four", "and more"});  // the kernel does not count what it has copied: enough without
    receive(run, by, ends[0], 16, 0);
    run.join();
    libcCalls().write(ends[1], "four", 4);  // some wait already
    receive(run, by, ends[0], 3, 0);        // no more than there is room for
    laterInPieces(run, ends[1], {"1234567"});
    receive(run, by, ends[0], 16, 0);
    run.join();
    libcCalls().write(ends[1], "four", 4);
    if (by.takes_flags) receive(run, by, ends[0], 16, MSG_DONTWAIT);
  }
}
void lowWaterMarkEnds(Run& run, const Kind& kind) {
  for (const Receiver& by : kReceivers) {
    const Ends ends = run.keep(kind.make(run.make));
    const int mark = 6;
    run.got("SO_RCVLOWAT", run.call.setsockopt(ends[0], SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark));
    libcCalls().write(ends[1], "four", 4);
    setTimeout(run.call, ends[0], SO_RCVTIMEO, 10'000);
    receive(run, by, ends[0], 16, 0);
    receive(run, by, ends[0], 16, 0);
    setTimeout(run.call, ends[0], SO_RCVTIMEO, 0);
    libcCalls().write(ends[1], "end", 3);
    run.later([=](const Calls&) { ::shutdown(ends[1], SHUT_WR); });
    receive(run, by, ends[0], 16, 0);
    receive(run, by, ends[0], 16, 0);
    run.join();
  }
}
void lowWaterMarkTakenBack(Run& run, const Kind& kind) {
  const Ends ends = run.keep(kind.make(run.make));
  for (const int mark : {100, 1}) {
    run.got("SO_RCVLOWAT", run.call.setsockopt(ends[0], SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark));
  }
  for (const Receiver& by : kReceivers) {
    laterInPieces(run, ends[1], {"few"});
    receive(run, by, ends[0], 16, 0);
    run.join();
  }
}

/// A descriptor that was made non-blocking without hooks is found to be so when the rest is waited for.
void lowWaterMarkNonblocking(Run& run, const Kind& kind) {
  for (const Receiver& by : kReceivers) {
    const Ends ends = run.keep(kind.make(run.make));
    const int mark = 100;
    run.got("SO_RCVLOWAT", run.call.setsockopt(ends[0], SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark));
    run.make.fcntl(ends[0], F_SETFL, O_NONBLOCK);
    libcCalls().write(ends[1], "few", 3);
    receive(run, by, ends[0], 16, 0);
    receive(run, by, ends[0], 16, 0);
  }
}

/// What is received up to the mark of an urgent byte ends the wait for all.
void upToAnUrgentByte(Run& run, const Kind& kind) {
  for (const Receiver& by : kReceivers) {
    if (!by.takes_flags) continue;
    const Ends ends = run.keep(kind.make(run.make));
    libcCalls().send(ends[1], "ab", 2, 0);
    libcCalls().send(ends[1], "!", 1, MSG_OOB);
    libcCalls().send(ends[1], "cd", 2, 0);
    libcCalls().usleep(1000);
    receive(run, by, ends[0], 4, MSG_WAITALL);
    char urgent = 0;
    run.got("urgent", run.call.recv(ends[0], &urgent, 1, MSG_OOB));
    run.note("urgent", std::string(1, urgent));
    receive(run, by, ends[0], 2, MSG_WAITALL);
    run.got("none", run.call.recv(ends[0], &urgent, 1, MSG_OOB));
  }
}

// CD-H3: what Linux makes of a negative timeout: it waits for nothing.
void negativeTimeout(Run& run, const Kind& kind) {
  const Ends ends = run.keep(kind.make(run.make));
  const timeval negative{-1, 0};
  char byte;
  run.got("SO_RCVTIMEO", run.call.setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &negative, sizeof negative));
  run.got("SO_SNDTIMEO", run.call.setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &negative, sizeof negative));
  for (const Receiver& by : kReceivers) receive(run, by, ends[0], 4, 0);
  libcCalls().write(ends[1], "x", 1);
  run.got("recv", run.call.recv(ends[0], &byte, 1, 0));
  std::vector<char> bytes(4096);
  ssize_t n;
  for (int i = 0; i < 100'000 && (n = run.call.send(ends[0], bytes.data(), bytes.size(), 0)) > 0; ++i) continue;
  run.got("send into a full one", n);
  setTimeout(run.call, ends[0], SO_RCVTIMEO, 0);
  laterInPieces(run, ends[1], {"x"});
  run.got("recv", run.call.recv(ends[0], &byte, 1, 0));
  run.join();
  run.got("SO_RCVTIMEO", run.call.setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &negative, sizeof negative));
  const int copy = run.keep(run.make.dup(ends[0]));
  run.got("recv", run.call.recv(ends[0], &byte, 1, 0));
  run.note("copy", copy >= 0 ? "made" : "not");
}

/// A long write that its timeout ends gives what went out.
void sendTimesOutHalfWay(Run& run, const Kind& kind) {
  const Ends ends = run.keep(kind.make(run.make));
  setBuffer(ends[1], SO_SNDBUF, 4096);
  setTimeout(run.call, ends[1], SO_SNDTIMEO, 20'000);
  std::vector<char> bytes(16 << 20);
  const ssize_t n = run.call.send(ends[1], bytes.data(), bytes.size(), 0);
  run.note("send", n > 0 && n < ssize_t(bytes.size()) ? "a part" : std::to_string(n));
}

// ---- Descriptors in messages. -------------------------------------------------------------------------------------------------

/// Sends `text` and, if `passenger` >= 0, that descriptor.
void sendWith(const Calls& call, int fd, const std::string& text, int passenger) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (passenger >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    *rights = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(rights), &passenger, sizeof passenger);
  }
  EXPECT_EQ(call.sendmsg(fd, &message, 0), ssize_t(text.size()));
}

/// Receives all of `size`; closes what came with it.
void receiveWith(Run& run, int fd, size_t size, int flags, size_t room = 128) {
  std::string buffer(size, '#');
  iovec part{buffer.data(), size};
  alignas(cmsghdr) char control[128] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room > 0 ? control : nullptr;
  message.msg_controllen = room;
  run.got("recvmsg", run.call.recvmsg(fd, &message, flags));
  run.note("buffer", buffer);
  run.note("flags", std::to_string(message.msg_flags));
  run.note("control", std::to_string(message.msg_controllen));
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
    run.note("type", std::to_string(one->cmsg_type));
    if (one->cmsg_type != SCM_RIGHTS) continue;
    int received = -1;
    std::memcpy(&received, CMSG_DATA(one), sizeof received);
    run.got("close", run.call.close(received));
  }
}

/// Descriptors end a piece, wherever in the stream they come.
void allWithDescriptors(Run& run) {
  const Ends passenger = run.keep(makePipe(run.make));
  for (const int flags : {kAll, kAllPeeked, 0}) {
    for (const size_t room : {128, 0}) {
      for (const bool now : {true, false}) {
        const Ends ends = run.keep(makeUnix(run.make, SOCK_STREAM));
        const auto send = [=](const Calls& libc) {
          sendWith(libc, ends[1], "abc", -1);
          if (!now) libc.usleep(3000);
          sendWith(libc, ends[1], "def", passenger[0]);
          if (!now) libc.usleep(3000);
          sendWith(libc, ends[1], "ghi", -1);
          ::shutdown(ends[1], SHUT_WR);
        };
        if (now) {
          send(libcCalls());
        } else {
          if (flags != kAll) continue;  // depends on when it looks
          run.later(send);
        }
        for (int i = 0; i < 3; ++i) receiveWith(run, ends[0], 8, flags, room);
        run.join();
      }
    }
  }
}

/// The same when the receiver does not even ask for them.
void allOfRecvWithDescriptors(Run& run) {
  const Ends passenger = run.keep(makePipe(run.make));
  const Ends ends = run.keep(makeUnix(run.make, SOCK_STREAM));
  sendWith(libcCalls(), ends[1], "abc", -1);
  sendWith(libcCalls(), ends[1], "def", passenger[0]);
  sendWith(libcCalls(), ends[1], "ghi", -1);
  ::shutdown(ends[1], SHUT_WR);
  for (int i = 0; i < 3; ++i) receive(run, kReceivers[0], ends[0], 8, MSG_WAITALL);
}

void allWithCredentials(Run& run) {
  const Ends ends = run.keep(makeUnix(run.make, SOCK_STREAM));
  const int on = 1;
  run.got("SO_PASSCRED", run.call.setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
  laterInPieces(run, ends[1], {"abc", "def", "ghi"});
  receiveWith(run, ends[0], 6, MSG_WAITALL);
  receive(run, kReceivers[0], ends[0], 3, MSG_WAITALL);
  run.join();
}

/// With SO_PEEK_OFF each peek goes on where the last one ended.
void peekOffset(Run& run) {
  const Ends ends = run.keep(makeUnix(run.make, SOCK_STREAM));
  const int from = 0;
  run.got("SO_PEEK_OFF", run.call.setsockopt(ends[0], SOL_SOCKET, SO_PEEK_OFF, &from, sizeof from));
  laterInPieces(run, ends[1], {"abcdefghi"});
  receive(run, kReceivers[0], ends[0], 5, MSG_WAITALL | MSG_PEEK);
  receive(run, kReceivers[0], ends[0], 4, MSG_WAITALL | MSG_PEEK);
  run.join();
  receive(run, kReceivers[0], ends[0], 9, MSG_WAITALL);
}

void badMessages(Run& run) {
  const Ends ends = run.keep(makeUnix(run.make, SOCK_STREAM));
  libcCalls().write(ends[1], "abcdef", 6);
  for (const int flags : {0, kAll, kAllPeeked, int{MSG_OOB}}) {
    run.got("message", run.call.recvmsg(ends[0], static_cast<msghdr*>(badPointer()), flags));
    msghdr message{};
    message.msg_iov = static_cast<iovec*>(badPointer());
    message.msg_iovlen = 2;
    run.got("vector", run.call.recvmsg(ends[0], &message, flags));
    message.msg_iovlen = 1 << 20;
    run.got("long vector", run.call.recvmsg(ends[0], &message, flags));
    iovec part{badPointer(), 4};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    run.got("buffer", run.call.recvmsg(ends[0], &message, flags));
    run.got("recv", run.call.recv(ends[0], badPointer(), 4, flags));
  }
  char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{control, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = badPointer();
  message.msg_controllen = 64;
  run.got("sendmsg with bad control", run.call.sendmsg(ends[1], &message, 0));
}

/// Addresses that the kernel cannot write: it takes the data first, and then says so.
void badAddresses(Run& run) {
  for (const Kind& kind : kStreams) {
    const Ends ends = run.keep(kind.make(run.make));
    auto* const bad = static_cast<sockaddr*>(badPointer());
    auto* const bad_size = static_cast<socklen_t*>(badPointer());
    sockaddr_storage from{};
    char buffer[32];
    socklen_t negative = static_cast<socklen_t>(opaque(-1));
    for (const int flags : {0, kAll, kAllPeeked}) {
      libcCalls().write(ends[1], "abcdefghijklmnop", 16);
      run.got("size", run.call.recvfrom(ends[0], buffer, 4, flags, reinterpret_cast<sockaddr*>(&from), bad_size));
      run.got("negative", run.call.recvfrom(ends[0], buffer, 4, flags, reinterpret_cast<sockaddr*>(&from), &negative));
      run.got("both", run.call.recvfrom(ends[0], buffer, 4, flags, bad, bad_size));
      run.got("rest", run.call.recv(ends[0], buffer, sizeof buffer, MSG_DONTWAIT));
    }
  }
}

std::vector<Case> receiveCases() {
  struct Situation {
    std::string name;
    Body body;
  };
  const Situation situations[] = {
      {"All", all},
      {"AllPeeked", allPeeked},
      {"AllThrownAway", allThrownAway},
      {"Peeked", peeked},
      {"UntilTheEnd", untilTheEnd},
      {"UntilTheTimeout", untilTheTimeout},
      {"Nonblocking", nonblocking},
      {"OfSizeZero", ofSizeZero},
      {"LowWaterMark", lowWaterMark},
      {"LowWaterMarkEnds", lowWaterMarkEnds},
      {"LowWaterMarkTakenBack", lowWaterMarkTakenBack},
      {"LowWaterMarkNonblocking", lowWaterMarkNonblocking},
      {"UpToAnUrgentByte", upToAnUrgentByte},
      {"NegativeTimeout", negativeTimeout},
      {"SendTimesOutHalfWay", sendTimesOutHalfWay},
  };
  std::vector<Case> cases = {
      {"AllWithDescriptors", allWithDescriptors},
      {"AllOfRecvWithDescriptors", allOfRecvWithDescriptors},
      {"AllWithCredentials", allWithCredentials},
      {"PeekOffset", peekOffset},
      {"BadMessages", badMessages},
      {"BadAddresses", badAddresses},
  };
  for (const Kind& kind : kStreams) {
    for (const Situation& one : situations) {
      cases.push_back({kind.name + one.name, [&kind, body = one.body](Run& run) { body(run, kind); }});
    }
  }
  return cases;
}

class ReceiveTest : public SameAsLibc {};

// HA-5
TEST_P(ReceiveTest, ResultErrnoAndData) { compare(GetParam()); }

INSTANTIATE_TEST_SUITE_P(SameAsLibc, ReceiveTest, testing::ValuesIn(receiveCases()), nameOf);

}  // namespace
}  // namespace sylar::test
