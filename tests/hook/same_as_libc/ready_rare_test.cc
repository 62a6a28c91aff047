// Hooked against raw: what is rare about select, ppoll and the waits of epoll: odd sets, odd arguments, each way of a mask.
#include <sys/mman.h>

#include <csignal>

#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {
namespace {

/// In every thread of the process. A mask of a call lets it through.
const bool g_signal_is_blocked = [] {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGUSR1);
  return ::pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0;
}();
std::atomic<int> g_handled{0};

sigset_t noSignals() {
  sigset_t none;
  ::sigemptyset(&none);
  return none;
}

constexpr timespec kLong{60, 0};
constexpr timespec kShort{0, 2'000'000};

Ends stream(Run& run) { return run.keep(makeUnix(run.make, SOCK_STREAM)); }
void laterWrites(Run& run, int fd) {
  run.later([fd](const Calls& libc) { libc.write(fd, "x", 1); });
}

// ---- select. --------------------------------------------------------------------------------------------------------------------

struct Sets {
  Sets() {
    for (fd_set* const one : {&reads, &writes, &fails}) FD_ZERO(one);
  }
  fd_set reads, writes, fails;
};

void noteBits(Run& run, const Sets& sets, int fd, const std::string& name) {
  run.note(name, std::string(FD_ISSET(fd, &sets.reads) ? "r" : "") + (FD_ISSET(fd, &sets.writes) ? "w" : "") +
                     (FD_ISSET(fd, &sets.fails) ? "e" : ""));
}
/// What is left of `kLong`. The exact time is nobody's promise.
void noteRest(Run& run, timeval rest) {
  run.note("rest", rest.tv_sec == 0 && rest.tv_usec == 0 ? "none" : rest.tv_sec <= kLong.tv_sec ? "some" : "more");
  run.note("microseconds", rest.tv_usec >= 0 && rest.tv_usec < 1'000'000 ? "in range" : "too many");
}

void selectLater(Run& run) {
  const Ends ends = stream(run);
  const int count = std::max(ends[0], ends[1]) + 1;
  for (const bool with_set : {true, false}) {
    Sets sets;
    FD_SET(ends[0], &sets.reads);
    FD_SET(ends[1], &sets.reads);
    timeval timeout{kLong.tv_sec, 0};
    laterWrites(run, ends[1]);
    run.got("select", run.call.select(count, &sets.reads, nullptr, with_set ? &sets.fails : nullptr, &timeout));
    noteBits(run, sets, ends[0], "a");
    noteBits(run, sets, ends[1], "b");
    noteRest(run, timeout);
    run.join();
    char byte;
    run.got("read", run.call.read(ends[0], &byte, 1));
  }
}

void selectCountsBits(Run& run) {
  const Ends ends = run.keep(makeTcp(run.make));
  Sets sets;
  FD_SET(ends[0], &sets.reads);
  FD_SET(ends[0], &sets.writes);
  FD_SET(ends[0], &sets.fails);
  timeval timeout{kLong.tv_sec, 2'500'000};
  run.got("send", run.call.send(ends[1], "ab", 2, MSG_OOB));
  pollfd urgent{ends[0], POLLPRI, 0};
  run.got("poll", run.call.poll(&urgent, 1, -1));
  run.got("select", run.call.select(ends[0] + 1, &sets.reads, &sets.writes, &sets.fails, &timeout));
  noteBits(run, sets, ends[0], "a");
  run.note("microseconds", timeout.tv_usec < 1'000'000 ? "in range" : "too many");
}

void selectWaitsForUrgentData(Run& run) {
  const Ends ends = run.keep(makeTcp(run.make));
  Sets sets;
  FD_SET(ends[0], &sets.fails);
  run.later([=](const Calls& libc) { libc.send(ends[1], "a", 1, MSG_OOB); });
  run.got("pselect", run.call.pselect(ends[0] + 1, nullptr, nullptr, &sets.fails, &kLong, nullptr));
  noteBits(run, sets, ends[0], "a");
}

