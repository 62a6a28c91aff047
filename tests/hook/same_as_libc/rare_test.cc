// Hooked against raw: rare flags and sizes.
#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {
namespace {

/// AF_UNIX does not know the error queue: there the flag changes nothing.
void errorQueue(Run& run) {
  char buffer[8];
  iovec part{buffer, sizeof buffer};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
    const Ends ends = run.keep(makeUnix(run.make, type));
    for (int i = 0; i < 2; ++i) {
      run.later([=](const Calls& libc) { libc.write(ends[1], "abc", 3); });
      run.got("recv", i == 0 ? run.call.recv(ends[0], buffer, sizeof buffer, MSG_ERRQUEUE)
                             : run.call.recvmsg(ends[0], &message, MSG_ERRQUEUE));
      run.join();
    }
  }
  const Ends udp = run.keep(makeUdp(run.make));
  run.got("recv", run.call.recv(udp[0], buffer, sizeof buffer, MSG_ERRQUEUE));
  run.got("recvmsg", run.call.recvmsg(udp[0], &message, MSG_ERRQUEUE));
}

/// A receive of no bytes waits for whatever comes on TCP, and tells nothing of it.
void noBytesOfTcp(Run& run) {
  char buffer[8];
  const Ends ends = run.keep(makeTcp(run.make));
  setTimeout(run.make, ends[0], SO_RCVTIMEO, 20'000);
  run.got("recv until the timeout", run.call.recv(ends[0], buffer, 0, 0));
  setTimeout(run.make, ends[0], SO_RCVTIMEO, 0);
  run.later([=](const Calls& libc) { libc.write(ends[1], "abc", 3); });
  run.got("recv until data", run.call.recv(ends[0], buffer, 0, 0));
  run.join();
  run.got("recv", run.call.recv(ends[0], buffer, sizeof buffer, 0));
  run.whileItWaits([=](const Calls& libc) {  // one that begins after the reset is told of it
    resetOnClose(ends[1]);
    libc.dup2(STDERR_FILENO, ends[1]);
  });
  run.got("recv until a reset", run.call.recvfrom(ends[0], buffer, 0, 0, nullptr, nullptr));
  run.join();
  run.got("recv", run.call.recv(ends[0], buffer, sizeof buffer, 0));
}

void peekUpToAnUrgentByte(Run& run) {
  char buffer[16];
  const Ends ends = run.keep(makeTcp(run.make));
  run.later([=](const Calls& libc) {
    libc.send(ends[1], "abc", 3, 0);
    libc.send(ends[1], "de!", 3, MSG_OOB);
  });
  run.got("peek", run.call.recv(ends[0], buffer, sizeof buffer, MSG_PEEK | MSG_WAITALL));
  run.join();
  run.got("recv", run.call.recv(ends[0], buffer, sizeof buffer, MSG_WAITALL));
}

/// The writer notices it when it has been woken.
void pipeMadeNonblocking(Run& run) {
  const Ends ends = run.keep(makePipe(run.make));
  const int copy = run.keep(run.call.dup(ends[1]));
  for (const int fd : {ends[1], copy}) {
    run.whileItWaits([=](const Calls& libc) {
      libc.fcntl(fd, F_SETFL, O_NONBLOCK);
      std::vector<char> buffer(10'000);
      libc.read(ends[0], buffer.data(), buffer.size());
    });
    const std::vector<char> bytes(1'000'000, 'x');
    const ssize_t n = run.call.write(fd, bytes.data(), bytes.size());
    run.note("write", n > 0 && n < 1'000'000 ? "a part" : std::to_string(n));
    run.join();
    run.call.fcntl(fd, F_SETFL, 0);
  }
}

std::vector<Case> cases() {
  return {
      {"ErrorQueue", errorQueue},
      {"NoBytesOfTcp", noBytesOfTcp},
      {"PeekUpToAnUrgentByte", peekUpToAnUrgentByte},
      {"PipeMadeNonblocking", pipeMadeNonblocking},
  };
}

class RareTest : public SameAsLibc {};

// HA-5
TEST_P(RareTest, ResultErrnoAndData) { compare(GetParam()); }

INSTANTIATE_TEST_SUITE_P(SameAsLibc, RareTest, testing::ValuesIn(cases()), nameOf);

}  // namespace
}  // namespace sylar::test
