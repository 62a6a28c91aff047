#include "sylar/base/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace sylar {
namespace {

namespace fs = std::filesystem;
using detail::availableProcessors;

/// A thread that may run on `all` processors, and made-up control groups.
class Processors : public testing::Test {
 protected:
  Processors() {
    char folder[] = "/tmp/sylar_processors_XXXXXX";
    m_folder = ::mkdtemp(folder);
    ::sched_getaffinity(0, sizeof m_mask, &m_mask);
    m_all = static_cast<unsigned>(CPU_COUNT(&m_mask));
  }
  ~Processors() override {
    ::sched_setaffinity(0, sizeof m_mask, &m_mask);
    fs::remove_all(m_folder);
  }

  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((m_folder / file).parent_path());
    std::ofstream(m_folder / file) << text;
  }
  unsigned count() const { return availableProcessors({m_folder / "memberships", m_folder / "groups"}); }
  /// Returns the count for a group of version 2 that has `limit`.
  unsigned with(const std::string& limit) const {
    write("memberships", "0::/a/b\n");
    write("groups/a/b/cpu.max", limit);
    return count();
  }

  fs::path m_folder;
  cpu_set_t m_mask{};
  unsigned m_all;
};

TEST_F(Processors, AreThoseOfTheMaskIfNothingElseIsKnown) {
  EXPECT_EQ(count(), m_all);
  cpu_set_t one{};
  for (size_t i = 0; CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &m_mask)) CPU_SET(i, &one);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(count(), 1u);
  EXPECT_EQ(with("max 100000\n"), 1u);
  EXPECT_EQ(with("800000 100000\n"), 1u);
}

// The service made as many threads as the machine has processors, whatever its container was allowed.
TEST_F(Processors, AreNoMoreThanTheQuotaRoundedUp) {
  EXPECT_EQ(with("100000 100000\n"), 1u);
  EXPECT_EQ(with("1 100000\n"), 1u);
  EXPECT_EQ(with("100001 100000\n"), std::min(m_all, 2u));
  EXPECT_EQ(with("200000 100000\n"), std::min(m_all, 2u));
  EXPECT_EQ(with("max 100000\n"), m_all);
  EXPECT_EQ(with("9223372036854775807 1\n"), m_all);
}

TEST_F(Processors, TheLeastQuotaOfTheGroupAndItsAncestorsCounts) {
  for (const char* group : {"groups/cpu.max", "groups/a/cpu.max"}) {
    EXPECT_EQ(with("max 100000\n"), m_all);
    write(group, "50000 100000\n");
    EXPECT_EQ(count(), 1u);
    EXPECT_EQ(with("1000000 100000\n"), 1u);
    write(group, "max 100000\n");
  }
  write("groups/a/b/c/cpu.max", "50000 100000\n");  // of somebody else
  EXPECT_EQ(count(), m_all);
  write("memberships", "0::/\n");
  write("groups/cpu.max", "50000 100000\n");
  EXPECT_EQ(count(), 1u);
}

// In a container the path may be the host's, and what is mounted is the container's group.
TEST_F(Processors, AGroupThatIsNotThereHasTheRootsQuota) {
  write("memberships", "0::/docker/1234\n");
  write("groups/cpu.max", "50000 100000\n");
  EXPECT_EQ(count(), 1u);
  write("memberships", "0::/../../elsewhere\n");
  EXPECT_EQ(count(), 1u);
}

TEST_F(Processors, Version1HasItsOwnFilesAndMounts) {
  write("memberships", "5:memory:/m\n4:cpu,cpuacct:/a/b\n3:cpuset:/s\n0::/\n");
  for (const std::string mount : {"cpu", "cpu,cpuacct"}) {
    const std::string group = "groups/" + mount + "/a/";
    write(group + "b/cpu.cfs_quota_us", "-1\n");
    write(group + "b/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(count(), m_all);
    write(group + "b/cpu.cfs_quota_us", "100000\n");
    EXPECT_EQ(count(), 1u);
    write(group + "b/cpu.cfs_quota_us", "-1\n");
    write(group + "cpu.cfs_quota_us", "20000\n");
    write(group + "cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(count(), 1u);
    write(group + "cpu.cfs_quota_us", "-1\n");
  }
  write("groups/cpuset/s/cpu.cfs_quota_us", "1000\n");  // which is no group of cpu
  write("groups/cpuset/s/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(count(), m_all);
}

TEST_F(Processors, WhatMakesNoSenseIsNoQuota) {
  for (const char* limit : {"", "\n", "max", "100000", "x y", "-1 100000", "0 100000", "100000 0", "100000 -1", "100000x 100000",
                            "1e5 100000", "100000 99999999999999999999", "\xff\xff"}) {
    EXPECT_EQ(with(limit), m_all) << limit;
  }
  for (const char* memberships : {"", "\n", ":", "::", "0:", "0::", "no groups", "0::a/b", ":::::"}) {
    write("memberships", memberships);
    write("groups/a/b/cpu.max", "max 100000\n");
    EXPECT_EQ(count(), m_all) << memberships;
  }
}

}  // namespace
}  // namespace sylar