void selectSeesAHangUp(Run& run) {
  const Ends ends = stream(run);
  Sets sets;
  FD_SET(ends[0], &sets.reads);
  run.later([=](const Calls&) { ::shutdown(ends[1], SHUT_WR); });
  run.got("select", run.call.select(ends[0] + 1, &sets.reads, nullptr, nullptr, nullptr));
  noteBits(run, sets, ends[0], "a");
}

void selectEndsInTime(Run& run) {
  const Ends ends = stream(run);
  const int count = std::max(ends[0], ends[1]) + 1;
  Sets sets;
  FD_SET(ends[0], &sets.reads);
  FD_SET(ends[1], &sets.fails);
  timeval timeout{0, 2000};
  run.got("select", run.call.select(count, &sets.reads, nullptr, &sets.fails, &timeout));
  noteBits(run, sets, ends[0], "a");
  noteBits(run, sets, ends[1], "b");
  noteRest(run, timeout);
  FD_SET(ends[0], &sets.reads);
  timespec unchanged = kShort;
  run.got("pselect", run.call.pselect(count, &sets.reads, nullptr, nullptr, &unchanged, nullptr));
  noteBits(run, sets, ends[0], "a");
  run.got("nanoseconds", unchanged.tv_nsec);
}

void selectOfNothingSleeps(Run& run) {
  timeval timeout{0, 1500};
  run.got("select", run.call.select(0, nullptr, nullptr, nullptr, &timeout));
  noteRest(run, timeout);
  run.got("pselect", run.call.pselect(0, nullptr, nullptr, nullptr, &kShort, nullptr));
}

/// Bits from the count on are not asked for. Those in the last word are cleared, others stay.
void selectPassesOverHigherBits(Run& run) {
  const Ends ends = stream(run);
  run.got("write", run.call.write(ends[1], "x", 1));
  Sets sets;
  FD_SET(ends[0], &sets.reads);
  FD_SET(ends[0] / 64 * 64 + 63, &sets.reads);
  FD_SET(ends[0] / 64 * 64 + 64, &sets.reads);
  run.got("select", run.call.select(ends[0] + 1, &sets.reads, nullptr, nullptr, nullptr));
  noteBits(run, sets, ends[0], "a");
  noteBits(run, sets, ends[0] / 64 * 64 + 63, "in the last word");
  noteBits(run, sets, ends[0] / 64 * 64 + 64, "behind it");
}

/// Sets of more than FD_SETSIZE bits. No process has numbers as high as the last ones, so the kernel passes over them.
void selectTakesLargeSets(Run& run) {
  const Ends ends = stream(run);
  const int high = run.keep(run.call.fcntl(ends[0], F_DUPFD, 1500));
  run.note("high", high >= 1500 ? "yes" : "no");
  constexpr int kBits = 1 << 22;
  std::vector<uint64_t> bits(kBits / 64);
  bits[static_cast<size_t>(high) / 64] |= uint64_t{1} << (high % 64);
  bits[8000] = bits.back() = ~uint64_t{0};
  laterWrites(run, ends[1]);
  run.got("select", run.call.select(kBits, reinterpret_cast<fd_set*>(bits.data()), nullptr, nullptr, nullptr));
  run.got("bit", static_cast<ssize_t>(bits[static_cast<size_t>(high) / 64] >> (high % 64) & 1));
  run.note("beyond", std::to_string(bits[8000]));
  run.note("at the end", std::to_string(bits.back()));
}

