// Hooked against raw: the calls that transfer bytes, on every kind of descriptor.
#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {
namespace {

// ---- Kinds of descriptors, and the calls that there are for each. -------------------------------------------------------------

struct Kind {
  std::string name;
  Ends (*make)(const Calls& creators);
  bool is_socket;
  bool has_messages;
  bool has_end;  ///< the reader is told when the writer is gone
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"Tcp", makeTcp, true, false, true},
      {"UnixStream", [](const Calls& creators) { return makeUnix(creators, SOCK_STREAM); }, true, false, true},
      {"UnixDatagram", [](const Calls& creators) { return makeUnix(creators, SOCK_DGRAM); }, true, true, false},
      {"SeqPacket", [](const Calls& creators) { return makeUnix(creators, SOCK_SEQPACKET); }, true, true, true},
      {"Udp", makeUdp, true, true, false},
      {"Pipe", makePipe, false, false, true},
  };
  return all;
}

struct Receiver {
  std::string name;
  ssize_t (*receive)(const Calls& call, int fd, void* buffer, size_t size, int flags);
  bool for_sockets;
};

ssize_t receiveMessage(const Calls& call, int fd, void* buffer, size_t size, int flags) {
  iovec part{buffer, size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return call.recvmsg(fd, &message, flags);
}

std::vector<Receiver> receiversOf(const Kind& kind) {
  std::vector<Receiver> all = {
      {"read", [](const Calls& call, int fd, void* b, size_t n, int) { return call.read(fd, b, n); }, false},
      {"readv",
       [](const Calls& call, int fd, void* b, size_t n, int) {
         const iovec parts[2] = {{b, n / 2}, {static_cast<char*>(b) + n / 2, n - n / 2}};
         return call.readv(fd, parts, 2);
       },
       false},
      {"recv", [](const Calls& call, int fd, void* b, size_t n, int flags) { return call.recv(fd, b, n, flags); }, true},
      {"recvfrom",
       [](const Calls& call, int fd, void* b, size_t n, int flags) {
         sockaddr_storage from{};
         socklen_t size = sizeof from;
         return call.recvfrom(fd, b, n, flags, reinterpret_cast<sockaddr*>(&from), &size);
       },
       true},
      {"recvmsg", receiveMessage, true},
  };
  std::erase_if(all, [&](const Receiver& one) { return one.for_sockets && !kind.is_socket; });
  return all;
}

struct Sender {
  std::string name;
  ssize_t (*send)(const Calls& call, int fd, const void* data, size_t size, int flags);
  bool for_sockets;
};

ssize_t sendMessage(const Calls& call, int fd, const void* data, size_t size, int flags) {
  iovec part{const_cast<void*>(data), size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return call.sendmsg(fd, &message, flags);
}

std::vector<Sender> sendersOf(const Kind& kind) {
  std::vector<Sender> all = {
      {"write", [](const Calls& call, int fd, const void* b, size_t n, int) { return call.write(fd, b, n); }, false},
      {"writev",
       [](const Calls& call, int fd, const void* b, size_t n, int) {
         char* const bytes = static_cast<char*>(const_cast<void*>(b));
         const iovec parts[3] = {{bytes, n / 2}, {bytes, 0}, {bytes + n / 2, n - n / 2}};
         return call.writev(fd, parts, 3);
       },
       false},
      {"send", [](const Calls& call, int fd, const void* b, size_t n, int flags) { return call.send(fd, b, n, flags); }, true},
      {"sendto",
       [](const Calls& call, int fd, const void* b, size_t n, int flags) { return call.sendto(fd, b, n, flags, nullptr, 0); },
       true},
      {"sendmsg", sendMessage, true},
  };
  std::erase_if(all, [&](const Sender& one) { return one.for_sockets && !kind.is_socket; });
  return all;
}

void feed(int fd, const std::string& text) {
  ASSERT_EQ(libcCalls().write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

/// Receives, and writes down result and data.
void receive(Run& run, const Receiver& by, int fd, size_t size, int flags = 0) {
  std::vector<char> buffer(size + 1, '#');
  const ssize_t n = by.receive(run.call, fd, buffer.data(), size, flags);
  run.got(by.name, n);
  run.note("buffer", std::string(buffer.begin(), buffer.end() - 1));
}

/// What still waits to be read, without waiting for more.
void noteRest(Run& run, int fd) {
  libcCalls().fcntl(fd, F_SETFL, O_NONBLOCK);
  for (int i = 0; i < 20; ++i) {
    char buffer[64] = {};
    const ssize_t n = libcCalls().read(fd, buffer, sizeof buffer);
    run.got("rest", n);
    if (n < 0) return;
    run.note("rest", std::string(buffer, static_cast<size_t>(n)));
    if (n == 0 && i > 3) return;
  }
}

using KindBody = void (*)(Run& run, const Kind& kind, Ends ends);

// ---- Receiving. ---------------------------------------------------------------------------------------------------------------

void dataThatWaits(Run& run, const Kind& kind, Ends ends) {
  for (const Receiver& by : receiversOf(kind)) {
    feed(ends[1], "0123456789");
    receive(run, by, ends[0], 16);
    feed(ends[1], "abcdefghij");
    receive(run, by, ends[0], 4);  // a message loses the rest, a stream keeps it
    if (!kind.has_messages) receive(run, by, ends[0], 16);
  }
}

void dataThatComesLater(Run& run, const Kind& kind, Ends ends) {
  for (const Receiver& by : receiversOf(kind)) {
    run.later([=](const Calls& libc) { libc.write(ends[1], "later", 5); });
    receive(run, by, ends[0], 16);
    run.join();
  }
}

void nothingIntoABufferOfSizeZero(Run& run, const Kind& kind, Ends ends) {
  for (const Receiver& by : receiversOf(kind)) {
    feed(ends[1], "full");
    run.got(by.name, by.receive(run.call, ends[0], badPointer(), 0, 0));
    const int flags = libcCalls().fcntl(ends[0], F_GETFL);
    noteRest(run, ends[0]);  // recv takes a message away, read does not
    libcCalls().fcntl(ends[0], F_SETFL, flags);
  }
}

/// A read of no bytes gives 0 at once, where recv waits.
void nothingFromAnEmptyOne(Run& run, const Kind&, Ends ends) {
  run.got("read", run.call.read(ends[0], badPointer(), 0));
  const iovec part{badPointer(), 0};
  run.got("readv", run.call.readv(ends[0], &part, 1));
}

void anEmptyMessage(Run& run, const Kind& kind, Ends ends) {
  for (const Receiver& by : receiversOf(kind)) {
    libcCalls().send(ends[1], nullptr, 0, 0);
    libcCalls().send(ends[1], "x", 1, 0);
    receive(run, by, ends[0], 8);
    receive(run, by, ends[0], 8);
  }
}

void theEndAfterTheLastBytes(Run& run, const Kind& kind, Ends ends) {
  feed(ends[1], "last");
  run.close(ends[1]);
  for (const Receiver& by : receiversOf(kind)) receive(run, by, ends[0], 16);
}

void theEndThatComesLater(Run& run, const Kind& kind, Ends) {
  for (const Receiver& by : receiversOf(kind)) {
    const Ends ends = run.keep(kind.make(run.make));
    if (kind.is_socket) {
      run.later([=](const Calls&) { ::shutdown(ends[1], SHUT_WR); });
      receive(run, by, ends[0], 16);
      run.got("write after the peer's end", run.call.write(ends[0], "still", 5));  // half closed
      receive(run, by, ends[1], 16);
    } else {
      const int writer = libcCalls().dup(ends[1]);
      run.close(ends[1]);
      run.later([=](const Calls& libc) { libc.close(writer); });
      receive(run, by, ends[0], 16);
    }
    run.join();
  }
}

void ourOwnShutdown(Run& run, const Kind& kind, Ends) {
  for (const Receiver& by : receiversOf(kind)) {
    const Ends ends = run.keep(kind.make(run.make));
    run.later([=](const Calls&) { ::shutdown(ends[0], SHUT_RD); });
    receive(run, by, ends[0], 16);
    run.join();
  }
}

void aResetThatComesLater(Run& run, const Kind& kind, Ends) {
  for (const Receiver& by : receiversOf(kind)) {
    const Ends ends = run.keep(kind.make(run.make));
    const int peer = libcCalls().dup(ends[1]);
    run.close(ends[1]);
    run.later([=](const Calls& libc) {
      resetOnClose(peer);
      libc.close(peer);
    });
    receive(run, by, ends[0], 16);
    run.join();
    receive(run, by, ends[0], 16);
    run.got("write", run.call.write(ends[0], "x", 1));
    run.got("write", run.call.write(ends[0], "x", 1));
  }
}

void aBadPointer(Run& run, const Kind& kind, Ends ends) {
  for (const Receiver& by : receiversOf(kind)) {
    feed(ends[1], "data");
    run.got(by.name, by.receive(run.call, ends[0], badPointer(), 16, 0));
    const int flags = libcCalls().fcntl(ends[0], F_GETFL);
    noteRest(run, ends[0]);
    libcCalls().fcntl(ends[0], F_SETFL, flags);
  }
}

void aBadVector(Run& run, const Kind& kind, Ends ends) {
  auto* const parts = static_cast<const iovec*>(badPointer());
  run.got("readv", run.call.readv(ends[0], parts, 2));
  run.got("writev", run.call.writev(ends[1], parts, 2));
  const iovec none{};
  run.got("readv of no parts", run.call.readv(ends[0], &none, 0));
  run.got("writev of no parts", run.call.writev(ends[1], &none, 0));
  run.got("readv of -1 parts", run.call.readv(ends[0], &none, opaque(-1)));
  run.got("writev of -1 parts", run.call.writev(ends[1], &none, opaque(-1)));
  const std::vector<iovec> many(1025);
  run.got("readv of too many", run.call.readv(ends[0], many.data(), 1025));
  run.got("writev of too many", run.call.writev(ends[1], many.data(), 1025));
  if (!kind.is_socket) return;
  run.got("recvmsg", run.call.recvmsg(ends[0], static_cast<msghdr*>(badPointer()), 0));
  run.got("sendmsg", run.call.sendmsg(ends[1], static_cast<msghdr*>(badPointer()), 0));
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = 2;
  run.got("recvmsg", run.call.recvmsg(ends[0], &message, 0));
  run.got("sendmsg", run.call.sendmsg(ends[1], &message, 0));
}

// Nonblocking by the user's will, in the four ways in which he can say so.
void noteNonblocking(Run& run, const Kind& kind, Ends ends) {
  for (const Receiver& by : receiversOf(kind)) receive(run, by, ends[0], 8);
  run.got("F_GETFL", run.call.fcntl(ends[0], F_GETFL) & O_NONBLOCK);
}
void nonblockingByFcntl(Run& run, const Kind& kind, Ends ends) {
  run.got("F_SETFL", run.call.fcntl(ends[0], F_SETFL, O_NONBLOCK));
  noteNonblocking(run, kind, ends);
  run.got("F_SETFL", run.call.fcntl(ends[0], F_SETFL, 0));
  dataThatComesLater(run, kind, ends);
}
void nonblockingByIoctl(Run& run, const Kind& kind, Ends ends) {
  int on = 1;
  run.got("FIONBIO", run.call.ioctl(ends[0], FIONBIO, &on));
  noteNonblocking(run, kind, ends);
  on = 0;
  run.got("FIONBIO", run.call.ioctl(ends[0], FIONBIO, &on));
  dataThatComesLater(run, kind, ends);
}
void nonblockingThroughACopy(Run& run, const Kind& kind, Ends ends) {
  const int copy = run.keep(run.make.dup(ends[0]));
  run.got("F_SETFL", run.call.fcntl(copy, F_SETFL, O_NONBLOCK));
  noteNonblocking(run, kind, ends);
}

void dontWait(Run& run, const Kind& kind, Ends ends) {
  for (const Receiver& by : receiversOf(kind)) {
    if (by.for_sockets) receive(run, by, ends[0], 8, MSG_DONTWAIT);
  }
}

void errorQueue(Run& run, const Kind& kind, Ends ends) {
  for (const Receiver& by : receiversOf(kind)) {
    if (by.for_sockets) receive(run, by, ends[0], 8, MSG_ERRQUEUE);
  }
}

void peekThenTake(Run& run, const Kind& kind, Ends ends) {
  for (const Receiver& by : receiversOf(kind)) {
    if (!by.for_sockets) continue;
    run.later([=](const Calls& libc) { libc.write(ends[1], "peeked", 6); });
    receive(run, by, ends[0], 3, MSG_PEEK);
    receive(run, by, ends[0], 16, MSG_PEEK);
    receive(run, by, ends[0], 16);
    run.join();
  }
}

void lengthOfACutMessage(Run& run, const Kind& kind, Ends ends) {
  for (const Receiver& by : receiversOf(kind)) {
    if (!by.for_sockets) continue;
    run.later([=](const Calls& libc) { libc.write(ends[1], "0123456789", 10); });
    receive(run, by, ends[0], 4, MSG_TRUNC);
    run.join();
  }
}

void waitForAll(Run& run, const Kind& kind, Ends ends) {
  for (const Receiver& by : receiversOf(kind)) {
    if (!by.for_sockets) continue;
    run.later([=](const Calls& libc) {
      for (const char* piece : {"one", "two", "three"}) {
        libc.write(ends[1], piece, strlen(piece));
        libc.usleep(2000);
      }
    });
    receive(run, by, ends[0], 11, MSG_WAITALL);
    run.join();
    if (kind.has_messages) {
      receive(run, by, ends[0], 11);
      receive(run, by, ends[0], 11);
    }
  }
}

void waitForAllUntilTheEnd(Run& run, const Kind& kind, Ends) {
  for (const Receiver& by : receiversOf(kind)) {
    if (!by.for_sockets) continue;
    const Ends ends = run.keep(kind.make(run.make));
    run.later([=](const Calls& libc) {
      libc.write(ends[1], "short", 5);
      ::shutdown(ends[1], SHUT_WR);
    });
    receive(run, by, ends[0], 11, MSG_WAITALL);
    run.join();
  }
}

void waitForAllUntilTheTimeout(Run& run, const Kind& kind, Ends ends) {
  setTimeout(run.call, ends[0], SO_RCVTIMEO, 20'000);
  for (const Receiver& by : receiversOf(kind)) {
    if (!by.for_sockets) continue;
    feed(ends[1], "short");
    receive(run, by, ends[0], 11, MSG_WAITALL);
  }
}

// CD-H3
void receiveTimeout(Run& run, const Kind& kind, Ends ends) {
  setTimeout(run.call, ends[0], SO_RCVTIMEO, 10'000);
  for (const Receiver& by : receiversOf(kind)) receive(run, by, ends[0], 8);
  setTimeout(run.call, ends[0], SO_RCVTIMEO, 60'000'000);
  dataThatComesLater(run, kind, ends);
  setTimeout(run.call, ends[0], SO_RCVTIMEO, 0);  // {0, 0}: none
  dataThatComesLater(run, kind, ends);
}

void receiveTimeoutThroughACopy(Run& run, const Kind& kind, Ends ends) {
  const int copy = run.keep(run.make.dup(ends[0]));
  setTimeout(run.call, copy, SO_RCVTIMEO, 10'000);
  for (const Receiver& by : receiversOf(kind)) receive(run, by, ends[0], 8);
}

void oddTimeouts(Run& run, const Kind& kind, Ends ends) {
  const timeval absurd[] = {{0, 1'000'000}, {0, -1}, {INT64_MAX, 0}, {INT64_MAX / 1'000'000'000, 999'999}};
  for (const timeval& one : absurd) {
    run.got("SO_RCVTIMEO", run.call.setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &one, sizeof one));
    dataThatComesLater(run, kind, ends);
  }
  run.got("of a wrong size", run.call.setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &absurd[2], 4));
  run.got("bad pointer", run.call.setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, badPointer(), sizeof(timeval)));
  dataThatComesLater(run, kind, ends);
}

// ---- Sending. -----------------------------------------------------------------------------------------------------------------

void bytesThatFit(Run& run, const Kind& kind, Ends ends) {
  for (const Sender& by : sendersOf(kind)) run.got(by.name, by.send(run.call, ends[1], "0123456789", 10, 0));
  noteRest(run, ends[0]);
}

void nothing(Run& run, const Kind& kind, Ends ends) {
  for (const Sender& by : sendersOf(kind)) {
    run.got(by.name, by.send(run.call, ends[1], "", 0, 0));  // write sends an empty message, writev does not
    const int flags = libcCalls().fcntl(ends[0], F_GETFL);
    noteRest(run, ends[0]);
    libcCalls().fcntl(ends[0], F_SETFL, flags);
  }
}

void fromABadPointer(Run& run, const Kind& kind, Ends ends) {
  for (const Sender& by : sendersOf(kind)) run.got(by.name, by.send(run.call, ends[1], badPointer(), 16, 0));
  noteRest(run, ends[0]);
}

void toAPeerThatIsGone(Run& run, const Kind& kind, Ends) {
  for (const Sender& by : sendersOf(kind)) {
    const Ends ends = run.keep(kind.make(run.make));
    if (kind.name == "Tcp") resetOnClose(ends[0]);  // else only the second write fails
    run.close(ends[0]);
    run.got(by.name, by.send(run.call, ends[1], "x", 1, 0));
    run.got(by.name, by.send(run.call, ends[1], "x", 1, 0));
    run.got(by.name, by.send(run.call, ends[1], "x", 0, 0));
    if (by.for_sockets) run.got(by.name, by.send(run.call, ends[1], "x", 1, MSG_NOSIGNAL));
  }
}

/// Sends until `fd` takes no more, however long one waits; the buffers are small.
void fill(const Calls& calls, const Kind& kind, int fd) {
  if (kind.is_socket) setBuffer(fd, SO_SNDBUF, 4096);
  const int flags = calls.fcntl(fd, F_GETFL);
  calls.fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  const std::vector<char> bytes(1000, 'f');
  const auto sendAll = [&] {
    bool any = false;
    for (size_t size = bytes.size(); size > 0; size /= 10) {
      while (calls.write(fd, bytes.data(), size) > 0) any = true;
    }
    return any;
  };
  // TCP moves bytes to the other side's buffer in its own time.
  while (sendAll() && kind.name == "Tcp") calls.usleep(20'000);
  calls.fcntl(fd, F_SETFL, flags);
}

/// Sends to a full one. TCP finds room for a little more from time to time.
ssize_t sendMore(const Run& run, const Kind& kind, const Sender& by, int fd, int flags) {
  ssize_t n;
  do n = by.send(run.call, fd, "0123456789", 10, flags);
  while (n > 0 && kind.name == "Tcp");
  return n;
}

void intoAFullOneNonblocking(Run& run, const Kind& kind, Ends ends) {
  fill(libcCalls(), kind, ends[1]);
  run.got("F_SETFL", run.call.fcntl(ends[1], F_SETFL, O_NONBLOCK));
  for (const Sender& by : sendersOf(kind)) run.got(by.name, sendMore(run, kind, by, ends[1], 0));
}

void intoAFullOneDontWait(Run& run, const Kind& kind, Ends ends) {
  fill(libcCalls(), kind, ends[1]);
  for (const Sender& by : sendersOf(kind)) {
    if (by.for_sockets) run.got(by.name, sendMore(run, kind, by, ends[1], MSG_DONTWAIT));
  }
}

// CD-H3
void sendTimeout(Run& run, const Kind& kind, Ends ends) {
  fill(libcCalls(), kind, ends[1]);
  setTimeout(run.call, ends[1], SO_SNDTIMEO, 10'000);
  for (const Sender& by : sendersOf(kind)) run.got(by.name, sendMore(run, kind, by, ends[1], 0));
}

void intoAFullOneThatIsEmptiedLater(Run& run, const Kind& kind, Ends ends) {
  for (const Sender& by : sendersOf(kind)) {
    fill(libcCalls(), kind, ends[1]);
    run.later([=](const Calls& libc) {
      char sink[4096];
      libc.fcntl(ends[0], F_SETFL, O_NONBLOCK);
      pollfd in{ends[0], POLLIN, 0};
      while (libc.poll(&in, 1, 50) > 0 && libc.read(ends[0], sink, sizeof sink) > 0) continue;
    });
    run.got(by.name, by.send(run.call, ends[1], "0123456789", 10, 0));
    run.join();
  }
}

void aPeerThatEndsDuringALongWrite(Run& run, const Kind& kind, Ends) {
  const std::vector<char> bytes(32 << 20, 'l');  // more than the buffers of both sides take, at their largest
  for (const Sender& by : sendersOf(kind)) {
    const Ends ends = run.keep(kind.make(run.make));
    const int peer = libcCalls().dup(ends[0]);
    run.close(ends[0]);
    run.whileItWaits([=](const Calls& libc) { libc.close(peer); });
    const ssize_t n = by.send(run.call, ends[1], bytes.data(), bytes.size(), 0);
    run.note(by.name, n > 0 && n < std::ssize(bytes) ? "a part" : std::to_string(n));
    run.noteSignals();
    run.join();
    run.got("next", by.send(run.call, ends[1], "x", 1, 0));
    run.got("next", by.send(run.call, ends[1], "x", 1, 0));
  }
}

void aMessageThatIsTooLarge(Run& run, const Kind& kind, Ends ends) {
  setBuffer(ends[1], SO_SNDBUF, 4096);
  const std::vector<char> bytes(1 << 20, 'm');
  for (const Sender& by : sendersOf(kind)) run.got(by.name, by.send(run.call, ends[1], bytes.data(), bytes.size(), 0));
}

void throughTheWrongEnd(Run& run, const Kind& kind, Ends ends) {
  for (const Sender& by : sendersOf(kind)) run.got(by.name, by.send(run.call, ends[0], "x", 1, 0));
  for (const Receiver& by : receiversOf(kind)) receive(run, by, ends[1], 1);
}

void afterOurOwnShutdown(Run& run, const Kind& kind, Ends ends) {
  run.got("shutdown", ::shutdown(ends[1], SHUT_WR));
  for (const Sender& by : sendersOf(kind)) run.got(by.name, by.send(run.call, ends[1], "x", 1, 0));
}

// ---- The table. ---------------------------------------------------------------------------------------------------------------

std::vector<Case> transferCases() {
  struct Situation {
    std::string name;
    KindBody body;
    bool (*applies)(const Kind& kind);
  };
  const auto any = [](const Kind&) { return true; };
  const auto sockets = [](const Kind& kind) { return kind.is_socket; };
  const auto messages = [](const Kind& kind) { return kind.has_messages; };
  const auto ending = [](const Kind& kind) { return kind.has_end; };
  const auto connected = [](const Kind& kind) { return kind.is_socket && kind.has_end; };
  const auto streams = [](const Kind& kind) { return !kind.has_messages; };
  const auto tcp = [](const Kind& kind) { return kind.name == "Tcp"; };
  const auto internet = [](const Kind& kind) { return kind.name == "Tcp" || kind.name == "Udp"; };
  const auto filling = [](const Kind& kind) { return kind.name != "Udp"; };  // UDP drops what does not fit
  const auto filling_sockets = [](const Kind& kind) { return kind.is_socket && kind.name != "Udp"; };
  const auto pipes = [](const Kind& kind) { return !kind.is_socket; };
  const std::vector<Situation> situations = {
      {"ReceivesWhatWaits", dataThatWaits, any},
      {"ReceivesWhatComesLater", dataThatComesLater, any},
      {"ReceivesNothingIntoSizeZero", nothingIntoABufferOfSizeZero, any},
      {"ReadsNothingFromAnEmptyOne", nothingFromAnEmptyOne, any},
      {"ReceivesAnEmptyMessage", anEmptyMessage, messages},
      {"ReceivesTheEndAfterTheLastBytes", theEndAfterTheLastBytes, ending},
      {"ReceivesTheEndLater", theEndThatComesLater, ending},
      {"ReceivesAfterItsOwnShutdown", ourOwnShutdown, connected},
      {"ReceivesAReset", aResetThatComesLater, tcp},
      {"ReceivesIntoABadPointer", aBadPointer, any},
      {"RefusesABadVector", aBadVector, any},
      {"IsNonblockingByFcntl", nonblockingByFcntl, any},       // CD-H2, FM-16
      {"IsNonblockingByIoctl", nonblockingByIoctl, any},       // CD-H4, FM-16
      {"IsNonblockingByACopy", nonblockingThroughACopy, any},  // FM-16
      {"ReceivesWithDontWait", dontWait, sockets},             // CD-H1
      {"ReceivesFromTheErrorQueue", errorQueue, internet},
      {"Peeks", peekThenTake, sockets},
      {"TellsTheLengthOfACutMessage", lengthOfACutMessage, messages},
      {"WaitsForAll", waitForAll, sockets},
      {"WaitsForAllUntilTheEnd", waitForAllUntilTheEnd, connected},
      {"WaitsForAllUntilTheTimeout", waitForAllUntilTheTimeout, sockets},
      {"ReceiveTimesOut", receiveTimeout, sockets},  // CD-H3
      {"ReceiveTimesOutByACopy", receiveTimeoutThroughACopy, sockets},
      {"TakesOddTimeouts", oddTimeouts, sockets},
      {"SendsWhatFits", bytesThatFit, any},
      {"SendsNothing", nothing, any},
      {"SendsFromABadPointer", fromABadPointer, any},
      {"SendsToAPeerThatIsGone", toAPeerThatIsGone, any},
      {"SendsIntoAFullOneNonblocking", intoAFullOneNonblocking, filling},
      {"SendsIntoAFullOneWithDontWait", intoAFullOneDontWait, filling_sockets},
      {"SendTimesOut", sendTimeout, filling_sockets},
      {"SendsIntoAFullOneEmptiedLater", intoAFullOneThatIsEmptiedLater, filling},
      {"SendsToAPeerThatEndsMeanwhile", aPeerThatEndsDuringALongWrite, streams},
      {"RefusesAMessageThatIsTooLarge", aMessageThatIsTooLarge, messages},
      {"RefusesTheWrongEnd", throughTheWrongEnd, pipes},
      {"SendsAfterItsOwnShutdown", afterOurOwnShutdown, connected},
  };
  std::vector<Case> cases;
  for (const Kind& kind : kinds()) {
    for (const Situation& one : situations) {
      if (!one.applies(kind)) continue;
      cases.push_back(
          {kind.name + one.name, [&kind, body = one.body](Run& run) { body(run, kind, run.keep(kind.make(run.make))); }});
    }
  }
  return cases;
}

class TransferTest : public SameAsLibc {};

// HA-5, RG-23
TEST_P(TransferTest, ResultErrnoAndData) { compare(GetParam()); }

INSTANTIATE_TEST_SUITE_P(SameAsLibc, TransferTest, testing::ValuesIn(transferCases()), nameOf);

}  // namespace
}  // namespace sylar::test
