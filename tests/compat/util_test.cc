#include "sylar/util.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "sylar/base/sys.h"
#include "sylar/compat/atomic.h"
#include "sylar/compat/shared_array.h"
#include "sylar/macro.h"
#include "sylar/noncopyable.h"
#include "sylar/singleton.h"

namespace sylar {
namespace {

TEST(Util, ThreadsHaveIdsAndNames) {
  EXPECT_EQ(GetThreadId(), ::gettid());
  std::thread([] {
    SetThreadName("worker_7");
    EXPECT_EQ(GetThreadName(), "worker_7");
  }).join();
  EXPECT_NE(GetThreadName(), "worker_7");
}

TEST(Util, ClocksGoOn) {
  const uint64_t elapsed = GetElapsedMS(), us = GetCurrentUS();
  EXPECT_GE(GetElapsedMS(), elapsed);
  EXPECT_GE(GetCurrentMS(), us / 1000 - 1000);
  EXPECT_GT(us, 1'600'000'000'000'000U);  // microseconds since 1970
}

TEST(Util, TimeGoesRound) {
  EXPECT_EQ(Str2Time(Time2Str(1'700'000'000).c_str()), 1'700'000'000);
  EXPECT_EQ(Time2Str(1'700'000'000, "%Y"), "2023");
  EXPECT_EQ(Str2Time("yesterday"), 0);
  EXPECT_EQ(Str2Time("2023-01-01 00:00:00 and more"), 0);
}

TEST(Util, CaseConcernsAsciiLettersOnly) {
  EXPECT_EQ(ToLower("AZ[`az\xc3\x84"), "az[`az\xc3\x84");
  EXPECT_EQ(ToUpper("AZ{@az\xc3\xa4"), "AZ{@AZ\xc3\xa4");
}

TEST(Util, TypesHaveNames) {
  EXPECT_STREQ(TypeToName<int>(), "int");
  EXPECT_STREQ(TypeToName<std::set<int>*>(), "std::set<int, std::less<int>, std::allocator<int> >*");
}

TEST(Util, BinarySearchTellsWhereItWouldBe) {
  const int array[] = {1, 3, 5};
  for (const auto& [value, index] : {std::pair(0, -1), {1, 0}, {2, -2}, {3, 1}, {4, -3}, {5, 2}, {6, -4}}) {
    EXPECT_EQ(BinarySearch(array, 3, value), index) << value;
  }
  EXPECT_EQ(BinarySearch(array, 0, 1), -1);
}

TEST(Util, JoinPutsSeparatorsInBetween) {
  const std::vector<int> numbers{1, 2, 3};
  EXPECT_EQ(Join(numbers.begin(), numbers.end(), ", "), "1, 2, 3");
  EXPECT_EQ(Join(numbers.begin(), numbers.begin(), ", "), "");
}

TEST(Util, BacktraceHasALineForEachFrame) {
  std::vector<std::string> frames;
  Backtrace(frames, 3, 1);
  EXPECT_EQ(frames.size(), 2U);
  const std::string text = BacktraceToString(4, 2, "> ");
  EXPECT_EQ(text.rfind("> ", 0), 0U);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(BacktraceToString(0), "");
}

TEST(Util, HostHasAName) { EXPECT_FALSE(GetHostName().empty()); }

struct Counted : Noncopyable {
  Counted() { ++made; }
  static inline int made = 0;
};

TEST(Singleton, OneForEachTypeAndTag) {
  EXPECT_EQ((Singleton<Counted>::GetInstance()), (Singleton<Counted>::GetInstance()));
  EXPECT_NE((Singleton<Counted>::GetInstance()), (Singleton<Counted, int, 1>::GetInstance()));
  EXPECT_EQ(Counted::made, 2);
  EXPECT_EQ((SingletonPtr<Counted>::GetInstance()), (SingletonPtr<Counted>::GetInstance()));
  EXPECT_EQ(Counted::made, 3);
}

TEST(Noncopyable, IsNeitherCopiedNorMoved) {
  static_assert(!std::is_copy_constructible_v<Counted> && !std::is_move_constructible_v<Counted>);
  static_assert(!std::is_copy_assignable_v<Counted> && !std::is_move_assignable_v<Counted>);
}

TEST(Macro, HintsKeepTheValue) {
  EXPECT_TRUE(SYLAR_LIKELY(2));
  EXPECT_FALSE(SYLAR_UNLIKELY(0));
}

TEST(Util, SliceCutsIntoPieces) {
  using Pieces = std::vector<std::vector<int>>;
  Pieces pieces = {{0}};
  Slice(pieces, std::vector<int>{1, 2, 3, 4, 5}, 2);
  EXPECT_EQ(pieces, (Pieces{{0}, {1, 2}, {3, 4}, {5}}));
  const auto sliced = [](const std::vector<int>& source, size_t size) {
    Pieces result;
    Slice(result, source, size);
    return result;
  };
  EXPECT_EQ(sliced({1, 2}, 2), (Pieces{{1, 2}}));
  EXPECT_EQ(sliced({1, 2}, 9), (Pieces{{1, 2}}));
  EXPECT_EQ(sliced({1, 2}, 0), (Pieces{{1}, {2}}));
  EXPECT_EQ(sliced({}, 3), Pieces{});
}

TEST(Util, IPv4AddressIsOneOfThisMachine) {
  const std::string address = GetIPv4();
  if (address.empty()) GTEST_SKIP() << "this machine has none but 127.0.0.1";
  in_addr parsed{};
  ASSERT_EQ(::inet_pton(AF_INET, address.c_str(), &parsed), 1) << address;
  EXPECT_NE(ntohl(parsed.s_addr) >> 24, 127u);
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);  // only an own address can be bound
  const sockaddr_in own{AF_INET, 0, parsed, {}};
  EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
  ::close(fd);
}

TEST(Atomic, EachOperationSaysBeforeOrAfter) {
  int32_t x = 12;
  EXPECT_EQ(Atomic::addFetch(x), 13);
  EXPECT_EQ(Atomic::addFetch(x, 7), 20);
  EXPECT_EQ(Atomic::subFetch(x, 8), 12);
  EXPECT_EQ(Atomic::orFetch(x, 3), 15);
  EXPECT_EQ(Atomic::andFetch(x, 6), 6);
  EXPECT_EQ(Atomic::xorFetch(x, 5), 3);
  EXPECT_EQ(Atomic::nandFetch(x, 2), ~2);
  x = 12;
  EXPECT_EQ(Atomic::fetchAdd(x), 12);
  EXPECT_EQ(Atomic::fetchSub(x, 3), 13);
  EXPECT_EQ(Atomic::fetchOr(x, 1), 10);
  EXPECT_EQ(Atomic::fetchAnd(x, 3), 11);
  EXPECT_EQ(Atomic::fetchXor(x, 1), 3);
  EXPECT_EQ(Atomic::fetchNand(x, 2), 2);
  EXPECT_EQ(x, ~2);
  EXPECT_EQ(Atomic::compareAndSwap(x, 0, 5), ~2);
  EXPECT_FALSE(Atomic::compareAndSwapBool(x, 0, 5));
  EXPECT_TRUE(Atomic::compareAndSwapBool(x, ~2, 5));
  EXPECT_EQ(x, 5);
}

TEST(Atomic, CountsOfSeveralThreadsAddUp) {
  uint64_t count = 0;
  const auto work = [&count] {
    for (int i = 0; i < 10'000; ++i) Atomic::fetchAdd(count);
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(count, 20'000u);
}

TEST(SharedArray, EndsWithItsLastHandle) {
  int ended = 0;
  const auto deleter = [&ended](const int* array) {
    ++ended;
    delete[] array;
  };
  {
    SharedArray<int> array(3, new int[3]{1, 2, 3}, deleter);
    EXPECT_EQ(array.size(), 3u);
    EXPECT_EQ(array[2], 3);
    EXPECT_TRUE(array.unique());
    SharedArray<int> other = array;
    EXPECT_EQ(other.get(), array.get());
    EXPECT_EQ(array.use_count(), 2);
    SharedArray<int> empty;
    empty.swap(array);
    EXPECT_FALSE(array);
    EXPECT_EQ(array.size(), 0u);
    EXPECT_EQ(empty[0], 1);
    EXPECT_EQ(ended, 0);
  }
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(SharedArray<int>(2, new int[2]{4, 5})[1], 5);
}

}  // namespace
}  // namespace sylar