void selectRefuses(Run& run) {
  const Ends ends = stream(run);
  const int closed = run.call.dup(ends[0]);
  run.call.close(closed);
  auto* const nowhere = static_cast<fd_set*>(badPointer());
  Sets sets;
  FD_SET(ends[0], &sets.reads);
  FD_SET(closed, &sets.writes);
  timeval timeout{kLong.tv_sec, 0};
  const int count = std::max(ends[0], closed) + 1;
  run.got("closed", run.call.select(count, &sets.reads, &sets.writes, nullptr, &timeout));
  noteBits(run, sets, ends[0], "a");
  noteBits(run, sets, closed, "closed");
  noteRest(run, timeout);
  run.got("-1 numbers", run.call.select(opaque(-1), &sets.reads, nullptr, nullptr, nullptr));
  run.got("bad reads", run.call.select(count, nowhere, nullptr, nullptr, &timeout));
  run.got("bad writes", run.call.select(count, nullptr, nowhere, nullptr, &timeout));
  run.got("bad fails", run.call.pselect(count, nullptr, nullptr, nowhere, &kLong, nullptr));
  run.got("bad set of no numbers", run.call.select(0, nowhere, nullptr, nullptr, &(timeout = {0, 100})));
  for (const timeval& bad : {timeval{-1, 0}, timeval{0, -1}}) {
    timeout = bad;
    run.got("bad timeval", run.call.select(count, &sets.reads, nullptr, nullptr, &timeout));
    run.got("seconds", timeout.tv_sec + 10);
  }
  for (const timespec& bad : {timespec{-1, 0}, timespec{0, -1}, timespec{0, 1'000'000'000}}) {
    run.got("bad timespec", run.call.pselect(count, &sets.reads, nullptr, nullptr, &bad, nullptr));
    pollfd one{ends[0], POLLIN, 0};
    run.got("ppoll", run.call.ppoll(&one, 1, &bad, nullptr));
  }
  run.got("bad mask", run.call.pselect(0, nullptr, nullptr, nullptr, &kLong, static_cast<sigset_t*>(badPointer())));
}

void selectIntoReadOnlyMemory(Run& run) {
  const Ends ends = stream(run);
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* const reads = static_cast<fd_set*>(page);
  FD_SET(ends[0], reads);
  ::mprotect(page, 4096, PROT_READ);
  laterWrites(run, ends[1]);
  run.got("select", run.call.select(ends[0] + 1, reads, nullptr, nullptr, nullptr));
  ::munmap(page, 4096);
}

// Cause: the set was read as far as the count goes, so that the call failed with EFAULT.
void selectAtTheEndOfMemory(Run& run) {
  constexpr size_t kPage = 4096;
  char* const pages = static_cast<char*>(::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ::munmap(pages + kPage, kPage);
  const Ends ends = run.keep(makePipe(libcCalls()));
  fd_set& reads = *reinterpret_cast<fd_set*>(pages + kPage - sizeof(fd_set));
  FD_SET(ends[0], &reads);
  timeval moment{0, 1000};
  run.got("nothing", run.call.select(1 << 20, &reads, nullptr, nullptr, &moment));
  run.note("set", std::to_string(FD_ISSET(ends[0], &reads)));
  FD_SET(ends[0], &reads);
  run.later([=](const Calls& libc) { libc.write(ends[1], "x", 1); });
  run.got("a byte", run.call.select(1 << 20, &reads, nullptr, nullptr, nullptr));
  run.note("set", std::to_string(FD_ISSET(ends[0], &reads)));
  ::munmap(pages, kPage);
}

// ---- ppoll. ---------------------------------------------------------------------------------------------------------------------

void ppollWaits(Run& run) {
  const Ends ends = stream(run);
  pollfd fds[2] = {{ends[0], POLLIN, 0}, {-1, POLLIN, 7}};
  timespec timeout = kShort;
  run.got("ppoll", run.call.ppoll(fds, 2, &timeout, nullptr));
  run.got("nanoseconds", timeout.tv_nsec);
  laterWrites(run, ends[1]);
  timeout = kLong;
  run.got("ppoll", run.call.ppoll(fds, 2, &timeout, nullptr));
  run.got("seconds", timeout.tv_sec);
  run.got("revents", fds[0].revents);
  run.got("of none", fds[1].revents);
  run.got("bad array", run.call.ppoll(static_cast<pollfd*>(badPointer()), 1, nullptr, nullptr));
  run.got("bad mask", run.call.ppoll(fds, 1, nullptr, static_cast<sigset_t*>(badPointer())));
}

// ---- epoll. ---------------------------------------------------------------------------------------------------------------------

int watching(Run& run, int fd, uint32_t events) {
  const int epoll = run.keep(::epoll_create1(0));
  epoll_event event{.events = events, .data = {.u64 = 42}};
  run.got("add", ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
  return epoll;
}

/// The four calls, with the same timeout.
using EpollWait = int (*)(const Calls& call, int epoll, epoll_event* events, int capacity, const timespec& timeout);
int milliseconds(const timespec& time) { return static_cast<int>(time.tv_sec * 1000 + time.tv_nsec / 1'000'000); }
int viaWait(const Calls& call, int epoll, epoll_event* events, int capacity, const timespec& timeout) {
  return call.epoll_wait(epoll, events, capacity, milliseconds(timeout));
}
int viaPwait(const Calls& call, int epoll, epoll_event* events, int capacity, const timespec& timeout) {
  const sigset_t none = noSignals();
  return call.epoll_pwait(epoll, events, capacity, milliseconds(timeout), &none);
}
int viaPwait2(const Calls& call, int epoll, epoll_event* events, int capacity, const timespec& timeout) {
  return call.epoll_pwait2(epoll, events, capacity, &timeout, nullptr);
}

void epollWaits(Run& run, EpollWait wait, uint32_t how) {
  const Ends ends = stream(run);
  const int epoll = watching(run, ends[0], EPOLLIN | how);
  epoll_event got[4] = {};
  run.got("wait", wait(run.call, epoll, got, 4, kShort));
  for (int i = 0; i < 2; ++i) {
    laterWrites(run, ends[1]);
    run.got("wait", wait(run.call, epoll, got, 4, (how & EPOLLONESHOT) != 0 && i > 0 ? kShort : kLong));
    run.join();
    run.got("events", got[0].events);
    run.got("data", static_cast<ssize_t>(got[0].data.u64));
    run.got("wait again", wait(run.call, epoll, got, 4, kShort));
  }
  epoll_event event{.events = EPOLLIN | (how & ~uint32_t{EPOLLEXCLUSIVE}), .data = {.u64 = 43}};
  if ((how & EPOLLEXCLUSIVE) == 0) run.got("modify", ::epoll_ctl(epoll, EPOLL_CTL_MOD, ends[0], &event));
  if ((how & EPOLLEXCLUSIVE) == 0) run.got("wait", wait(run.call, epoll, got, 4, kLong));
}

void epollTakesTurns(Run& run) {
  const Ends ends = stream(run);
  const int epoll = watching(run, ends[0], EPOLLOUT);
  epoll_event event{.events = EPOLLOUT, .data = {.u64 = 43}};
  run.got("add", ::epoll_ctl(epoll, EPOLL_CTL_ADD, ends[1], &event));
  uint64_t sum = 0;
  for (int i = 0; i < 4; ++i) {
    run.got("wait", run.call.epoll_wait(epoll, &event, 1, -1));
    sum += event.data.u64;
  }
  run.note("sum", std::to_string(sum));
}

void epollSeesWhatIsAddedLater(Run& run) {
  const Ends ends = stream(run);
  const int epoll = run.keep(::epoll_create1(0));
  run.later([=](const Calls&) {
    epoll_event event{.events = EPOLLOUT, .data = {.u64 = 44}};
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
  });
  epoll_event got{};
  run.got("wait", run.call.epoll_pwait2(epoll, &got, 1, nullptr, nullptr));
  run.got("data", static_cast<ssize_t>(got.data.u64));
}

void epollRefuses(Run& run) {
  const Ends ends = stream(run);
  const int epoll = watching(run, ends[0], EPOLLOUT);
  epoll_event got{};
  for (const EpollWait wait : {viaWait, viaPwait, viaPwait2}) {
    run.got("no room", wait(run.call, epoll, &got, opaque(0), kLong));
    run.got("less", wait(run.call, epoll, &got, opaque(-1), kLong));
    run.got("too much room", wait(run.call, epoll, &got, opaque(INT_MAX), kLong));
    run.got("no number", wait(run.call, opaque(-1), &got, 1, kLong));
    run.got("no epoll", wait(run.call, ends[0], &got, 1, kLong));
    run.got("bad events", wait(run.call, epoll, static_cast<epoll_event*>(badPointer()), 1, kLong));
  }
  for (const timespec& bad : {timespec{-1, 0}, timespec{0, -1}, timespec{0, 1'000'000'000}}) {
    run.got("bad timespec", run.call.epoll_pwait2(epoll, &got, 1, &bad, nullptr));
  }
  run.got("timespec nowhere", run.call.epoll_pwait2(epoll, &got, 1, static_cast<timespec*>(badPointer()), nullptr));
  run.got("bad mask", run.call.epoll_pwait(epoll, &got, 1, -1, static_cast<sigset_t*>(badPointer())));
}

// ---- Signals. -------------------------------------------------------------------------------------------------------------------

/// A call with a mask that waits for `fd` to be readable. `epoll` watches the same.
using MaskedWait = int (*)(const Calls& call, int fd, int epoll, const timespec& timeout, const sigset_t* mask);
int maskedPpoll(const Calls& call, int fd, int, const timespec& timeout, const sigset_t* mask) {
  pollfd one{fd, POLLIN, 0};
  return call.ppoll(&one, 1, &timeout, mask);
}
int maskedPselect(const Calls& call, int fd, int, const timespec& timeout, const sigset_t* mask) {
  Sets sets;
  FD_SET(fd, &sets.reads);
  const int ready = call.pselect(fd + 1, &sets.reads, nullptr, nullptr, &timeout, mask);
  EXPECT_EQ(FD_ISSET(fd, &sets.reads), ready != 0) << "an error leaves the sets alone";
  return ready;
}
int maskedPwait(const Calls& call, int, int epoll, const timespec& timeout, const sigset_t* mask) {
  epoll_event got{};
  return call.epoll_pwait(epoll, &got, 1, milliseconds(timeout), mask);
}
int maskedPwait2(const Calls& call, int, int epoll, const timespec& timeout, const sigset_t* mask) {
  epoll_event got{};
  return call.epoll_pwait2(epoll, &got, 1, &timeout, mask);
}

void noteMask(Run& run) {
  sigset_t mask;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  run.got("blocked afterwards", ::sigismember(&mask, SIGUSR1));
  run.got("handled", g_handled.exchange(0));
}

void isInterrupted(Run& run, MaskedWait wait) {
  struct sigaction count {};
  count.sa_handler = SIG_IGN;  // forgets what is pending
  ::sigaction(SIGUSR1, &count, nullptr);
  count.sa_handler = [](int) { g_handled.fetch_add(1); };
  count.sa_flags = SA_RESTART;  // which changes nothing for these calls
  ::sigaction(SIGUSR1, &count, nullptr);
  const Ends ends = stream(run);
  const int epoll = watching(run, ends[0], EPOLLIN);
  const sigset_t none = noSignals();

  ::pthread_kill(::pthread_self(), SIGUSR1);
  run.got("with one pending", wait(run.call, ends[0], epoll, kLong, &none));
  noteMask(run);

  const pthread_t thread = ::pthread_self();
  run.later([=](const Calls&) { ::pthread_kill(thread, SIGUSR1); });
  run.got("with one to the thread", wait(run.call, ends[0], epoll, kLong, &none));
  noteMask(run);
  run.join();

  run.later([](const Calls&) { ::kill(::getpid(), SIGUSR1); });
  run.got("with one to the process", wait(run.call, ends[0], epoll, kLong, &none));
  noteMask(run);
  run.join();

  run.got("with none", wait(run.call, ends[0], epoll, kShort, &none));
  laterWrites(run, ends[1]);
  run.got("with a byte", wait(run.call, ends[0], epoll, kLong, &none));
  noteMask(run);
  run.join();

  // What is ready comes first, and the signal stays.
  ::pthread_kill(::pthread_self(), SIGUSR1);
  run.got("with both", wait(run.call, ends[0], epoll, kLong, &none));
  noteMask(run);
  char byte;
  run.got("read", run.call.read(ends[0], &byte, 1));

  // A mask that blocks the signal, too, and no mask.
  sigset_t blocks = noSignals();
  ::sigaddset(&blocks, SIGUSR1);
  run.got("blocked", wait(run.call, ends[0], epoll, kShort, &blocks));
  run.got("without a mask", wait(run.call, ends[0], epoll, kShort, nullptr));
  noteMask(run);
  run.got("the next", wait(run.call, ends[0], epoll, kLong, &none));
  noteMask(run);
}

/// A signal that is ignored ends nothing.
void passesOverIgnoredOnes(Run& run, MaskedWait wait) {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGUSR1, &ignore, nullptr);
  const Ends ends = stream(run);
  const sigset_t none = noSignals();
  ::pthread_kill(::pthread_self(), SIGUSR1);
  run.later([=](const Calls& libc) {
    ::kill(::getpid(), SIGUSR1);
    libc.usleep(1000);
    libc.write(ends[1], "x", 1);
  });
  run.got("wait", wait(run.call, ends[0], -1, kLong, &none));
}

std::vector<Case> readyCases() {
  std::vector<Case> cases = {
      {"SelectLater", selectLater},
      {"SelectCountsBits", selectCountsBits},
      {"SelectWaitsForUrgentData", selectWaitsForUrgentData},
      {"SelectSeesAHangUp", selectSeesAHangUp},
      {"SelectEndsInTime", selectEndsInTime},
      {"SelectOfNothingSleeps", selectOfNothingSleeps},
      {"SelectPassesOverHigherBits", selectPassesOverHigherBits},
      {"SelectTakesLargeSets", selectTakesLargeSets},
      {"SelectRefuses", selectRefuses},
      {"SelectIntoReadOnlyMemory", selectIntoReadOnlyMemory},
      {"SelectAtTheEndOfMemory", selectAtTheEndOfMemory},
      {"PpollWaits", ppollWaits},
      {"EpollTakesTurns", epollTakesTurns},
      {"EpollSeesWhatIsAddedLater", epollSeesWhatIsAddedLater},
      {"EpollRefuses", epollRefuses},
  };
  const std::pair<const char*, EpollWait> waits[] = {
      {"EpollWait", viaWait}, {"EpollPwait", viaPwait}, {"EpollPwait2", viaPwait2}};
  const std::pair<const char*, uint32_t> ways[] = {
      {"ByLevel", 0}, {"ByEdge", EPOLLET}, {"Once", EPOLLONESHOT}, {"Exclusive", EPOLLEXCLUSIVE}};
  for (const auto& [name, wait] : waits) {
    for (const auto& [way, how] : ways) {
      cases.push_back({std::string(name) + way, [wait = wait, how = how](Run& run) { epollWaits(run, wait, how); }});
    }
  }
  const std::pair<const char*, MaskedWait> masked[] = {
      {"Ppoll", maskedPpoll}, {"Pselect", maskedPselect}, {"EpollPwait", maskedPwait}, {"EpollPwait2", maskedPwait2}};
  for (const auto& [name, wait] : masked) {
    cases.push_back({std::string(name) + "IsInterrupted", [wait = wait](Run& run) { isInterrupted(run, wait); }});
  }
  for (const auto& [name, wait] : {masked[0], masked[1]}) {
    cases.push_back(
        {std::string(name) + "PassesOverIgnoredSignals", [wait = wait](Run& run) { passesOverIgnoredOnes(run, wait); }});
  }
  return cases;
}

class ReadyRareTest : public SameAsLibc {};

// HA-5
TEST_P(ReadyRareTest, ResultErrnoAndData) {
  ASSERT_TRUE(g_signal_is_blocked);
  compare(GetParam());
}

INSTANTIATE_TEST_SUITE_P(SameAsLibc, ReadyRareTest, testing::ValuesIn(readyCases()), nameOf);

}  // namespace
}  // namespace sylar::test
