// Hooked against raw: connects of a socket that is connected, is being connected, or was.
#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {
namespace {

constexpr int64_t kMomentUs = 20'000;

/// A listener of AF_UNIX with room for one connection, and a client whose connection is accepted.
struct Connected {
  Connected(Run& run, int type) : listener(run.keep(run.make.socket(AF_UNIX, type, 0))), client(another(run, type)) {
    const sockaddr_un any{.sun_family = AF_UNIX, .sun_path = {}};
    EXPECT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&any), sizeof any.sun_family), 0);  // to a free name
    EXPECT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
    EXPECT_EQ(::listen(listener, 0), 0);
    EXPECT_EQ(connect(run.call, client), 0);
    server = run.keep(run.call.accept(listener, nullptr, nullptr));
  }
  static int another(Run& run, int type) { return run.keep(run.make.socket(AF_UNIX, type, 0)); }
  int connect(const Calls& call, int fd) const { return call.connect(fd, reinterpret_cast<const sockaddr*>(&address), size); }

  int listener;
  int client;
  int server = -1;
  sockaddr_un address{};
  socklen_t size = sizeof address;
};

constexpr int kTypes[] = {SOCK_STREAM, SOCK_SEQPACKET};

/// What became of the client's first connection.
struct Fate {
  const char* name;
  void (*bring)(Run& run, const Connected& pair);
};
const Fate kFates[] = {
    {"connected", [](Run&, const Connected&) {}},
    {"peer closed", [](Run& run, const Connected& pair) { run.close(pair.server); }},
    {"peer closed with bytes",
     [](Run& run, const Connected& pair) {
       run.got("send", run.call.send(pair.client, "x", 1, 0));
       run.close(pair.server);
     }},
    {"shut down", [](Run&, const Connected& pair) { EXPECT_EQ(::shutdown(pair.client, SHUT_RDWR), 0); }},
};

template <class Room>
void againWhenFull(Run& run, Room make_room) {
  for (const int type : kTypes) {
    for (const Fate& fate : kFates) {
      const Connected pair(run, type);
      fate.bring(run, pair);
      EXPECT_EQ(pair.connect(libcCalls(), Connected::another(run, type)), 0);  // the listener is full
      make_room(run, pair);
      run.got(fate.name, pair.connect(run.call, pair.client));
      run.join();
      run.got("send", run.call.send(pair.client, "x", 1, MSG_NOSIGNAL));
    }
  }
}
void untilThereIsRoom(Run& run) {
  againWhenFull(run, [](Run& one, const Connected& pair) {
    one.whileItWaits([=](const Calls& libc) { libc.close(libc.accept(pair.listener, nullptr, nullptr)); });
  });
}
void untilTheListenerEnds(Run& run) {
  againWhenFull(run, [](Run& one, const Connected& pair) {
    const int last = libcCalls().dup(pair.listener);
    one.close(pair.listener);
    one.whileItWaits([=](const Calls& libc) { libc.close(last); });
  });
}
void untilTheTimeout(Run& run) {
  againWhenFull(run, [](Run& one, const Connected& pair) { setTimeout(one.call, pair.client, SO_SNDTIMEO, kMomentUs); });
}
void whenNonblocking(Run& run) {
  againWhenFull(run, [](Run& one, const Connected& pair) { EXPECT_EQ(one.call.fcntl(pair.client, F_SETFL, O_NONBLOCK), 0); });
}

/// The peer goes, or the connection is shut down, while the second connect waits.
void whileTheFirstEnds(Run& run) {
  for (const int type : kTypes) {
    for (const bool shuts : {false, true}) {
      const Connected pair(run, type);
      EXPECT_EQ(pair.connect(libcCalls(), Connected::another(run, type)), 0);
      const int server = libcCalls().dup(pair.server);
      run.close(pair.server);
      run.whileItWaits([=](const Calls& libc) {
        EXPECT_EQ(::shutdown(shuts ? pair.client : server, SHUT_RDWR), 0);
        libc.close(libc.accept(pair.listener, nullptr, nullptr));
        libc.close(server);
      });
      run.got("again", pair.connect(run.call, pair.client));
      run.join();
    }
  }
}

