// Hooked against raw: select, pselect, ppoll and the waits of epoll.
#include <sys/resource.h>

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "tests/hook/fd/kinds.h"

namespace sylar::test {
namespace {

constexpr timespec kMoment{0, 5'000'000};

// ---- select. ------------------------------------------------------------------------------------------------------------------

struct Sets {
  Sets() {
    FD_ZERO(&read);
    FD_ZERO(&write);
    FD_ZERO(&except);
  }
  fd_set read, write, except;
};

/// Calls select and then pselect with the same sets, and writes down what each has left in them, by the places of `fds`.
void selects(Run& run, const std::vector<int>& fds, const Sets& sets, std::optional<timespec> timeout) {
  const int end = fds.empty() ? 0 : *std::ranges::max_element(fds) + 1;
  const auto say = [&](const std::string& what, int result, const Sets& left) {
    run.got(what, result);
    std::string bits;
    for (const int fd : fds) {
      bits += FD_ISSET(fd, &left.read) ? 'r' : '-';
      bits += FD_ISSET(fd, &left.write) ? 'w' : '-';
      bits += FD_ISSET(fd, &left.except) ? 'x' : '-';
      bits += ' ';
    }
    run.note("sets", bits);
  };
  Sets left = sets;
  timeval time = timeout ? timeval{timeout->tv_sec, timeout->tv_nsec / 1000} : timeval{};
  int result = run.call.select(end, &left.read, &left.write, &left.except, timeout ? &time : nullptr);
  say("select", result, left);
  if (timeout && result == 0) run.got("seconds and microseconds left", time.tv_sec * 1'000'000 + time.tv_usec);
  if (timeout && result > 0) run.note("less is left", timeout->tv_sec > time.tv_sec ? "yes" : "no");
  left = sets;
  const timespec before = timeout.value_or(timespec{});
  timespec same = before;
  result = run.call.pselect(end, &left.read, &left.write, &left.except, timeout ? &same : nullptr, nullptr);
  say("pselect", result, left);
  run.note("its timeout is as before", same.tv_sec == before.tv_sec && same.tv_nsec == before.tv_nsec ? "yes" : "no");
}

void selectOfNothing(Run& run) {
  selects(run, {}, {}, kMoment);
  selects(run, {}, {}, timespec{});
  run.got("null sets", run.call.pselect(1000, nullptr, nullptr, nullptr, &kMoment, nullptr));
}

void selectUntilReadable(Run& run) {
  for (const Ends made : {makeUnix(run.make, SOCK_STREAM), makeTcp(run.make), makeUdp(run.make), makePipe(run.make)}) {
    const Ends ends = run.keep(made);
    Sets sets;
    FD_SET(ends[0], &sets.read);
    FD_SET(ends[0], &sets.except);
    run.later([=](const Calls& libc) { libc.write(ends[1], "x", 1); });
    selects(run, {ends[0]}, sets, std::nullopt);
    run.join();
    FD_SET(ends[1], &sets.write);
    selects(run, {ends[0], ends[1]}, sets, timespec{1000, 0});
  }
}

void selectUntilTheEnd(Run& run) {
  const Ends ends = run.keep(makeTcp(run.make));
  Sets sets;
  FD_SET(ends[0], &sets.read);
  run.later([=](const Calls&) { ::shutdown(ends[1], SHUT_WR); });
  selects(run, {ends[0]}, sets, std::nullopt);
}

void selectOfUrgentBytes(Run& run) {
  const Ends ends = run.keep(makeTcp(run.make));
  Sets sets;
  FD_SET(ends[0], &sets.except);
  run.later([=](const Calls& libc) { libc.send(ends[1], "!", 1, MSG_OOB); });
  selects(run, {ends[0]}, sets, std::nullopt);
}

void selectTimesOut(Run& run) {
  const Ends ends = run.keep(makeUnix(run.make, SOCK_STREAM));
  Sets sets;
  FD_SET(ends[0], &sets.read);
  FD_SET(ends[1], &sets.read);
  FD_SET(ends[1], &sets.except);
  selects(run, {ends[0], ends[1]}, sets, kMoment);
}

void selectOfWrongThings(Run& run) {
  const Ends ends = run.keep(makeUnix(run.make, SOCK_STREAM));
  const int closed = run.make.dup(ends[0]);
  run.got("close", run.call.close(closed));
  Sets sets;
  FD_SET(ends[0], &sets.read);
  FD_SET(closed, &sets.read);
  selects(run, {ends[0], closed}, sets, timespec{1000, 0});
  timeval negative{-1, 0}, fraction{0, -1};
  run.got("negative", run.call.select(1, nullptr, nullptr, nullptr, &negative));
  run.got("negative fraction", run.call.select(1, nullptr, nullptr, nullptr, &fraction));
  const timespec too_much{0, 1'000'000'000};
  run.got("nanoseconds", run.call.pselect(1, nullptr, nullptr, nullptr, &too_much, nullptr));
  timeval moment{0, 1000};
  run.got("negative count", run.call.select(opaque(-1), nullptr, nullptr, nullptr, &moment));
  run.got("bad set", run.call.select(10, static_cast<fd_set*>(badPointer()), nullptr, nullptr, &moment));
}

/// Sets of more bits than an fd_set has, for numbers that it has no room for.
void selectOfHighNumbers(Run& run) {
  rlimit before{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit more = before;
  more.rlim_cur = std::min<rlim_t>(before.rlim_max, 4096);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &more), 0);
  const Ends ends = run.keep(makeUnix(run.make, SOCK_STREAM));
  const int high = run.keep(run.make.fcntl(ends[0], F_DUPFD, 3000));
  std::vector<uint64_t> bits(4096 / 64);
  const auto word = static_cast<size_t>(high) / 64;
  bits[word] |= uint64_t{1} << high % 64;
  run.later([=](const Calls& libc) { libc.write(ends[1], "x", 1); });
  run.got("select", run.call.select(high + 1, reinterpret_cast<fd_set*>(bits.data()), nullptr, nullptr, nullptr));
  run.got("bit", bits[word] >> high % 64 & 1);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

// ---- ppoll. -------------------------------------------------------------------------------------------------------------------

void ppollWaits(Run& run) {
  const Ends ends = run.keep(makeTcp(run.make));
  pollfd fds[2] = {{ends[0], POLLIN, 0x55}, {ends[1], POLLIN, 0x55}};
  run.got("timeout", run.call.ppoll(fds, 2, &kMoment, nullptr));
  run.got("revents", fds[0].revents);
  run.later([=](const Calls& libc) { libc.write(ends[1], "x", 1); });
  run.got("ready", run.call.ppoll(fds, 2, nullptr, nullptr));
  run.got("revents", fds[0].revents);
  run.got("revents", fds[1].revents);
}

void ppollOfWrongThings(Run& run) {
  pollfd none{-1, POLLIN, 0};
  const timespec negative{-1, 0}, too_much{0, 1'000'000'000};
  run.got("negative", run.call.ppoll(&none, 1, &negative, nullptr));
  run.got("nanoseconds", run.call.ppoll(&none, 1, &too_much, nullptr));
  run.got("no time", run.call.ppoll(&none, 1, &kMoment, nullptr));
}

// ---- Masks. -------------------------------------------------------------------------------------------------------------------

std::atomic<int> g_handled{0};

/// Blocks SIGUSR1 on this thread, with a handler that counts, as a program does that lets it through in its waits only.
class BlockedSignal {
 public:
  BlockedSignal() {
    struct sigaction count {};
    count.sa_handler = [](int) { g_handled.fetch_add(1); };
    EXPECT_EQ(::sigaction(SIGUSR1, &count, &m_action), 0);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    EXPECT_EQ(::pthread_sigmask(SIG_BLOCK, &one, &m_mask), 0);
    sigemptyset(&through);
  }
  ~BlockedSignal() {
    EXPECT_EQ(::pthread_sigmask(SIG_SETMASK, &m_mask, nullptr), 0);
    EXPECT_EQ(::sigaction(SIGUSR1, &m_action, nullptr), 0);
  }
  BlockedSignal(const BlockedSignal&) = delete;
  BlockedSignal& operator=(const BlockedSignal&) = delete;

  sigset_t through;

 private:
  struct sigaction m_action {};
  sigset_t m_mask;
};

/// Makes `wait` with a signal that is pending already, and with one that comes while it waits.
void masked(Run& run, const std::string& what, const std::function<int(const sigset_t* mask)>& wait) {
  BlockedSignal blocked;
  g_handled = 0;
  EXPECT_EQ(::pthread_kill(::pthread_self(), SIGUSR1), 0);
  run.got(what + ", pending", wait(&blocked.through));
  run.got("handled", g_handled);
  const pthread_t me = ::pthread_self();
  run.later([=](const Calls&) { EXPECT_EQ(::pthread_kill(me, SIGUSR1), 0); });
  run.got(what + ", coming", wait(&blocked.through));
  run.got("handled", g_handled);
  run.join();
}

void maskOfPpoll(Run& run) {
  const Ends ends = run.keep(makeTcp(run.make));
  masked(run, "ppoll", [&](const sigset_t* mask) {
    pollfd one{ends[0], POLLIN, 0};
    return run.call.ppoll(&one, 1, nullptr, mask);
  });
}

void maskOfPselect(Run& run) {
  const Ends ends = run.keep(makeTcp(run.make));
  masked(run, "pselect", [&](const sigset_t* mask) {
    fd_set read;
    FD_ZERO(&read);
    FD_SET(ends[0], &read);
    const int result = run.call.pselect(ends[0] + 1, &read, nullptr, nullptr, nullptr, mask);
    run.note("the set is as before", FD_ISSET(ends[0], &read) ? "yes" : "no");
    return result;
  });
}

void maskOfEpollPwait(Run& run) {
  const int epoll = run.keep(::epoll_create1(0));
  epoll_event event;
  masked(run, "epoll_pwait", [&](const sigset_t* mask) { return run.call.epoll_pwait(epoll, &event, 1, -1, mask); });
  masked(run, "epoll_pwait2", [&](const sigset_t* mask) { return run.call.epoll_pwait2(epoll, &event, 1, nullptr, mask); });
}

/// A mask that lets nothing through which is blocked outside.
void maskThatBlocks(Run& run) {
  sigset_t all;
  sigfillset(&all);
  pollfd none{-1, POLLIN, 0};
  run.got("ppoll", run.call.ppoll(&none, 1, &kMoment, &all));
  run.got("pselect", run.call.pselect(0, nullptr, nullptr, nullptr, &kMoment, &all));
}

// ---- epoll. -------------------------------------------------------------------------------------------------------------------

/// Notes the events of one wait, each with the place of its descriptor.
void waitsOnce(Run& run, int epoll, int timeout_ms) {
  epoll_event events[4];
  const int count = run.call.epoll_wait(epoll, events, 4, timeout_ms);
  run.got("epoll_wait", count);
  std::string all;
  for (int i = 0; i < count; ++i) all += std::to_string(events[i].data.u64) + ":" + std::to_string(events[i].events) + " ";
  run.note("events", all);
}

int epollOf(Run& run, std::initializer_list<std::pair<int, uint32_t>> watched) {
  const int epoll = run.keep(::epoll_create1(0));
  uint64_t place = 0;
  for (const auto& [fd, events] : watched) {
    epoll_event event{.events = events, .data = {.u64 = place++}};
    EXPECT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
  }
  return epoll;
}

void epollLevel(Run& run) {
  const Ends ends = run.keep(makeTcp(run.make));
  const int epoll = epollOf(run, {{ends[0], EPOLLIN | EPOLLRDHUP}});
  waitsOnce(run, epoll, 0);
  waitsOnce(run, epoll, 5);
  run.later([=](const Calls& libc) { libc.write(ends[1], "x", 1); });
  waitsOnce(run, epoll, -1);
  waitsOnce(run, epoll, -1);
  run.join();
  run.later([=](const Calls&) { ::shutdown(ends[1], SHUT_WR); });
  run.join();
  char byte;
  run.got("read", run.call.read(ends[0], &byte, 1));
  waitsOnce(run, epoll, -1);
}

void epollEdge(Run& run) {
  const Ends ends = run.keep(makeUnix(run.make, SOCK_STREAM));
  const int epoll = epollOf(run, {{ends[0], EPOLLIN | EPOLLET}});
  for (int i = 0; i < 3; ++i) {
    run.later([=](const Calls& libc) { libc.write(ends[1], "x", 1); });
    waitsOnce(run, epoll, -1);
    run.join();
    waitsOnce(run, epoll, 5);  // what is still there is no new edge
  }
}

void epollOneShot(Run& run) {
  const Ends ends = run.keep(makePipe(run.make));
  const int epoll = epollOf(run, {{ends[0], EPOLLIN | EPOLLONESHOT}});
  run.later([=](const Calls& libc) { libc.write(ends[1], "x", 1); });
  waitsOnce(run, epoll, -1);
  run.join();
  waitsOnce(run, epoll, 5);
  epoll_event again{.events = EPOLLIN | EPOLLONESHOT, .data = {.u64 = 7}};
  run.got("epoll_ctl", ::epoll_ctl(epoll, EPOLL_CTL_MOD, ends[0], &again));
  waitsOnce(run, epoll, -1);
}

void epollOfEpolls(Run& run) {
  const Ends ends = run.keep(makeTcp(run.make));
  const int inner = epollOf(run, {{ends[0], EPOLLIN}});
  const int outer = epollOf(run, {{inner, EPOLLIN}});
  run.later([=](const Calls& libc) { libc.write(ends[1], "x", 1); });
  waitsOnce(run, outer, -1);
  waitsOnce(run, inner, -1);
  run.join();
}

void epollOfWhatIsAddedMeanwhile(Run& run) {
  const Ends ends = run.keep(makeTcp(run.make));
  const int epoll = epollOf(run, {});
  run.later([=](const Calls&) {
    epoll_event event{.events = EPOLLOUT, .data = {.u64 = 5}};
    EXPECT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, ends[1], &event), 0);
  });
  waitsOnce(run, epoll, -1);
}

void epollOfWrongThings(Run& run) {
  const Ends ends = run.keep(makeTcp(run.make));
  const int epoll = epollOf(run, {});
  epoll_event event;
  run.got("no room", run.call.epoll_wait(epoll, &event, 0, -1));
  run.got("negative room", run.call.epoll_wait(epoll, &event, opaque(-1), -1));
  run.got("no epoll", run.call.epoll_wait(ends[0], &event, 1, -1));
  run.got("closed", run.call.epoll_wait(-1, &event, 1, -1));
  const timespec wrong{0, -1};
  run.got("timeout", run.call.epoll_pwait2(epoll, &event, 1, &wrong, nullptr));
  run.got("time out", run.call.epoll_pwait2(epoll, &event, 1, &kMoment, nullptr));
}

std::vector<Case> cases() {
  return {
      {"SelectOfNothing", selectOfNothing},
      {"SelectUntilReadable", selectUntilReadable},
      {"SelectUntilTheEnd", selectUntilTheEnd},
      {"SelectOfUrgentBytes", selectOfUrgentBytes},
      {"SelectTimesOut", selectTimesOut},
      {"SelectOfWrongThings", selectOfWrongThings},
      {"SelectOfHighNumbers", selectOfHighNumbers},
      {"PpollWaits", ppollWaits},
      {"PpollOfWrongThings", ppollOfWrongThings},
      {"MaskOfPpoll", maskOfPpoll},
      {"MaskOfPselect", maskOfPselect},
      {"MaskOfEpollPwait", maskOfEpollPwait},
      {"MaskThatBlocks", maskThatBlocks},
      {"EpollLevel", epollLevel},
      {"EpollEdge", epollEdge},
      {"EpollOneShot", epollOneShot},
      {"EpollOfEpolls", epollOfEpolls},
      {"EpollOfWhatIsAddedMeanwhile", epollOfWhatIsAddedMeanwhile},
      {"EpollOfWrongThings", epollOfWrongThings},
  };
}

class ReadyTest : public SameAsLibc {};

// HA-5
TEST_P(ReadyTest, ResultErrnoAndData) { compare(GetParam()); }

INSTANTIATE_TEST_SUITE_P(SameAsLibc, ReadyTest, testing::ValuesIn(cases()), nameOf);

}  // namespace
}  // namespace sylar::test
