// Hooked against raw: descriptors that are no sockets. Terminals by their modes.
#include "tests/hook/fd/kinds.h"

namespace sylar::test {
namespace {

/// In every thread of the process, or the signal of one case would end it.
const bool g_signals_blocked = [] {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGUSR2);
  return ::pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0;
}();

// ---- Every source. ------------------------------------------------------------------------------------------------------------

void later(Run& run, const Source& source) {
  run.later([source](const Calls&) { source.feed(); });
}

void readsLater(Run& run, const Source& source) {
  std::vector<char> buffer(source.size);
  for (int i = 0; i < 2; ++i) {
    later(run, source);
    run.got("read", run.call.read(source.fd, buffer.data(), buffer.size()));
    run.join();
    later(run, source);
    const iovec part{buffer.data(), buffer.size()};
    run.got("readv", run.call.readv(source.fd, &part, 1));
    run.join();
  }
}

void readsWhatWaits(Run& run, const Source& source) {
  std::vector<char> buffer(source.size);
  source.feed();
  pollfd in{source.fd, POLLIN, 0};
  run.got("poll", run.call.poll(&in, 1, 5000));
  run.got("revents", in.revents & POLLIN);
  run.got("read", run.call.read(source.fd, buffer.data(), buffer.size()));
  run.got("poll", run.call.poll(&in, 1, 1));
}

void refuses(Run& run, const Source& source) {
  char byte = 'b';
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  run.got("recv", run.call.recv(source.fd, &byte, 1, 0));
  run.got("recv all", run.call.recv(source.fd, &byte, 1, MSG_WAITALL));
  run.got("recv urgent", run.call.recv(source.fd, &byte, 1, MSG_OOB));
  run.got("recvmsg", run.call.recvmsg(source.fd, &message, 0));
  run.got("recvmsg all", run.call.recvmsg(source.fd, &message, MSG_WAITALL));
  run.got("send", run.call.send(source.fd, &byte, 1, 0));
  run.got("sendmsg", run.call.sendmsg(source.fd, &message, 0));
  run.got("accept", run.call.accept(source.fd, nullptr, nullptr));
  run.got("readv", run.call.readv(source.fd, static_cast<iovec*>(badPointer()), 1));
  run.got("writev", run.call.writev(source.fd, static_cast<iovec*>(badPointer()), 1));
  run.got("readv of -1 parts", run.call.readv(source.fd, &part, opaque(-1)));
}

void readsIntoABadPointer(Run& run, const Source& source) {
  source.feed();
  pollfd in{source.fd, POLLIN, 0};
  run.got("poll", run.call.poll(&in, 1, -1));
  run.got("read", run.call.read(source.fd, badPointer(), source.size));
}

void isNonblocking(Run& run, const Source& source) {
  std::vector<char> buffer(source.size);
  run.got("F_SETFL", run.call.fcntl(source.fd, F_SETFL, O_NONBLOCK));
  run.got("read", run.call.read(source.fd, buffer.data(), buffer.size()));
  run.got("F_SETFL", run.call.fcntl(source.fd, F_SETFL, 0));
  later(run, source);
  run.got("read", run.call.read(source.fd, buffer.data(), buffer.size()));
}

// ---- The ways of one kind. ----------------------------------------------------------------------------------------------------

void eventfd(Run& run) {
  const int fd = run.keep(::eventfd(0, 0));
  uint64_t value = UINT64_MAX;
  run.got("write of too much", run.call.write(fd, &value, sizeof value));
  run.got("write of too little", run.call.write(fd, &value, 7));
  run.got("write of nothing", run.call.write(fd, &value, 0));
  run.got("write from a bad pointer", run.call.write(fd, badPointer(), sizeof value));
  value = UINT64_MAX - 1;
  run.got("write", run.call.write(fd, &value, sizeof value));
  run.later([=](const Calls& libc) {
    uint64_t all;
    libc.read(fd, &all, sizeof all);
  });
  value = 3;
  run.got("write into a full one", run.call.write(fd, &value, sizeof value));
  run.join();
  run.got("read", run.call.read(fd, &value, sizeof value));
  run.note("value", std::to_string(value));
}

void fifo(Run& run) {
  Owned owned;
  const Ends ends = makeFifo(owned);
  char buffer[64] = {};
  run.later([=](const Calls& libc) { libc.write(ends[1], "abc", 3); });
  run.got("read", run.call.read(ends[0], buffer, 64));
  run.join();
  run.got("write through the wrong end", run.call.write(ends[0], "x", 1));
  run.got("read through the wrong end", run.call.read(ends[1], buffer, 1));
  run.got("read of nothing", run.call.read(ends[0], buffer, 0));
}

/// Packets keep their borders; one that is cut loses its rest.
void packetPipe(Run& run) {
  int fds[2];
  run.got("pipe2", run.make.pipe2(fds, O_DIRECT));
  run.keep(fds[0]);
  run.keep(fds[1]);
  char buffer[64] = {};
  run.later([=](const Calls& libc) {
    libc.write(fds[1], "first", 5);
    libc.write(fds[1], "second", 6);
  });
  run.got("read", run.call.read(fds[0], buffer, sizeof buffer));
  run.note("read", buffer);
  run.got("read, cut", run.call.read(fds[0], buffer, 3));
  run.join();
  run.later([=](const Calls& libc) { libc.write(fds[1], "third", 5); });
  run.got("read", run.call.read(fds[0], buffer, sizeof buffer));
  run.join();
  const std::vector<char> large(3 * PIPE_BUF, 'p');
  run.got("write of three packets", run.call.write(fds[1], large.data(), large.size()));
  std::vector<char> got(large.size());
  for (int i = 0; i < 3; ++i) run.got("read", run.call.read(fds[0], got.data(), got.size()));
}

void terminalByLines(Run& run) {
  Owned owned;
  const Ends ends = makeTerminal(owned, false);
  char buffer[16] = {};
  run.later([=](const Calls& libc) {
    libc.write(ends[1], "half", 4);
    libc.usleep(2000);
    libc.write(ends[1], " line\nnext\n", 11);
  });
  run.got("read a line", run.call.read(ends[0], buffer, sizeof buffer));
  run.note("read", buffer);
  run.join();
  run.got("read a part of one", run.call.read(ends[0], buffer, 2));
  run.got("read the rest", run.call.read(ends[0], buffer, sizeof buffer));
  run.later([=](const Calls& libc) { libc.write(ends[1], "\4", 1); });
  run.got("read the end", run.call.read(ends[0], buffer, sizeof buffer));
  run.join();
  run.got("write", run.call.write(ends[0], "a\nb", 3));
  run.got("write nothing", run.call.write(ends[0], "", 0));
  run.got("write from a bad pointer", run.call.write(ends[0], badPointer(), 3));
  // "a\r\nb". A thread of the kernel hands it over, perhaps in pieces.
  for (int there = 0; there < 4 && ::ioctl(ends[1], FIONREAD, &there) == 0;) sched_yield();
  run.got("read", run.call.read(ends[1], buffer, sizeof buffer));
}

/// VMIN bytes, or VTIME tenths of a second: `feed` comes in two parts with a moment between.
void terminalRaw(Run& run, uint8_t min, uint8_t tenths, size_t size, const std::string& first, const std::string& second) {
  Owned owned;
  const Ends ends = makeTerminal(owned, true, min, tenths);
  run.note("mode", std::to_string(min) + " " + std::to_string(tenths));
  run.later([=](const Calls& libc) {
    libc.write(ends[1], first.data(), first.size());
    libc.usleep(5000);
    libc.write(ends[1], second.data(), second.size());
  });
  char buffer[16] = {};
  run.got("read", run.call.read(ends[0], buffer, size));
  run.note("read", buffer);
  run.join();
}
void terminalRawModes(Run& run) {
  terminalRaw(run, 1, 0, 8, "a", "");
  terminalRaw(run, 3, 0, 8, "a", "bc");
  terminalRaw(run, 5, 0, 2, "a", "b");      // as many as there is room for
  terminalRaw(run, 0, 0, 8, "", "");        // never waits
  terminalRaw(run, 0, 1, 8, "", "");        // the time passes
  terminalRaw(run, 0, 200, 8, "a", "");     // a byte comes first
  terminalRaw(run, 4, 1, 8, "a", "");       // the time passes after a byte
  terminalRaw(run, 4, 200, 8, "a", "bcd");  // enough come
  terminalRaw(run, 4, 200, 2, "a", "b");
}

void terminalThatHangsUp(Run& run) {
  for (const bool raw : {false, true}) {
    for (const bool slave_ends : {true, false}) {
      Owned owned;
      const Ends ends = makeTerminal(owned, raw);
      const int stays = ends[slave_ends ? 1 : 0];
      const int goes = ends[slave_ends ? 0 : 1];
      // A slave's read that waits fails, and a later one is told the end.
      run.whileItWaits([=](const Calls& libc) { libc.dup2(stays, goes); });
      char buffer[8];
      run.got(slave_ends ? "read of the master" : "read of the slave", run.call.read(stays, buffer, sizeof buffer));
      run.join();
      run.got("read", run.call.read(stays, buffer, sizeof buffer));
      run.got("write", run.call.write(stays, "x", 1));
    }
  }
}

std::vector<Case> kindCases() {
  struct Situation {
    std::string name;
    void (*body)(Run& run, const Source& source);
  };
  const Situation situations[] = {
      {"ReadsLater", readsLater},
      {"ReadsWhatWaits", readsWhatWaits},
      {"Refuses", refuses},
      {"ReadsIntoABadPointer", readsIntoABadPointer},
      {"IsNonblocking", isNonblocking},
  };
  std::vector<Case> cases = {
      {"Eventfd", eventfd},
      {"Fifo", fifo},
      {"PacketPipe", packetPipe},
      {"TerminalByLines", terminalByLines},
      {"TerminalRawModes", terminalRawModes},
      {"TerminalThatHangsUp", terminalThatHangsUp},
  };
  for (const NamedSource& source : sources()) {
    for (const Situation& one : situations) {
      cases.push_back({source.name + one.name, [&source, body = one.body](Run& run) { body(run, source.make()); }});
    }
  }
  return cases;
}

class KindsTest : public SameAsLibc {};

// HA-5
TEST_P(KindsTest, ResultErrnoAndData) { compare(GetParam()); }

INSTANTIATE_TEST_SUITE_P(SameAsLibc, KindsTest, testing::ValuesIn(kindCases()), nameOf);

}  // namespace
}  // namespace sylar::test
