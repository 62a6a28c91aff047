// Hooked against raw: sends with MSG_FASTOPEN, which connect.
#include <netinet/tcp.h>

#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {
namespace {

using Send = ssize_t (*)(const Calls& call, int fd, const char* data, size_t size, int flags, const sockaddr_in* to);

ssize_t bySendto(const Calls& call, int fd, const char* data, size_t size, int flags, const sockaddr_in* to) {
  return call.sendto(fd, data, size, flags, reinterpret_cast<const sockaddr*>(to), to == nullptr ? 0 : sizeof *to);
}

ssize_t bySendmsg(const Calls& call, int fd, const char* data, size_t size, int flags, const sockaddr_in* to) {
  const size_t half = size / 2;
  iovec parts[] = {{const_cast<char*>(data), half}, {const_cast<char*>(data) + half, size - half}};
  msghdr message{};
  message.msg_name = const_cast<sockaddr_in*>(to);
  message.msg_namelen = to == nullptr ? 0 : sizeof *to;
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  return call.sendmsg(fd, &message, flags);
}

/// To a server, with nothing known of it at first and a cookie perhaps later; more than fits into a SYN and a buffer.
void toAServer(Run& run, Send send) {
  const int listener = run.keep(boundSocket(run.make, SOCK_STREAM));
  const int queue = 16;
  run.got("setsockopt", run.call.setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN, &queue, sizeof queue));
  const sockaddr_in to = addressOf(listener);
  for (const size_t size : {size_t{5}, size_t{5}, size_t{8'000'000}}) {
    const int fd = run.keep(run.make.socket(AF_INET, SOCK_STREAM, 0));
    const std::vector<char> bytes = streamBytes(size);
    run.later([=](const Calls& libc) {
      const int server = libc.accept(listener, nullptr, nullptr);
      std::vector<char> got(size);
      EXPECT_EQ(libc.recv(server, got.data(), got.size(), MSG_WAITALL), static_cast<ssize_t>(size));
      EXPECT_EQ(got, streamBytes(size));
      libc.close(server);
    });
    run.got("send", send(run.call, fd, bytes.data(), size, MSG_FASTOPEN, &to));
    run.join();
    run.got("send again", send(run.call, fd, bytes.data(), 1, MSG_FASTOPEN | MSG_NOSIGNAL, &to));
  }
}

void toNobody(Run& run, Send send) {
  const int closed = boundSocket(libcCalls(), SOCK_STREAM, -1);
  const sockaddr_in to = addressOf(closed);
  const int fd = run.keep(run.make.socket(AF_INET, SOCK_STREAM, 0));
  run.got("send", send(run.call, fd, "hello", 5, MSG_FASTOPEN, &to));
  char byte;
  run.got("recv", run.call.recv(fd, &byte, 1, MSG_DONTWAIT));
  libcCalls().close(closed);
}

void wrongly(Run& run, Send send) {
  const int listener = run.keep(boundSocket(run.make, SOCK_STREAM));
  const sockaddr_in to = addressOf(listener);
  const int fresh = run.keep(run.make.socket(AF_INET, SOCK_STREAM, 0));
  run.got("send to nobody in particular", send(run.call, fresh, "hello", 5, MSG_FASTOPEN | MSG_NOSIGNAL, nullptr));
  const int other = run.keep(run.make.socket(AF_INET, SOCK_STREAM, 0));
  run.got("send from nowhere", send(run.call, other, static_cast<char*>(badPointer()), 5, MSG_FASTOPEN, &to));
  const int nonblocking = run.keep(run.make.socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
  run.got("send that may not wait", send(run.call, nonblocking, "hello", 5, MSG_FASTOPEN, &to));
}

/// Other sockets do not know the flag.
void elsewhere(Run& run, Send send) {
  char buffer[16];
  const Ends udp = run.keep(makeUdp(run.make));
  const sockaddr_in to = addressOf(udp[0]);
  run.got("send", send(run.call, udp[1], "hello", 5, MSG_FASTOPEN, &to));
  run.got("recv", run.call.recv(udp[0], buffer, sizeof buffer, 0));
  const Ends ends = run.keep(makeUnix(run.make, SOCK_STREAM));
  run.got("send", send(run.call, ends[1], "hello", 5, MSG_FASTOPEN, nullptr));
  run.got("recv", run.call.recv(ends[0], buffer, sizeof buffer, 0));
  const std::vector<char> bytes = streamBytes(2'000'000);
  run.later([=](const Calls& libc) {
    std::vector<char> got(2'000'000);
    EXPECT_EQ(libc.recv(ends[0], got.data(), got.size(), MSG_WAITALL), ssize_t{2'000'000});
    EXPECT_EQ(got, streamBytes(2'000'000));
  });
  run.got("send", send(run.call, ends[1], bytes.data(), bytes.size(), MSG_FASTOPEN, nullptr));
}

std::vector<Case> cases() {
  const std::pair<std::string, Send> calls[] = {{"Sendto", bySendto}, {"Sendmsg", bySendmsg}};
  const std::pair<std::string, void (*)(Run&, Send)> situations[] = {
      {"ToAServer", toAServer}, {"ToNobody", toNobody}, {"Wrongly", wrongly}, {"Elsewhere", elsewhere}};
  std::vector<Case> all;
  for (const auto& [call, send] : calls) {
    for (const auto& [name, body] : situations) {
      all.push_back({call + name, [send = send, body = body](Run& run) { body(run, send); }});
    }
  }
  return all;
}

class FastOpenTest : public SameAsLibc {};

// HA-5
TEST_P(FastOpenTest, ResultErrnoAndData) { compare(GetParam()); }

INSTANTIATE_TEST_SUITE_P(SameAsLibc, FastOpenTest, testing::ValuesIn(cases()), nameOf);

}  // namespace
}  // namespace sylar::test
