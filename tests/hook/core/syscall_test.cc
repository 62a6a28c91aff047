// A call made by its number (syscall) waits, fails and keeps the table of descriptors true as the one made by its name, and its
// results are the kernel's own.
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>

#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {
namespace {

using Wait = std::function<void(const Pair& pair, char* buffer)>;

// Another fiber of the only worker runs meanwhile; without the hook it would never begin.
TEST(Syscall, WaitsAsTheCallOfThatName) {
  const std::pair<const char*, Wait> calls[] = {
      {"read", [](const Pair& pair, char* buffer) { EXPECT_EQ(::syscall(SYS_read, pair.a, buffer, size_t{8}), 5); }},
      {"recvfrom", [](const Pair& pair,
                      char* buffer) { EXPECT_EQ(::syscall(SYS_recvfrom, pair.a, buffer, size_t{8}, 0L, nullptr, nullptr), 5); }},
      {"preadv2",
       [](const Pair& pair, char* buffer) {
         const iovec part{buffer, 8};
         EXPECT_EQ(::syscall(SYS_preadv2, pair.a, &part, 1, -1L, 0L, 0L), 5);
       }},
      {"recvmmsg",
       [](const Pair& pair, char* buffer) {
         iovec part{buffer, 8};
         mmsghdr message{};
         message.msg_hdr.msg_iov = &part;
         message.msg_hdr.msg_iovlen = 1;
         EXPECT_EQ(::syscall(SYS_recvmmsg, pair.a, &message, 1, 0, nullptr), 1);
       }},
      {"poll",
       [](const Pair& pair, char* buffer) {
         pollfd one{pair.a, POLLIN, 0};
         EXPECT_EQ(::syscall(SYS_poll, &one, 1, -1), 1);
         EXPECT_EQ(::syscall(SYS_read, pair.a, buffer, size_t{8}), 5);
       }},
      {"ppoll",
       [](const Pair& pair, char* buffer) {
         pollfd one{pair.a, POLLIN, 0};
         EXPECT_EQ(::syscall(SYS_ppoll, &one, 1, nullptr, nullptr, 0), 1);
         EXPECT_EQ(::syscall(SYS_read, pair.a, buffer, size_t{8}), 5);
       }},
      {"pselect6",
       [](const Pair& pair, char* buffer) {
         fd_set set;
         FD_ZERO(&set);
         FD_SET(pair.a, &set);
         EXPECT_EQ(::syscall(SYS_pselect6, pair.a + 1, &set, nullptr, nullptr, nullptr, static_cast<void*>(nullptr)), 1);
         EXPECT_EQ(::syscall(SYS_read, pair.a, buffer, size_t{8}), 5);
       }},
      {"epoll_pwait",
       [](const Pair& pair, char* buffer) {
         const int epoll = ::epoll_create1(0);
         epoll_event event{EPOLLIN, {}};
         EXPECT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, pair.a, &event), 0);
         EXPECT_EQ(::syscall(SYS_epoll_pwait, epoll, &event, 1, -1, nullptr, 0), 1);
         EXPECT_EQ(::syscall(SYS_read, pair.a, buffer, size_t{8}), 5);
         EXPECT_EQ(::close(epoll), 0);
       }},
  };
  for (const auto& [name, wait] : calls) {
    SCOPED_TRACE(name);
    const Pair pair = unixPair();
    char buffer[8] = {};
    inFiber([&, wait = wait] {
      IOManager::GetThis()->schedule([&] { EXPECT_EQ(::syscall(SYS_write, pair.b, "hello", size_t{5}), 5); });
      wait(pair, buffer);
    });
    EXPECT_STREQ(buffer, "hello");
  }
}

TEST(Syscall, SleepsLetOthersRun) {
  const timespec moment{0, 1'000'000};
  std::string order;
  inFiber([&] {
    IOManager::GetThis()->schedule([&] { order += "other "; });
    EXPECT_EQ(::syscall(SYS_nanosleep, &moment, nullptr), 0);
    order += "first ";
    IOManager::GetThis()->schedule([&] { order += "other "; });
    EXPECT_EQ(::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &moment, nullptr), 0);
    order += "second";
  });
  EXPECT_EQ(order, "other first other second");
}

TEST(Syscall, CloseEndsTheWaitOfAFiber) {
  for (const long number : {long{SYS_close}, long{SYS_close_range}}) {
    const Pair pair = unixPair();
    const int reader = ::dup(pair.a);
    inFiber([&] {
      IOManager::GetThis()->schedule([&] { EXPECT_EQ(::syscall(number, reader, reader, 0), 0); });
      char byte;
      EXPECT_EQ(::read(reader, &byte, 1), -1);
      EXPECT_EQ(errno, EBADF);
    });
  }
}

