// Ways in which a descriptor comes to another process, and a timeout to a socket, under names that few use.
#include <pty.h>
#include <sys/wait.h>

#include "sylar/base/fd.h"
#include "sylar/io/fd_table.h"
#include "tests/hook/support.h"

extern "C" {
pid_t __fork() noexcept;
pid_t __vfork() noexcept;
}

namespace sylar::test {
namespace {

UniqueFd g_master;  // as long as the child lives, or its terminal is gone

int byForkpty() {
  int master = -1;
  const int child = ::forkpty(&master, nullptr, nullptr, nullptr);
  if (child > 0) {
    g_master = UniqueFd(master);
    EXPECT_FALSE(FdTable::find(master)->isPrivate());
  }
  return child;
}

class OtherForks : public testing::TestWithParam<pid_t (*)()> {};

TEST_P(OtherForks, ShareWhatIsOpen) {
  const Pair pair = unixPair();
  ASSERT_TRUE(FdTable::find(pair.a)->isPrivate());
  const pid_t child = GetParam()();
  if (child == 0) ::_exit(sys::threadId() == static_cast<pid_t>(::syscall(SYS_gettid)) ? 0 : 1);
  EXPECT_FALSE(FdTable::find(pair.a)->isPrivate());
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  g_master.reset();
}
INSTANTIATE_TEST_SUITE_P(By, OtherForks,
                         testing::Values([]() -> pid_t { return ::_Fork(); }, []() -> pid_t { return ::__fork(); },
                                         []() -> pid_t { return ::__vfork(); }, []() -> pid_t { return byForkpty(); }));

TEST(ManyMessages, ShareTheDescriptorsThatTheyCarry) {
  const Pair pair = unixPair();
  const Pair carried = unixPair();
  alignas(cmsghdr) char control[2][CMSG_SPACE(sizeof(int))] = {};
  char bytes[2] = {'a', 'b'};
  iovec parts[2] = {{bytes, 1}, {bytes + 1, 1}};
  mmsghdr messages[2] = {};
  for (int i = 0; i < 2; ++i) {
    msghdr& header = messages[i].msg_hdr;
    header.msg_iov = &parts[i];
    header.msg_iovlen = 1;
    header.msg_control = control[i];
    header.msg_controllen = sizeof control[i];
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), i == 0 ? &carried.a : &carried.b, sizeof(int));
  }
  ASSERT_EQ(::sendmmsg(pair.b, messages, 2, 0), 2);
  EXPECT_FALSE(FdTable::find(carried.a)->isPrivate());
  EXPECT_FALSE(FdTable::find(carried.b)->isPrivate());

  const int next = ::dup(0);  // the lowest free number: the first received will have it
  ::close(next);
  FdTable::opened(next, FdKind::kTcp, true, true);  // what an unhooked close would leave behind
  ASSERT_GE(::recvmmsg(pair.a, messages, 1, 0, nullptr), 1);
  int received = -1;
  std::memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&messages[0].msg_hdr)), sizeof received);
  ASSERT_EQ(received, next);
  EXPECT_FALSE(FdTable::find(received)->isPrivate());
  EXPECT_FALSE(FdTable::find(received)->nonblocking());
  ::close(received);
}

TEST(Timeouts, AreNoticedUnderTheirNewNames) {
  inFiber([] {
    const Pair pair = unixPair();
    const struct {
      int64_t seconds;
      int64_t microseconds;
    } timeout{0, 10'000};
    ASSERT_EQ(::setsockopt(pair.a, SOL_SOCKET, 66, &timeout, sizeof timeout), 0);  // SO_RCVTIMEO_NEW
    ASSERT_EQ(::setsockopt(pair.a, SOL_SOCKET, 67, &timeout, sizeof timeout), 0);  // SO_SNDTIMEO_NEW
    char byte;
    EXPECT_EQ(::recv(pair.a, &byte, 1, 0), -1);
    EXPECT_EQ(errno, EAGAIN);
    const std::vector<char> bytes(2'000'000);
    EXPECT_GT(::send(pair.a, bytes.data(), bytes.size(), 0), 0);
    EXPECT_EQ(::send(pair.a, bytes.data(), bytes.size(), 0), -1);
    EXPECT_EQ(errno, EAGAIN);
  });
}

}  // namespace
}  // namespace sylar::test
