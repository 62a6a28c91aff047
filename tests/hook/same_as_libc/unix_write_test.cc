// Hooked against raw: writes to an AF_UNIX connection that is full.
#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {
namespace {

using Write = ssize_t (*)(const Calls& call, int fd, const char* data, size_t size);
struct WriteKind {
  std::string name;
  Write write;
};
const WriteKind kWrites[] = {
    {"Write", [](const Calls& call, int fd, const char* data, size_t size) { return call.write(fd, data, size); }},
    {"Send", [](const Calls& call, int fd, const char* data, size_t size) { return call.send(fd, data, size, 0); }},
    {"Writev",
     [](const Calls& call, int fd, const char* data, size_t size) {
       const iovec part{const_cast<char*>(data), size};
       return call.writev(fd, &part, 1);
     }},
    {"Sendmsg",
     [](const Calls& call, int fd, const char* data, size_t size) {
       iovec part{const_cast<char*>(data), size};
       msghdr message{};
       message.msg_iov = &part;
       message.msg_iovlen = 1;
       return call.sendmsg(fd, &message, 0);
     }},
};

/// Fills what `fd` takes, so that even one byte more waits.
void fill(int fd, size_t piece) {
  const std::vector<char> bytes(piece, 'f');
  while (libcCalls().send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) continue;
  while (libcCalls().send(fd, bytes.data(), 1, MSG_DONTWAIT) > 0) continue;
}

constexpr size_t kPiece = 1000;

/// A write that waits, ended by `end`; then what is left behind on both sides.
void writeEndedBy(Run& run, int type, Write write, bool half_way, const std::function<void(Ends)>& end) {
  const Ends ends = run.keep(makeUnix(run.make, type));
  const std::vector<char> bytes(half_way ? 2'000'000 : kPiece, 'w');
  if (!half_way) fill(ends[1], kPiece);
  run.whileItWaits([=](const Calls&) { end(ends); });
  const ssize_t n = write(run.call, ends[1], bytes.data(), bytes.size());
  if (n > 0) {
    run.note("write", "a part");
  } else {
    run.got("write", n);
  }
  run.join();
  run.noteSignals();
  char byte;
  run.got("recv", run.call.recv(ends[1], &byte, 1, MSG_DONTWAIT));
  run.got("write", write(run.call, ends[1], "x", 1));
  run.noteSignals();
}

void fullConnection(Run& run, int type, Write write) {
  const bool ways[] = {false, true};
  for (const bool half_way : ways) {
    if (half_way && type != SOCK_STREAM) continue;  // messages are whole
    run.note("half way", half_way ? "yes" : "no");
    writeEndedBy(run, type, write, half_way, [](Ends ends) { ::shutdown(ends[1], SHUT_WR); });
    writeEndedBy(run, type, write, half_way, [](Ends ends) { ::shutdown(ends[1], SHUT_RDWR); });
    writeEndedBy(run, type, write, half_way, [](Ends ends) { ::shutdown(ends[0], SHUT_RD); });
    writeEndedBy(run, type, write, half_way, [](Ends ends) { ::shutdown(ends[0], SHUT_RDWR); });
    writeEndedBy(run, type, write, half_way, [](Ends ends) { ::dup2(STDERR_FILENO, ends[0]); });  // closes it
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const WriteKind& kind : kWrites) {
    all.push_back({"StreamEnds" + kind.name, [&kind](Run& run) { fullConnection(run, SOCK_STREAM, kind.write); }});
    all.push_back({"PacketsEnd" + kind.name, [&kind](Run& run) { fullConnection(run, SOCK_SEQPACKET, kind.write); }});
  }
  return all;
}

class UnixWriteTest : public SameAsLibc {};

// HA-5
TEST_P(UnixWriteTest, ResultErrnoAndData) { compare(GetParam()); }

INSTANTIATE_TEST_SUITE_P(SameAsLibc, UnixWriteTest, testing::ValuesIn(cases()), nameOf);

}  // namespace
}  // namespace sylar::test
