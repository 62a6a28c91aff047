#include <unistd.h>

#include <algorithm>

#include "sylar/sync/blocking_pool.h"
#include "tests/net/support.h"

namespace sylar::test {
namespace {

class Lookup : public InBothPlaces {
 protected:
  ~Lookup() override { BlockingPool::process().endAll(); }
};
INSTANTIATE_TEST_SUITE_P(Places, Lookup, kPlaces, placeName);

struct NumberCase {
  const char* host;
  int family;
  const char* found;  // null: nothing
  int error;
};

TEST_P(Lookup, TakesNumbersWithAndWithoutAPort) {
  run([] {
    const NumberCase cases[] = {
        {"127.0.0.1", AF_INET, "127.0.0.1:0", 0},
        {"127.0.0.1:80", AF_INET, "127.0.0.1:80", 0},
        {"127.0.0.1:65535", AF_INET, "127.0.0.1:65535", 0},
        {"0.0.0.0:8080", AF_INET, "0.0.0.0:8080", 0},
        {"::1", AF_INET6, "[::1]:0", 0},
        {"[::1]", AF_INET6, "[::1]:0", 0},
        {"[::1]:80", AF_INET6, "[::1]:80", 0},
        {"[::1]:80", AF_UNSPEC, "[::1]:80", 0},
        {"[2001:db8::1]:443", AF_UNSPEC, "[2001:db8::1]:443", 0},
        {"", AF_INET, nullptr, EINVAL},
        {":80", AF_INET, nullptr, EINVAL},
        {"127.0.0.1:", AF_INET, nullptr, EINVAL},
        {"[::1", AF_INET6, nullptr, EINVAL},
        {"[::1]80", AF_INET6, nullptr, EINVAL},
        {"[::1]:", AF_INET6, nullptr, EINVAL},
        {"[]:80", AF_INET6, nullptr, EINVAL},
        {"127.0.0.1:80", AF_UNIX, nullptr, EINVAL},
        {"127.0.0.1:65536", AF_INET, nullptr, EINVAL},
        {"127.0.0.1:4294967376", AF_INET, nullptr, EINVAL},
        {"127.0.0.1: 80", AF_INET, nullptr, EINVAL},
        {"127.0.0.1:80 ", AF_INET, nullptr, EINVAL},
        {"127.0.0.1:+80", AF_INET, nullptr, EINVAL},
        {"127.0.0.1:-1", AF_INET, nullptr, EINVAL},
        {"[::1]:65536", AF_INET6, nullptr, EINVAL},
        {"localhost:99999", AF_INET, nullptr, EINVAL},
    };
    for (const auto& [host, family, found, error] : cases) {
      std::vector<Address::ptr> result;
      errno = 0;
      EXPECT_EQ(Address::Lookup(result, host, family), found != nullptr) << host;
      ASSERT_EQ(result.size(), found != nullptr ? 1u : 0u) << host;
      if (found != nullptr) {
        EXPECT_EQ(result[0]->toString(), found);
      } else {
        EXPECT_EQ(errno, error) << host;
      }
    }
    EXPECT_EQ(Address::LookupAny(std::string("127.0.0.1\0x", 11)), nullptr) << "a 0 does not cut the name";
  });
}

// The resolver runs on a helper thread: names of this host, which need no server.
TEST_P(Lookup, KnowsLocalNamesAndServices) {
  run([] {
    const Address::ptr host = Address::LookupAny("localhost");
    ASSERT_NE(host, nullptr);
    EXPECT_EQ(host->toString(), "127.0.0.1:0");
    const IPAddress::ptr web = Address::LookupAnyIPAddress("localhost:http", AF_INET, SOCK_STREAM);
    if (::access("/etc/services", R_OK) == 0) {
      ASSERT_NE(web, nullptr);
      EXPECT_EQ(web->getPort(), 80u);
    }
    EXPECT_EQ(Address::LookupAnyIPAddress("localhost:81")->getPort(), 81u);
    errno = 0;
    EXPECT_EQ(Address::LookupAny("127.0.0.1:no-such-service"), nullptr);
    EXPECT_EQ(errno, ENOENT);
  });
}

TEST_P(Lookup, KeepsWhatTheResultHadBefore) {
  run([] {
    std::vector<Address::ptr> result{loopback(1)};
    EXPECT_FALSE(Address::Lookup(result, ":80"));
    EXPECT_EQ(result.size(), 1u);
    EXPECT_TRUE(Address::Lookup(result, "127.0.0.1:2"));
    ASSERT_EQ(result.size(), 2u);
    EXPECT_EQ(*result[1], *loopback(2));
  });
}

// FM-20: while the resolver is asked, other fibers of the only worker run.
TEST(LookupInAFiber, SuspendsIt) {
  bool other_ran = false;
  inFiber([&] {
    IOManager::GetThis()->schedule([&] { other_ran = true; });
    // A helper thread that is faster than its caller leaves nothing to wait for.
    for (int i = 0; i < 1000 && !other_ran; ++i) EXPECT_NE(Address::LookupAny("localhost"), nullptr);
    EXPECT_TRUE(other_ran);
  });
  BlockingPool::process().endAll();
}

TEST(InterfaceAddresses, HaveTheLoopbackWithItsPrefix) {
  std::multimap<std::string, std::pair<Address::ptr, uint32_t>> all;
  ASSERT_TRUE(Address::GetInterfaceAddresses(all));
  const auto is_loopback = [](const auto& one) { return *one.second.first == *loopback() && one.second.second == 8; };
  const auto found = std::ranges::find_if(all, is_loopback);
  ASSERT_NE(found, all.end());
  std::vector<std::pair<Address::ptr, uint32_t>> of_one;
  ASSERT_TRUE(Address::GetInterfaceAddresses(of_one, found->first));
  EXPECT_TRUE(std::ranges::any_of(of_one, [](const auto& one) { return *one.first == *loopback(); }));
}

TEST(InterfaceAddresses, OfNoNameStandForAll) {
  for (const char* name : {"", "*"}) {
    std::vector<std::pair<Address::ptr, uint32_t>> any;
    ASSERT_TRUE(Address::GetInterfaceAddresses(any, name, AF_UNSPEC));
    ASSERT_EQ(any.size(), 2u);
    EXPECT_EQ(any[0].first->toString(), "0.0.0.0:0");
    EXPECT_EQ(any[1].first->toString(), "[::]:0");
  }
  std::vector<std::pair<Address::ptr, uint32_t>> none;
  EXPECT_FALSE(Address::GetInterfaceAddresses(none, "no such interface"));
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace sylar::test
