// Descriptors that travel in messages: who sends one shares it, who receives one has a new number.
#include "sylar/io/fd_table.h"
#include "tests/hook/support.h"

namespace sylar::test {
namespace {

/// A message of one byte with one descriptor in it, or room for one.
struct Message {
  explicit Message(int passenger) {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    *rights = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(rights), &passenger, sizeof passenger);
  }
  int passenger() {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof fd);
    return fd;
  }

  char byte = 'm';
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
};

void sendsShared(const Pair& carrier, const Pair& passenger, int flags) {
  EXPECT_TRUE(FdTable::find(passenger.a)->isPrivate());
  Message out(passenger.a);
  EXPECT_EQ(::sendmsg(carrier.b, &out.header, flags), 1);
  EXPECT_FALSE(FdTable::find(passenger.a)->isPrivate());
  EXPECT_TRUE(FdTable::find(passenger.b)->isPrivate());
}

// FM-15: on every thread, and in every way of sending.
TEST(Rights, WhatIsSentIsShared) {
  const Pair carrier = unixPair();
  sendsShared(carrier, unixPair(), 0);
  inFiber([&] {
    sendsShared(carrier, unixPair(), 0);
    sendsShared(carrier, unixPair(), MSG_DONTWAIT);
    set_hook_enable(false);
    sendsShared(carrier, unixPair(), 0);
  });
}

TEST(Rights, WhatCouldNotBeSentIsNot) {
  const Pair pair = unixPair();
  Message out(pair.a);
  EXPECT_EQ(::sendmsg(-1, &out.header, 0), -1);
  EXPECT_TRUE(FdTable::find(pair.a)->isPrivate());
}

// FM-15, FM-16: flags that the other owner sets hold for both.
TEST(Rights, FlagsOfTheOtherOwnerHold) {
  inFiber([] {
    const Pair carrier = unixPair();
    const Pair passenger = unixPair();
    Message message(passenger.a);
    ASSERT_EQ(::sendmsg(carrier.b, &message.header, 0), 1);
    ASSERT_EQ(::recvmsg(carrier.a, &message.header, 0), 1);
    const Pair received({message.passenger(), -1});
    ASSERT_EQ(libcCalls().fcntl(received.a, F_SETFL, O_NONBLOCK), 0);  // as another process would
    char byte;
    EXPECT_EQ(::read(passenger.a, &byte, 1), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(::read(received.a, &byte, 1), -1);
    EXPECT_EQ(errno, EAGAIN);
    setTimeout(libcCalls(), received.a, SO_RCVTIMEO, 5000);
    ASSERT_EQ(libcCalls().fcntl(received.a, F_SETFL, 0), 0);
    EXPECT_EQ(::read(passenger.a, &byte, 1), -1);
    EXPECT_EQ(errno, EAGAIN);
  });
}

/// Receives a pipe's end under a number of which the table has something else in mind, and waits on it.
void receivesOverAStaleNumber(int flags) {
  const Pair carrier = unixPair();
  const Pair passenger = pipePair();
  const Pair stale = unixPair();
  IOManager::GetThis()->schedule([&] { EXPECT_EQ(::write(stale.b, "x", 1), 1); });
  char byte = 0;
  EXPECT_EQ(::read(stale.a, &byte, 1), 1);  // parked: known and registered
  Message message(passenger.a);
  ASSERT_EQ(::sendmsg(carrier.b, &message.header, 0), 1);
  const uint32_t generation = Entry::generationOf(FdTable::find(stale.a)->life());
  sys::call(SYS_close, stale.a);  // behind our back
  ASSERT_EQ(::recvmsg(carrier.a, &message.header, flags), 1);
  ASSERT_EQ(message.passenger(), stale.a);
  EXPECT_NE(Entry::generationOf(FdTable::find(stale.a)->life()), generation);
  EXPECT_FALSE(FdTable::find(stale.a)->isPrivate());
  IOManager::GetThis()->schedule([&] { EXPECT_EQ(::write(passenger.b, "p", 1), 1); });
  EXPECT_EQ(::read(stale.a, &byte, 1), 1);
  EXPECT_EQ(byte, 'p');
}

// FM-14, FM-17
TEST(Rights, WhatIsReceivedIsANewDescriptor) {
  for (const int flags : {0, int{MSG_PEEK}, int{MSG_DONTWAIT}, int{MSG_WAITALL}}) {
    inFiber([=] { receivesOverAStaleNumber(flags); });
  }
}

}  // namespace
}  // namespace sylar::test
