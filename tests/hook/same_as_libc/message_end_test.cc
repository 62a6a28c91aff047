// Hooked against raw: receives of whole messages whose reading is shut down.
#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {
namespace {

struct MessageKind {
  std::string name;
  Ends (*make)(const Calls& creators);
};
const MessageKind kMessageKinds[] = {
    {"Udp", makeUdp},
    {"UdpUnconnected",
     [](const Calls& creators) {
       return Ends{boundSocket(creators, SOCK_DGRAM), boundSocket(creators, SOCK_DGRAM)};
     }},
    {"UnixDatagram", [](const Calls& creators) { return makeUnix(creators, SOCK_DGRAM); }},
    {"UnixPackets", [](const Calls& creators) { return makeUnix(creators, SOCK_SEQPACKET); }},
};

struct Receive {
  std::string name;
  void (*make)(Run& run, int fd);
};
const Receive kReceives[] = {
    {"Recv",
     [](Run& run, int fd) {
       char buffer[8];
       run.got("recv", run.call.recv(fd, buffer, sizeof buffer, 0));
     }},
    {"RecvPeeked",
     [](Run& run, int fd) {
       char buffer[8];
       run.got("recv", run.call.recv(fd, buffer, sizeof buffer, MSG_PEEK));
     }},
    {"Recvfrom",
     [](Run& run, int fd) {
       char buffer[8];
       sockaddr_storage from{};
       socklen_t size = sizeof from;
       run.got("recvfrom", run.call.recvfrom(fd, buffer, sizeof buffer, 0, reinterpret_cast<sockaddr*>(&from), &size));
       run.got("address size", size);
     }},
    {"Recvmsg",
     [](Run& run, int fd) {
       char buffer[8];
       char control[64];
       iovec part{buffer, sizeof buffer};
       msghdr message{};
       message.msg_iov = &part;
       message.msg_iovlen = 1;
       message.msg_control = control;
       message.msg_controllen = sizeof control;
       run.got("recvmsg", run.call.recvmsg(fd, &message, 0));
       run.got("control size", static_cast<ssize_t>(message.msg_controllen));
       run.got("flags", message.msg_flags);
     }},
    {"Recvmmsg",
     [](Run& run, int fd) {
       char buffer[8];
       iovec part{buffer, sizeof buffer};
       mmsghdr messages[2]{};
       messages[0].msg_hdr.msg_iov = messages[1].msg_hdr.msg_iov = &part;
       messages[0].msg_hdr.msg_iovlen = messages[1].msg_hdr.msg_iovlen = 1;
       run.got("recvmmsg", run.call.recvmmsg(fd, messages, 2, MSG_WAITFORONE, nullptr));
       run.got("bytes", static_cast<ssize_t>(messages[0].msg_len));
     }},
    {"Read",
     [](Run& run, int fd) {
       char buffer[8];
       run.got("read", run.call.read(fd, buffer, sizeof buffer));
     }},
    {"Readv",
     [](Run& run, int fd) {
       char buffer[8];
       iovec part{buffer, sizeof buffer};
       run.got("readv", run.call.readv(fd, &part, 1));
     }},
};

/// Each receive with the end before it and during it, once more after the end, and with a limit that never comes.
void endOfMessages(Run& run, const MessageKind& kind, const Receive& receive) {
  for (const int how : {SHUT_RD, SHUT_RDWR}) {
    for (const bool limited : {false, true}) {
      const Ends before = run.keep(kind.make(run.make));
      if (limited) setTimeout(run.make, before[0], SO_RCVTIMEO, 60'000'000);
      run.note("shutdown", ::shutdown(before[0], how) == 0 ? "done" : "ENOTCONN");
      receive.make(run, before[0]);
      receive.make(run, before[0]);

      const Ends during = run.keep(kind.make(run.make));
      if (limited) setTimeout(run.make, during[0], SO_RCVTIMEO, 60'000'000);
      run.later([fd = during[0], how](const Calls&) { ::shutdown(fd, how); });
      receive.make(run, during[0]);
      run.join();
      receive.make(run, during[0]);
    }
  }
}

/// What came before the end is still given.
void messagesBeforeTheEnd(Run& run, const MessageKind& kind, const Receive& receive) {
  const Ends ends = run.keep(kind.make(run.make));
  const sockaddr_in to = kind.name == "UdpUnconnected" ? addressOf(ends[0]) : sockaddr_in{};
  const auto* const address = to.sin_family == 0 ? nullptr : reinterpret_cast<const sockaddr*>(&to);
  run.later([=](const Calls& libc) {
    libc.sendto(ends[1], "abc", 3, 0, address, address == nullptr ? 0 : sizeof to);
    libc.sendto(ends[1], "de", 2, 0, address, address == nullptr ? 0 : sizeof to);
    ::shutdown(ends[0], SHUT_RD);
  });
  run.join();
  for (int i = 0; i < 3; ++i) receive.make(run, ends[0]);
}

/// A receive that may not wait is not told of the end.
void endWithoutWaiting(Run& run, const MessageKind& kind, const Receive& receive) {
  const Ends ends = run.keep(kind.make(run.make));
  const int copy = run.keep(run.call.dup(ends[0]));
  ::shutdown(ends[0], SHUT_RDWR);
  run.call.fcntl(copy, F_SETFL, O_NONBLOCK);
  receive.make(run, ends[0]);
  run.call.fcntl(copy, F_SETFL, 0);
  setTimeout(run.make, ends[0], SO_RCVTIMEO, 1000);
  receive.make(run, ends[0]);
}

/// A receive that waits when its descriptor becomes non-blocking is told of the end. One that begins later is not.
void endOfOneThatMayWaitNoMore(Run& run, const MessageKind& kind, const Receive& receive) {
  const Ends ends = run.keep(kind.make(run.make));
  run.whileItWaits([fd = ends[0]](const Calls& libc) {
    libc.fcntl(fd, F_SETFL, O_NONBLOCK);
    ::shutdown(fd, SHUT_RD);
  });
  receive.make(run, ends[0]);
  run.join();
  receive.make(run, ends[0]);
}

std::vector<Case> cases() {
  using Body = void (*)(Run & run, const MessageKind& kind, const Receive& receive);
  const std::pair<std::string, Body> situations[] = {{"Ends", endOfMessages},
                                                     {"GivesWhatCameBefore", messagesBeforeTheEnd},
                                                     {"WithoutWaiting", endWithoutWaiting},
                                                     {"EndsOneThatMayWaitNoMore", endOfOneThatMayWaitNoMore}};
  std::vector<Case> all;
  for (const MessageKind& kind : kMessageKinds) {
    for (const Receive& receive : kReceives) {
      for (const auto& [name, body] : situations) {
        all.push_back({kind.name + receive.name + name, [&kind, &receive, body = body](Run& run) { body(run, kind, receive); }});
      }
    }
  }
  return all;
}

class MessageEndTest : public SameAsLibc {};

// HA-5
TEST_P(MessageEndTest, ResultErrnoAndData) { compare(GetParam()); }

INSTANTIATE_TEST_SUITE_P(SameAsLibc, MessageEndTest, testing::ValuesIn(cases()), nameOf);

}  // namespace
}  // namespace sylar::test