// pthreads(7): no call by number is a cancellation point. Cause: the call by name is one, and the unwinding ended the process,
// because syscall is declared to throw nothing.
TEST(Syscall, IsNoCancellationPoint) {
  Pair pair = pipePair();
  std::thread([&] {
    ::pthread_cancel(::pthread_self());
    const int fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY, 0));
    EXPECT_GE(fd, 0);
    EXPECT_EQ(::syscall(SYS_close, fd), 0);
    EXPECT_EQ(::syscall(SYS_fcntl, pair.a, F_SETLKW, nullptr), -1);
    EXPECT_EQ(::syscall(SYS_accept, pair.a, nullptr, nullptr), -1);
    int state = PTHREAD_CANCEL_DISABLE;
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);  // the thread ends as any other
    EXPECT_EQ(state, PTHREAD_CANCEL_ENABLE);
  }).join();
}

TEST(Syscall, FlagsAreSeen) {
  const Pair pair = unixPair();
  inFiber([&] {
    char byte;
    EXPECT_EQ(::syscall(SYS_fcntl, pair.a, F_SETFL, O_RDWR | O_NONBLOCK), 0);
    EXPECT_EQ(::read(pair.a, &byte, 1), -1);
    EXPECT_EQ(errno, EAGAIN);
    int on = 1;
    EXPECT_EQ(::syscall(SYS_ioctl, pair.b, FIONBIO, &on), 0);
    EXPECT_EQ(::read(pair.b, &byte, 1), -1);
    EXPECT_EQ(errno, EAGAIN);
  });
}

// A pipe made by its number waits, and the number that it had before is forgotten.
TEST(Syscall, NewDescriptorsAreKnown) {
  inFiber([] {
    int fds[2];
    ASSERT_EQ(::syscall(SYS_pipe2, fds, O_NONBLOCK), 0);
    char byte;
    EXPECT_EQ(::read(fds[0], &byte, 1), -1);
    EXPECT_EQ(errno, EAGAIN);
    int blocking[2];
    ASSERT_EQ(::syscall(SYS_pipe, blocking), 0);
    EXPECT_EQ(::syscall(SYS_dup2, blocking[0], fds[0]), fds[0]);
    IOManager::GetThis()->schedule([&] { EXPECT_EQ(::write(blocking[1], "x", 1), 1); });
    EXPECT_EQ(::read(fds[0], &byte, 1), 1);
    for (const int fd : {fds[0], fds[1], blocking[0], blocking[1]}) EXPECT_EQ(::syscall(SYS_close, fd), 0);
  });
}

struct KernelMask {
  const void* mask;
  size_t size;
};

