// Hooked against raw: recvmmsg and sendmmsg.
#include <algorithm>

#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {
namespace {

/// Messages with buffers of their own, as recvmmsg and sendmmsg take them.
struct Messages {
  explicit Messages(size_t count, size_t size = 8) : bytes(count, std::string(size, '#')), parts(count), headers(count) {
    for (size_t i = 0; i < count; ++i) {
      parts[i] = {bytes[i].data(), size};
      headers[i].msg_hdr.msg_iov = &parts[i];
      headers[i].msg_hdr.msg_iovlen = 1;
      headers[i].msg_len = 77;
    }
  }
  unsigned count() const { return static_cast<unsigned>(headers.size()); }
  void note(Run& run) const {
    for (size_t i = 0; i < headers.size(); ++i)
      run.note("message", std::to_string(headers[i].msg_len) + ' ' + bytes[i].substr(0, 8));
  }
  std::vector<std::string> bytes;
  std::vector<iovec> parts;
  std::vector<mmsghdr> headers;
};

void receive(Run& run, int fd, unsigned count, int flags, timespec* timeout = nullptr) {
  Messages messages(count);
  run.got("recvmmsg", run.call.recvmmsg(fd, messages.headers.data(), count, flags, timeout));
  messages.note(run);
}

/// Whether a timeout was left alone, ran down, or was used up.
std::string stateOf(const timespec& now, const timespec& before) {
  if (now.tv_sec == before.tv_sec && now.tv_nsec == before.tv_nsec) return "unchanged";
  if (now.tv_sec == 0 && now.tv_nsec == 0) return "used up";
  return now.tv_sec < before.tv_sec ? "less" : "strange";
}

void feed(const Calls& call, int fd, const std::string& letters) {
  for (const char letter : letters) EXPECT_EQ(call.send(fd, &letter, 1, MSG_NOSIGNAL), 1);
}

// Cause: on a stream the hook wrote the length of a message itself, which ended the process.
void lengthsThatCannotBeWritten(Run& run, const Ends& ends) {
  auto* const page = static_cast<mmsghdr*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const Messages messages(2);
  std::ranges::copy(messages.headers, page);
  ::mprotect(page, 4096, PROT_READ);
  run.got("sendmmsg", run.call.sendmmsg(ends[1], page, 2, 0));
  run.note("length", std::to_string(page->msg_len));
  char buffer[16];
  for (int i = 0; i < 2; ++i) run.got("recv", run.call.recv(ends[0], buffer, sizeof buffer, MSG_DONTWAIT));
  ::munmap(page, 4096);
}

using Body = std::function<void(Run&, const Ends&)>;

std::vector<Case> casesOf(const std::string& kind, const std::function<Ends(const Calls&)>& make) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& name, const Body& body) {
    cases.push_back({kind + name, [=](Run& run) { body(run, run.keep(make(run.make))); }});
  };
  add("AllAreThere", [](Run& run, const Ends& ends) {
    feed(libcCalls(), ends[1], "abc");
    receive(run, ends[0], 3, 0);
  });
  add("ComeOneByOne", [](Run& run, const Ends& ends) {
    for (int i = 0; i < 3; ++i) run.later([=](const Calls& call) { feed(call, ends[1], "x"); });
    receive(run, ends[0], 3, 0);
  });
  add("WaitForOne", [](Run& run, const Ends& ends) {
    run.later([=](const Calls& call) { feed(call, ends[1], "x"); });
    receive(run, ends[0], 3, MSG_WAITFORONE);
  });
  add("DontWait", [](Run& run, const Ends& ends) {
    receive(run, ends[0], 3, MSG_DONTWAIT);
    feed(libcCalls(), ends[1], "a");
    receive(run, ends[0], 3, MSG_DONTWAIT);
  });
  add("SocketTimeoutBehindTheFirst", [](Run& run, const Ends& ends) {
    setTimeout(run.call, ends[0], SO_RCVTIMEO, 5'000);
    feed(libcCalls(), ends[1], "a");
    receive(run, ends[0], 3, 0);
    receive(run, ends[0], 3, 0);
  });
  add("TimeoutRunsDown", [](Run& run, const Ends& ends) {
    const timespec before{1000, 0};
    timespec left = before;
    feed(libcCalls(), ends[1], "ab");
    receive(run, ends[0], 2, 0, &left);
    run.note("left", stateOf(left, before));
    left = before;
    run.later([=](const Calls& call) { feed(call, ends[1], "cd"); });
    receive(run, ends[0], 2, 0, &left);
    run.note("left", stateOf(left, before));
  });
  add("TimeoutIsLookedAtBehindAMessageOnly", [](Run& run, const Ends& ends) {
    const timespec before{0, 1};
    timespec left = before;
    run.later([=](const Calls& call) { feed(call, ends[1], "a"); });
    receive(run, ends[0], 2, 0, &left);
    run.note("left", stateOf(left, before));
    feed(libcCalls(), ends[1], "bc");
    left = {0, 0};
    receive(run, ends[0], 2, 0, &left);
    run.note("left", stateOf(left, before));
    setTimeout(run.call, ends[0], SO_RCVTIMEO, 1'000);
    receive(run, ends[0], 1, 0);
    left = before;
    receive(run, ends[0], 2, 0, &left);
    run.note("left", stateOf(left, before));
  });
  add("Refusals", [](Run& run, const Ends& ends) {
    feed(libcCalls(), ends[1], "a");
    timespec bad{0, 1'000'000'000};
    receive(run, ends[0], 1, 0, &bad);
    bad = {-1, 0};
    receive(run, ends[0], 1, 0, &bad);
    receive(run, ends[0], 1, 0, static_cast<timespec*>(badPointer()));
    run.got("recvmmsg", run.call.recvmmsg(ends[0], static_cast<mmsghdr*>(badPointer()), 1, 0, nullptr));
    receive(run, ends[0], 0, 0);
    receive(run, -1, 1, 0);
    run.got("sendmmsg", run.call.sendmmsg(ends[0], static_cast<mmsghdr*>(badPointer()), 1, 0));
    run.got("sendmmsg", run.call.sendmmsg(ends[0], static_cast<mmsghdr*>(badPointer()), 0, 0));
    Messages messages(1);
    run.got("sendmmsg", run.call.sendmmsg(-1, messages.headers.data(), 1, 0));
  });
  add("LengthsThatCannotBeWritten", lengthsThatCannotBeWritten);
  add("SendStopsAtTheFirstError", [](Run& run, const Ends& ends) {
    Messages messages(4);
    messages.parts[2].iov_base = badPointer();
    run.got("sendmmsg", run.call.sendmmsg(ends[1], messages.headers.data(), 4, 0));
    for (const mmsghdr& one : messages.headers) run.note("sent", std::to_string(one.msg_len));
    run.got("sendmmsg", run.call.sendmmsg(ends[1], messages.headers.data() + 2, 2, 0));
  });
  add("SendToOneThatIsGone", [](Run& run, const Ends& ends) {
    run.close(ends[0]);
    Messages messages(2);
    run.got("sendmmsg", run.call.sendmmsg(ends[1], messages.headers.data(), 2, 0));
    run.noteSignals();
  });
  add("SendMany", [](Run& run, const Ends& ends) {
    Messages messages(40, 3000);
    run.later([=](const Calls& call) {
      char buffer[3000];
      for (ssize_t left = 40 * 3000; left > 0;) left -= call.recv(ends[0], buffer, sizeof buffer, 0);
    });
    run.got("sendmmsg", run.call.sendmmsg(ends[1], messages.headers.data(), 40, 0));
    run.note("last", std::to_string(messages.headers.back().msg_len));
  });
  return cases;
}

std::vector<Case> cases() {
  std::vector<Case> all = casesOf("Udp", makeUdp);
  for (const auto& [name, type] : {std::pair{"UnixDatagram", SOCK_DGRAM}, {"SeqPacket", SOCK_SEQPACKET}}) {
    std::ranges::move(casesOf(name, [type = type](const Calls& calls) { return makeUnix(calls, type); }),
                      std::back_inserter(all));
  }
  // Gone receivers of UDP report their refusal at any time.
  std::erase_if(all, [](const Case& one) { return one.name == "UdpSendToOneThatIsGone"; });

  for (const auto& [name, make] : {std::pair{"Tcp", +[](const Calls& calls) { return makeTcp(calls); }},
                                   {"UnixStream", +[](const Calls& calls) { return makeUnix(calls, SOCK_STREAM); }}}) {
    all.push_back({std::string(name) + "StreamOfWholeMessages", [make = make](Run& run) {
                     const Ends ends = run.keep(make(run.make));
                     Messages messages(3, 2'000'000);
                     run.later([=](const Calls& call) {
                       std::vector<char> buffer(6'000'000);
                       call.recv(ends[0], buffer.data(), buffer.size(), MSG_WAITALL);
                     });
                     run.got("sendmmsg", run.call.sendmmsg(ends[1], messages.headers.data(), 3, 0));
                     for (const mmsghdr& one : messages.headers) run.note("sent", std::to_string(one.msg_len));
                   }});
    all.push_back({std::string(name) + "LengthsThatCannotBeWritten",
                   [make = make](Run& run) { lengthsThatCannotBeWritten(run, run.keep(make(run.make))); }});
    all.push_back({std::string(name) + "StreamThatEnds", [make = make](Run& run) {
                     const Ends ends = run.keep(make(run.make));
                     run.close(ends[1]);
                     receive(run, ends[0], 2, 0);
                     Messages messages(2);
                     if (ends[0] >= 0)
                       run.got("sendmmsg", run.call.sendmmsg(ends[0], messages.headers.data(), 2, MSG_NOSIGNAL) < 3);
                   }});
  }
  all.push_back({"ShutDownWhileItWaits", [](Run& run) {
                   const Ends ends = run.keep(makeUnix(run.make, SOCK_SEQPACKET));
                   run.later([=](const Calls& call) {
                     feed(call, ends[1], "a");
                     EXPECT_EQ(::shutdown(ends[1], SHUT_WR), 0);
                   });
                   receive(run, ends[0], 3, 0);
                 }});
  return all;
}

class MessagesTest : public SameAsLibc {};

TEST_P(MessagesTest, Messages) { compare(GetParam()); }
INSTANTIATE_TEST_SUITE_P(SameAsLibc, MessagesTest, testing::ValuesIn(cases()), nameOf);

}  // namespace
}  // namespace sylar::test