/// A listener of TCP whose backlog is full gives no answer.
void tcpWithoutAnAnswer(Run& run) {
  const int listener = run.keep(boundSocket(run.make, SOCK_STREAM, 0));
  const int first = run.keep(run.make.socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(connectTo(run.call, first, addressOf(listener)), 0);
  const int fd = run.keep(run.make.socket(AF_INET, SOCK_STREAM, 0));
  setTimeout(run.call, fd, SO_SNDTIMEO, kMomentUs);
  for (int i = 0; i < 3; ++i) run.got("connect", connectTo(run.call, fd, addressOf(listener)));
  run.got("send", run.call.send(fd, "x", 1, MSG_NOSIGNAL));
  sockaddr_in nobody{};
  nobody.sin_family = AF_UNSPEC;
  run.got("disconnect", connectTo(run.call, fd, nobody));
  run.got("connect", connectTo(run.call, fd, addressOf(listener)));
  EXPECT_EQ(run.call.fcntl(fd, F_SETFL, O_NONBLOCK), 0);
  run.got("nonblocking", connectTo(run.call, fd, addressOf(listener)));
}

void tcpAfterItsEnd(Run& run) {
  const int listener = run.keep(boundSocket(run.make, SOCK_STREAM));
  for (const bool resets : {false, true}) {
    const int fd = run.keep(run.make.socket(AF_INET, SOCK_STREAM, 0));
    run.got("connect", connectTo(run.call, fd, addressOf(listener)));
    const int server = run.call.accept(listener, nullptr, nullptr);
    if (resets) resetOnClose(server);
    run.got("close", run.call.close(server));
    run.got("again", connectTo(run.call, fd, addressOf(listener)));
    char byte;
    run.got("recv", run.call.recv(fd, &byte, 1, 0));
    EXPECT_EQ(::shutdown(fd, SHUT_RDWR), resets ? -1 : 0);
    run.got("again", connectTo(run.call, fd, addressOf(listener)));
  }
}

/// The flags of the open file stay as they are, also where a copy of the descriptor has set them.
void flagsThatACopyHasSet(Run& run) {
  const int listener = boundSocket(run.make, SOCK_STREAM);
  run.keep(listener);
  ::listen(listener, 4);
  const int fd = run.keep(run.make.socket(AF_INET, SOCK_STREAM, 0));
  const int copy = run.keep(run.call.dup(fd));
  run.call.fcntl(fd, F_SETFL, O_NONBLOCK);
  libcCalls().fcntl(copy, F_SETFL, 0);
  run.got("connect", connectTo(run.call, fd, addressOf(listener)));
  run.got("flags", run.call.fcntl(copy, F_GETFL));
  run.got("again", connectTo(run.call, fd, addressOf(listener)));
  run.got("flags", run.call.fcntl(copy, F_GETFL));
}

void unixDatagrams(Run& run) {
  const Ends pair = run.keep(makeUnix(run.make, SOCK_DGRAM));
  const Connected other(run, SOCK_STREAM);
  run.got("to a stream", other.connect(run.call, pair[0]));
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  EXPECT_EQ(::bind(pair[1], reinterpret_cast<const sockaddr*>(&name), sizeof name.sun_family), 0);
  socklen_t size = sizeof name;
  EXPECT_EQ(::getsockname(pair[1], reinterpret_cast<sockaddr*>(&name), &size), 0);
  while (libcCalls().send(pair[0], "x", 1, MSG_DONTWAIT) > 0) continue;
  for (int i = 0; i < 2; ++i) run.got("to a full one", run.call.connect(pair[0], reinterpret_cast<sockaddr*>(&name), size));
}

std::vector<Case> cases() {
  return {
      {"UntilThereIsRoom", untilThereIsRoom},
      {"UntilTheListenerEnds", untilTheListenerEnds},
      {"UntilTheTimeout", untilTheTimeout},
      {"WhenNonblocking", whenNonblocking},
      {"WhileTheFirstEnds", whileTheFirstEnds},
      {"TcpWithoutAnAnswer", tcpWithoutAnAnswer},
      {"TcpAfterItsEnd", tcpAfterItsEnd},
      {"UnixDatagrams", unixDatagrams},
      {"FlagsThatACopyHasSet", flagsThatACopyHasSet},
  };
}

class ConnectTest : public SameAsLibc {};

// HA-5
TEST_P(ConnectTest, ResultErrnoAndData) { compare(GetParam()); }

INSTANTIATE_TEST_SUITE_P(SameAsLibc, ConnectTest, testing::ValuesIn(cases()), nameOf);

}  // namespace
}  // namespace sylar::test
