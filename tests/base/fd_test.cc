#include "sylar/base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

namespace sylar {
namespace {

bool isOpen(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

static_assert(!std::is_copy_constructible_v<UniqueFd> && !std::is_copy_assignable_v<UniqueFd>);

TEST(UniqueFd, ClosesAtTheEndOfItsScope) {
  int fd = -1;
  {
    const UniqueFd owner(sys::eventFd());
    fd = owner.get();
    ASSERT_TRUE(owner.valid());
    EXPECT_TRUE(isOpen(fd));
  }
  EXPECT_FALSE(isOpen(fd));
}

TEST(UniqueFd, WithoutADescriptorOwnsNothing) {
  UniqueFd owner;
  EXPECT_FALSE(owner.valid());
  EXPECT_EQ(owner.get(), -1);
  owner.reset();
  EXPECT_FALSE(UniqueFd(-ENFILE).valid());
}

TEST(UniqueFd, MoveHandsOver) {
  UniqueFd from(sys::eventFd());
  const int fd = from.get();
  UniqueFd to(std::move(from));
  EXPECT_FALSE(from.valid());  // NOLINT: what a moved-from owner says is part of the contract
  EXPECT_EQ(to.get(), fd);
  EXPECT_TRUE(isOpen(fd));
}

TEST(UniqueFd, MoveAssignmentClosesWhatItReplaces) {
  UniqueFd a(sys::eventFd());
  UniqueFd b(sys::eventFd());
  const int replaced = a.get();
  const int kept = b.get();
  a = std::move(b);
  EXPECT_FALSE(isOpen(replaced));
  EXPECT_TRUE(isOpen(kept));
  EXPECT_EQ(a.get(), kept);
}

TEST(UniqueFd, MoveAssignmentToItselfChangesNothing) {
  UniqueFd owner(sys::eventFd());
  const int fd = owner.get();
  UniqueFd& same = owner;
  owner = std::move(same);
  EXPECT_EQ(owner.get(), fd);
  EXPECT_TRUE(isOpen(fd));
}

TEST(UniqueFd, ResetClosesOnce) {
  UniqueFd owner(sys::eventFd());
  const int fd = owner.get();
  owner.reset();
  EXPECT_FALSE(isOpen(fd));
  EXPECT_FALSE(owner.valid());
  const UniqueFd reuse(sys::eventFd());
  owner.reset();
  EXPECT_TRUE(isOpen(reuse.get()));
}

}  // namespace
}  // namespace sylar
