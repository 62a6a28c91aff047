#include "sylar/base/sys.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "sylar/base/fd.h"
#include "sylar/clock.h"

namespace sylar {
namespace {

TEST(Sys, FailureIsMinusErrnoAndLeavesErrnoAlone) {
  errno = ERANGE;
  EXPECT_EQ(sys::closeFd(-1), -EBADF);
  char byte;
  EXPECT_EQ(sys::readFd(-1, &byte, 1), -EBADF);
  EXPECT_EQ(sys::call(SYS_close, -1), -EBADF);
  EXPECT_EQ(errno, ERANGE);
}

TEST(Sys, ErrnoRefIsTheCallersErrno) {
  sys::errnoRef() = EXDEV;
  EXPECT_EQ(errno, EXDEV);
  EXPECT_EQ(&sys::errnoRef(), &errno);
  std::thread([here = &sys::errnoRef()] { EXPECT_NE(&sys::errnoRef(), here); }).join();
}

TEST(Sys, ThreadIdIsTheKernelsAndFollowsAFork) {
  EXPECT_EQ(sys::threadId(), static_cast<pid_t>(::syscall(SYS_gettid)));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(sys::threadId() == static_cast<pid_t>(::syscall(SYS_gettid)) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Sys, FutexWaitEndsAtOnceIfThereIsNothingToWaitFor) {
  const std::atomic<uint32_t> word{1};
  EXPECT_EQ(sys::futexWait(word, 0, kNever), -EAGAIN);
  EXPECT_EQ(sys::futexWait(word, 1, 1), -ETIMEDOUT);
  EXPECT_EQ(sys::futexWake(word, 1), 0);
}

TEST(Sys, FutexWakeEndsAWait) {
  std::atomic<uint32_t> word{0};
  std::thread waiter([&] {
    while (word.load() == 0) sys::futexWait(word, 0, kNever);
  });
  word.store(1);
  sys::futexWake(word, 1);
  waiter.join();
}

TEST(Sys, KnowsWhichDescriptorsAreItsOwn) {
  EXPECT_FALSE(sys::isOwn(-1));
  EXPECT_FALSE(sys::isOwn(INT_MAX));
  EXPECT_EQ(sys::nextOwn(INT_MAX), INT_MAX);
  UniqueFd own[] = {UniqueFd(sys::eventFd()), UniqueFd(sys::epollCreate()), UniqueFd(sys::timerFd())};
  for (UniqueFd& one : own) {
    EXPECT_TRUE(sys::isOwn(one.get()));
    EXPECT_EQ(sys::nextOwn(one.get()), one.get());
  }
  const int users = ::dup(own[0].get());
  EXPECT_FALSE(sys::isOwn(users));
  const int last = own[2].get();
  EXPECT_EQ(sys::nextOwn(own[0].get() + 1), own[1].get());
  EXPECT_EQ(sys::nextOwn(last + 1), INT_MAX);
  for (UniqueFd& one : own) one.reset();
  EXPECT_FALSE(sys::isOwn(last));
  EXPECT_EQ(sys::nextOwn(-5), INT_MAX);
  UniqueFd lost(sys::eventFd());
  sys::disown(lost.get());
  EXPECT_FALSE(sys::isOwn(lost.get()));
  ::close(users);
}

TEST(Sys, OwnDescriptorsLeaveLowNumbersToTheProgram) {
  for (int (*const make)() : {sys::eventFd, sys::epollCreate, sys::timerFd}) {
    const UniqueFd own(make());
    EXPECT_GE(own.get(), 64);
    EXPECT_EQ(::fcntl(own.get(), F_GETFD), FD_CLOEXEC);
  }
}

/// What `make` gives in a child in which 0 to 2 are closed and no number is allowed from `limit` on; it is left open.
int withFewNumbers(rlim_t limit, int (*make)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close_range(0, ~0U, 0);
    const rlimit few{limit, limit};
    ::setrlimit(RLIMIT_NOFILE, &few);
    const int own = make();
    const bool alone = own < 0 || (::fcntl(own, F_GETFD) >= 0 && ::fcntl(0, F_GETFD) < 0);
    ::_exit(alone ? (own == -EMFILE ? 255 : own) : 254);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Sys, OwnDescriptorsAreNeverTheStandardStreams) {
  for (int (*const make)() : {sys::eventFd, sys::epollCreate, sys::timerFd}) {
    EXPECT_EQ(withFewNumbers(1024, make), 64);
    EXPECT_EQ(withFewNumbers(64, make), 63);
    EXPECT_EQ(withFewNumbers(20, make), 19);
    EXPECT_EQ(withFewNumbers(4, make), 3);
    EXPECT_EQ(withFewNumbers(3, make), 255) << "no number is better than one of those";
  }
}

TEST(Sys, OwnDescriptorsTakeTheLastNumberThatIsFree) {
  EXPECT_EQ(withFewNumbers(8,
                           [] {
                             for (int fd = 0; fd < 7; ++fd) ::open("/dev/null", O_RDONLY);
                             const int own = sys::eventFd();
                             for (int fd = 0; fd < 3; ++fd) ::close(fd);
                             return own;
                           }),
            7);
}

TEST(Sys, EpollSeesAnEventFdAndAPastDeadlineDoesNotWait) {
  const UniqueFd epoll(sys::epollCreate());
  const UniqueFd event(sys::eventFd());
  ASSERT_TRUE(epoll.valid() && event.valid());
  epoll_event interest{.events = EPOLLIN, .data = {.u64 = 7}};
  ASSERT_EQ(sys::epollControl(epoll.get(), EPOLL_CTL_ADD, event.get(), &interest), 0);
  epoll_event ready{};
  EXPECT_EQ(sys::epollWait(epoll.get(), &ready, 1, 100, 100), 0);
  EXPECT_EQ(sys::epollWait(epoll.get(), &ready, 1, 100, 0), 0);
  const uint64_t one = 1;
  ASSERT_EQ(sys::writeFd(event.get(), &one, sizeof one), 8);
  EXPECT_EQ(sys::epollWait(epoll.get(), &ready, 1, 0, kNever), 1);
  const uint64_t data = ready.data.u64;  // the struct is packed
  EXPECT_EQ(data, 7u);
  uint64_t value = 0;
  EXPECT_EQ(sys::readFd(event.get(), &value, sizeof value), 8);
  EXPECT_EQ(value, 1u);
  EXPECT_EQ(sys::readFd(event.get(), &value, sizeof value), -EAGAIN);
}

TEST(Sys, TimerFdIsReadyOnceItsDeadlineIsPast) {
  const UniqueFd timer(sys::timerFd());
  ASSERT_TRUE(timer.valid());
  uint64_t expirations = 0;
  for (const int64_t past_ns : {int64_t{-5}, int64_t{0}, int64_t{1}}) {
    ASSERT_EQ(sys::timerFdSet(timer.get(), past_ns), 0);
    EXPECT_EQ(sys::readFd(timer.get(), &expirations, sizeof expirations), 8);
    EXPECT_EQ(expirations, 1u);
  }
  ASSERT_EQ(sys::timerFdSet(timer.get(), kNever), 0);
  EXPECT_EQ(sys::readFd(timer.get(), &expirations, sizeof expirations), -EAGAIN);
  ASSERT_EQ(sys::timerFdSet(timer.get(), kNever - 1), 0);
  EXPECT_EQ(sys::readFd(timer.get(), &expirations, sizeof expirations), -EAGAIN);
}

TEST(Sys, MapMemoryGivesZeroedPagesOrTheReason) {
  int error = 0;
  const size_t size = 8192;
  auto* memory = static_cast<char*>(sys::mapMemory(size, &error));
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory[0] + memory[size - 1], 0);
  memory[size - 1] = 'x';
  EXPECT_EQ(sys::protectMemory(memory, 4096, PROT_NONE), 0);
  EXPECT_EQ(sys::adviseMemory(memory, size, MADV_DONTNEED), 0);
  EXPECT_EQ(sys::unmapMemory(memory, size), 0);
  EXPECT_EQ(sys::mapMemory(0, &error), nullptr);
  EXPECT_EQ(error, EINVAL);
}

}  // namespace
}  // namespace sylar