std::vector<Case> cases() {
  std::vector<Case> cases;
  const auto add = [&](const std::string& name, std::function<void(Run&)> body) { cases.push_back({name, std::move(body)}); };
  add("Refusals", [](Run& run) {
    char byte;
    run.got("number", run.call.syscall(100'000, 1, 2, 3));
    run.got("read", run.call.syscall(SYS_read, -1, &byte, 1));
    run.got("close", run.call.syscall(SYS_close, -1));
    run.got("dup2", run.call.syscall(SYS_dup2, -1, 5));
    run.got("openat", run.call.syscall(SYS_openat, AT_FDCWD, "/nowhere", O_RDONLY, 0));
    run.got("nanosleep", run.call.syscall(SYS_nanosleep, badPointer(), nullptr));
    const timespec bad{0, -1};
    run.got("nanosleep", run.call.syscall(SYS_nanosleep, &bad, nullptr));
    run.got("clock_nanosleep", run.call.syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &bad, nullptr));
    run.got("clock_nanosleep", run.call.syscall(SYS_clock_nanosleep, 99, 0, &bad, nullptr));
    run.got("signalfd4", run.call.syscall(SYS_signalfd4, -1, &bad, 3, 0));
    run.got("epoll_pwait", run.call.syscall(SYS_epoll_pwait, -1, badPointer(), 1, 0, nullptr, 0));
  });
  add("MasksAreChecked", [](Run& run) {
    const Ends ends = run.keep(makeUnix(run.make, SOCK_STREAM));
    libcCalls().write(ends[1], "x", 1);
    pollfd one{ends[0], POLLIN, 0};
    uint64_t mask = 0;
    const timespec zero{};
    for (const size_t size : {size_t{8}, size_t{4}, size_t{128}}) {
      run.got("ppoll", run.call.syscall(SYS_ppoll, &one, 1, &zero, &mask, size));
      run.got("ppoll without mask", run.call.syscall(SYS_ppoll, &one, 1, &zero, nullptr, size));
      fd_set set;
      FD_ZERO(&set);
      FD_SET(ends[0], &set);
      KernelMask given{&mask, size};
      run.got("pselect6", run.call.syscall(SYS_pselect6, ends[0] + 1, &set, nullptr, nullptr, &zero, &given));
      given.mask = nullptr;
      run.got("pselect6", run.call.syscall(SYS_pselect6, ends[0] + 1, &set, nullptr, nullptr, &zero, &given));
      const int epoll = run.keep(::epoll_create1(0));
      epoll_event event{};
      run.got("epoll_pwait", run.call.syscall(SYS_epoll_pwait, epoll, &event, 1, 0, &mask, size));
    }
    run.got("ppoll", run.call.syscall(SYS_ppoll, &one, 1, &zero, badPointer(), size_t{8}));
    run.got("ppoll", run.call.syscall(SYS_ppoll, &one, 1, badPointer(), nullptr, size_t{8}));
    run.got("pselect6", run.call.syscall(SYS_pselect6, 0, nullptr, nullptr, nullptr, &zero, badPointer()));
  });
  add("TheRemainingTimeIsWritten", [](Run& run) {
    const Ends ends = run.keep(makeUnix(run.make, SOCK_STREAM));
    libcCalls().write(ends[1], "x", 1);
    const auto state = [&run](const timespec& left) {
      run.note("left", left.tv_sec == 0 && left.tv_nsec == 0 ? "nothing" : left.tv_sec < 1000 ? "less" : "unchanged");
    };
    pollfd one{ends[0], POLLIN, 0};
    timespec left{1000, 0};
    run.got("ppoll", run.call.syscall(SYS_ppoll, &one, 1, &left, nullptr, 0));
    state(left);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    left = {1000, 0};
    run.got("pselect6", run.call.syscall(SYS_pselect6, ends[0] + 1, &set, nullptr, nullptr, &left, nullptr));
    state(left);
    left = {0, 1'000'000};
    one.events = POLLPRI;
    run.got("ppoll", run.call.syscall(SYS_ppoll, &one, 1, &left, nullptr, 0));
    state(left);
    left = {1000, 1'000'000'000};
    run.got("ppoll", run.call.syscall(SYS_ppoll, &one, 1, &left, nullptr, 0));
    state(left);
  });
  // Cause: the timeout was read and written without asking whether it can be, which ended the process.
  add("TimeoutOfSelectThatIsBad", [](Run& run) {
    run.got("select", run.call.syscall(SYS_select, 0, nullptr, nullptr, nullptr, badPointer()));
    auto* const page = static_cast<timeval*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    *page = {0, 1000};
    ::mprotect(page, 4096, PROT_READ);
    run.got("select", run.call.syscall(SYS_select, 0, nullptr, nullptr, nullptr, page));
    run.note("time", std::to_string(page->tv_usec));
    ::munmap(page, 4096);
  });
  add("Files", [](Run& run) {
    const int pipe = run.keep(makePipe(libcCalls()))[0];
    run.got("syncfs", run.call.syscall(SYS_syncfs, pipe));
    run.got("sync_file_range", run.call.syscall(SYS_sync_file_range, pipe, 0L, 0L, 0));
    run.got("msync", run.call.syscall(SYS_msync, 1L, 1L, MS_SYNC));
    run.got("sync", run.call.syscall(SYS_sync));
    run.got("signalfd", run.call.syscall(SYS_signalfd, pipe, nullptr, 8L));
    run.got("signalfd", run.call.syscall(SYS_signalfd, pipe, badPointer(), 8L));
    run.got("signalfd", run.call.syscall(SYS_signalfd, pipe, badPointer(), 4L));
  });
  add("Waitid", [](Run& run) {
    siginfo_t told{};
    run.got("no child", run.call.syscall(SYS_waitid, long{P_ALL}, 0L, &told, long{WEXITED}, nullptr));
    const Ends ends = run.keep(makePipe(libcCalls()));
    const pid_t child = ::fork();
    if (child == 0) {
      char byte;
      libcCalls().read(ends[0], &byte, 1);
      ::_exit(7);
    }
    run.later([=](const Calls& libc) { libc.write(ends[1], "x", 1); });
    run.got("waits", run.call.syscall(SYS_waitid, long{P_PID}, long{child}, &told, long{WEXITED | WNOWAIT}, nullptr));
    run.note("status", std::to_string(told.si_status));
    rusage used{};
    run.got("with the rest", run.call.syscall(SYS_waitid, long{P_PID}, long{child}, nullptr, long{WEXITED}, &used));
  });
  add("AllSixArgumentsArrive", [](Run& run) {
    char from[8] = "moved", to[8] = {};
    const iovec local{to, 5}, remote{from, 5};
    run.got("process_vm_readv", run.call.syscall(SYS_process_vm_readv, long{::getpid()}, &local, 1L, &remote, 1L, 0L));
    run.note("to", to);
    run.got("process_vm_readv", run.call.syscall(SYS_process_vm_readv, long{::getpid()}, &local, 1L, &remote, 1L, 7L));
  });
  return cases;
}

TEST_P(SameAsLibc, Syscall) { compare(GetParam()); }
INSTANTIATE_TEST_SUITE_P(Of, SameAsLibc, testing::ValuesIn(cases()), nameOf);

}  // namespace
}  // namespace sylar::test
