// Hooked against raw: receives that wait for more than the first byte, and end at descriptors in the stream.
#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {
namespace {

/// The calls that receive from a stream and see no descriptors.
struct Receiver {
  std::string name;
  ssize_t (*receive)(const Calls& call, int fd, char* buffer, size_t size);
  bool has_mark;  ///< waits because of SO_RCVLOWAT, else because of MSG_WAITALL
};

template <auto kCall, auto... kMore>
ssize_t withAddress(const Calls& call, int fd, char* buffer, size_t size) {
  sockaddr_un from{};
  socklen_t from_size = sizeof from;
  const ssize_t n = (call.*kCall)(fd, buffer, size, kMore..., reinterpret_cast<sockaddr*>(&from), &from_size);
  EXPECT_EQ(from_size, n >= 0 ? 0u : sizeof from);  // the sender has no name
  return n;
}
template <auto kCall>
ssize_t ofParts(const Calls& call, int fd, char* buffer, size_t size) {
  const iovec parts[3] = {{buffer, 0}, {buffer, size / 3}, {buffer + size / 3, size - size / 3}};
  return (call.*kCall)(fd, parts, 3);
}
ssize_t ofMessage(const Calls& call, int fd, char* buffer, size_t size) {
  iovec part{buffer, size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return call.recvmsg(fd, &message, MSG_WAITALL);
}

const Receiver kReceivers[] = {
    {"recvfrom", withAddress<&Calls::recvfrom, MSG_WAITALL>, false},
    {"recv", [](const Calls& call, int fd, char* b, size_t n) { return call.recv(fd, b, n, MSG_WAITALL); }, false},
    {"recvmsg", ofMessage, false},
    {"recvfrom with a mark", withAddress<&Calls::recvfrom, 0>, true},
    {"read", [](const Calls& call, int fd, char* b, size_t n) { return call.read(fd, b, n); }, true},
    {"readv", ofParts<&Calls::readv>, true},
};

void sendWithRights(const Calls& call, int fd, std::string text) {
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  *CMSG_FIRSTHDR(&message) = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
  const int passenger = STDERR_FILENO;
  std::memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &passenger, sizeof passenger);
  EXPECT_EQ(call.sendmsg(fd, &message, 0), static_cast<ssize_t>(text.size()));
}

void receive(Run& run, const Receiver& by, int fd) {
  std::string buffer(20, '#');
  run.got(by.name, by.receive(run.call, fd, buffer.data(), buffer.size()));
  run.note("buffer", buffer);
}

Ends ends(Run& run, const Receiver& by) {
  const Ends made = run.keep(makeUnix(run.make, SOCK_STREAM));
  const int mark = 15;
  EXPECT_EQ(by.has_mark ? run.make.setsockopt(made[0], SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark) : 0, 0);
  return made;
}

void sentBefore(Run& run, const Receiver& by) {
  const Ends pair = ends(run, by);
  sendWithRights(libcCalls(), pair[1], "abc");
  receive(run, by, pair[0]);
}
void sentLater(Run& run, const Receiver& by) {
  const Ends pair = ends(run, by);
  run.whileItWaits([=](const Calls& libc) { sendWithRights(libc, pair[1], "abc"); });
  receive(run, by, pair[0]);
}
void sentBehindBytes(Run& run, const Receiver& by) {
  const Ends pair = ends(run, by);
  libcCalls().write(pair[1], "abc", 3);
  run.whileItWaits([=](const Calls& libc) {
    sendWithRights(libc, pair[1], "def");
    libc.write(pair[1], "ghijklmnopqrstuvwxyz", 20);
  });
  receive(run, by, pair[0]);
  run.join();
  receive(run, by, pair[0]);
}

// The address is told of each piece that has one.
void ofANamedSender(Run& run) {
  const int listener = run.keep(run.make.socket(AF_UNIX, SOCK_STREAM, 0));
  const int client = run.keep(run.make.socket(AF_UNIX, SOCK_STREAM, 0));
  const sockaddr_un any{.sun_family = AF_UNIX, .sun_path = {}};
  sockaddr_un name{};
  socklen_t size = sizeof name;
  for (const int fd : {listener, client})
    EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any.sun_family), 0);
  EXPECT_EQ(::listen(listener, 1), 0);
  EXPECT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&name), &size), 0);
  EXPECT_EQ(run.call.connect(client, reinterpret_cast<sockaddr*>(&name), size), 0);
  const int server = run.keep(run.call.accept(listener, nullptr, nullptr));
  EXPECT_EQ(::getsockname(client, reinterpret_cast<sockaddr*>(&name), &size), 0);
  for (const socklen_t room : {socklen_t{sizeof name}, size, socklen_t{3}, socklen_t{0}}) {
    libcCalls().write(client, "abc", 3);
    run.whileItWaits([=](const Calls& libc) { libc.write(client, "def", 3); });
    sockaddr_un from{};
    socklen_t from_size = room;
    char buffer[6] = {};
    run.got("recvfrom",
            run.call.recvfrom(server, buffer, sizeof buffer, MSG_WAITALL, reinterpret_cast<sockaddr*>(&from), &from_size));
    run.join();
    run.note("buffer", std::string(buffer, sizeof buffer));
    run.note("address", std::to_string(from_size == size) + std::to_string(std::memcmp(&from, &name, std::min(room, size)) == 0));
    const sockaddr_un clean{};
    EXPECT_EQ(std::memcmp(reinterpret_cast<char*>(&from) + room, &clean, sizeof from - room), 0);
  }
}

std::vector<Case> cases() {
  std::vector<Case> all = {{"OfANamedSender", ofANamedSender}};
  const std::pair<const char*, void (*)(Run&, const Receiver&)> situations[] = {
      {"SentBefore", sentBefore}, {"SentLater", sentLater}, {"SentBehindBytes", sentBehindBytes}};
  for (const auto& [name, body] : situations) {
    all.push_back({name, [body = body](Run& run) {
                     for (const Receiver& one : kReceivers) body(run, one);
                   }});
  }
  return all;
}

class RightsTest : public SameAsLibc {};

// HA-5
TEST_P(RightsTest, ResultErrnoAndData) { compare(GetParam()); }

INSTANTIATE_TEST_SUITE_P(SameAsLibc, RightsTest, testing::ValuesIn(cases()), nameOf);

}  // namespace
}  // namespace sylar::test
