#include "sylar/address.h"

#include <gtest/gtest.h>

#include <climits>
#include <cstddef>
#include <cstring>
#include <set>
#include <sstream>
#include <stdexcept>

namespace sylar::test {
namespace {

struct NumericCase {
  const char* text;
  int family;  // 0: no address
  const char* printed;
};

TEST(IPAddress, CreateTakesNumbersAndNothingElse) {
  const NumericCase cases[] = {
      {"127.0.0.1", AF_INET, "127.0.0.1:80"},
      {"0.0.0.0", AF_INET, "0.0.0.0:80"},
      {"255.255.255.255", AF_INET, "255.255.255.255:80"},
      {"::", AF_INET6, "[::]:80"},
      {"::1", AF_INET6, "[::1]:80"},
      {"2001:db8::8:800:200c:417a", AF_INET6, "[2001:db8::8:800:200c:417a]:80"},
      {"2001:0DB8:0:0:8:800:200C:417A", AF_INET6, "[2001:db8::8:800:200c:417a]:80"},
      {"::ffff:1.2.3.4", AF_INET6, "[::ffff:1.2.3.4]:80"},
      {"", 0, ""},
      {"localhost", 0, ""},
      {"1.2.3", 0, ""},
      {"1.2.3.4.5", 0, ""},
      {"1.2.3.256", 0, ""},
      {"1.2.3.4 ", 0, ""},
      {"1.2.3.4:80", 0, ""},
      {"[::1]", 0, ""},
      {"1::2::3", 0, ""},
  };
  for (const auto& [text, family, printed] : cases) {
    const IPAddress::ptr address = IPAddress::Create(text, 80);
    ASSERT_EQ(address != nullptr, family != 0) << text;
    if (address == nullptr) continue;
    EXPECT_EQ(address->getFamily(), family) << text;
    EXPECT_EQ(address->toString(), printed);
    EXPECT_EQ(address->getPort(), 80u);
    EXPECT_EQ(*Address::Create(address->getAddr(), address->getAddrLen()), *address);
  }
}

struct PrefixCase {
  const char* address;
  uint32_t prefix;
  const char* broadcast;  // null: there is none
  const char* network;
  const char* mask;
};

TEST(IPAddress, PrefixesDivideNetworkAndRest) {
  const PrefixCase cases[] = {
      {"192.168.42.17", 24, "192.168.42.255", "192.168.42.0", "255.255.255.0"},
      {"192.168.42.17", 20, "192.168.47.255", "192.168.32.0", "255.255.240.0"},
      {"10.1.2.3", 31, "10.1.2.3", "10.1.2.2", "255.255.255.254"},
      {"10.1.2.3", 32, "10.1.2.3", "10.1.2.3", "255.255.255.255"},
      {"10.1.2.3", 0, "255.255.255.255", "0.0.0.0", "0.0.0.0"},
      {"10.1.2.3", 33, nullptr, nullptr, nullptr},
      {"10.1.2.3", UINT32_MAX, nullptr, nullptr, nullptr},
      {"2001:db8::1", 32, "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8::", "ffff:ffff::"},
      {"2001:db8::1", 35, "2001:db8:1fff:ffff:ffff:ffff:ffff:ffff", "2001:db8::", "ffff:ffff:e000::"},
      {"2001:db8::1", 128, "2001:db8::1", "2001:db8::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
      {"2001:db8::1", 0, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::", "::"},
      {"2001:db8::1", 129, nullptr, nullptr, nullptr},
  };
  for (const PrefixCase& one : cases) {
    SCOPED_TRACE(std::string(one.address) + "/" + std::to_string(one.prefix));
    const IPAddress::ptr address = IPAddress::Create(one.address, 80);
    const auto expect = [](const IPAddress::ptr& got, const char* text, uint16_t port) {
      ASSERT_EQ(got != nullptr, text != nullptr);
      if (text != nullptr) {
        EXPECT_EQ(*got, *IPAddress::Create(text, port));
      }
    };
    expect(address->broadcastAddress(one.prefix), one.broadcast, 80);
    expect(address->networkAddress(one.prefix), one.network, 80);
    expect(address->networdAddress(one.prefix), one.network, 80);
    expect(address->subnetMask(one.prefix), one.mask, 0);
    EXPECT_EQ(*address, *IPAddress::Create(one.address, 80)) << "it is as before";
  }
}

TEST(IPAddress, LoopbackIsTheHostItself) {
  for (const char* text : {"127.0.0.1", "127.255.1.2", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(IPAddress::Create(text)->isLoopback()) << text;
  }
  for (const char* text : {"128.0.0.1", "126.255.255.255", "0.0.0.0", "::", "::2", "::ffff:128.0.0.1", "::127.0.0.1"}) {
    EXPECT_FALSE(IPAddress::Create(text)->isLoopback()) << text;
  }
}

TEST(Address, CreateRefusesWhatIsTooShort) {
  const IPv4Address v4(INADDR_LOOPBACK, 1);
  const IPv6Address v6;
  EXPECT_EQ(Address::Create(nullptr, 16), nullptr);
  EXPECT_EQ(Address::Create(v4.getAddr(), 0), nullptr);
  EXPECT_EQ(Address::Create(v4.getAddr(), 1), nullptr);
  EXPECT_EQ(Address::Create(v4.getAddr(), sizeof(sockaddr_in) - 1), nullptr);
  EXPECT_EQ(Address::Create(v6.getAddr(), sizeof(sockaddr_in6) - 1), nullptr);
  sockaddr_storage storage{};
  std::memcpy(&storage, v4.getAddr(), v4.getAddrLen());
  EXPECT_EQ(*Address::Create(reinterpret_cast<sockaddr*>(&storage), sizeof storage), v4);
}

TEST(Address, CreateKeepsTheBytesOfAnUnknownFamily) {
  sockaddr raw{};
  raw.sa_family = AF_APPLETALK;
  raw.sa_data[3] = 'x';
  const Address::ptr address = Address::Create(&raw, sizeof raw);
  ASSERT_NE(address, nullptr);
  EXPECT_EQ(address->getFamily(), AF_APPLETALK);
  EXPECT_EQ(*address, UnknownAddress(raw));
  EXPECT_NE(address->toString().find(std::to_string(AF_APPLETALK)), std::string::npos);
}

TEST(Address, ComparesByValue) {
  const IPv4Address a(0x01020304, 80), same(0x01020304, 80), other_port(0x01020304, 81), other_host(0x01020305, 80);
  const IPv6Address v6;
  EXPECT_EQ(a, same);
  EXPECT_NE(a, other_port);
  EXPECT_NE(a, other_host);
  EXPECT_NE(a, v6);
  EXPECT_FALSE(a < same);
  EXPECT_TRUE((a < other_port) != (other_port < a));
  EXPECT_TRUE((a < v6) != (v6 < a));
  sockaddr_in dirty = *reinterpret_cast<const sockaddr_in*>(a.getAddr());
  std::memset(dirty.sin_zero, 7, sizeof dirty.sin_zero);
  EXPECT_EQ(IPv4Address(dirty), a) << "padding does not count";
  EXPECT_EQ(*Address::Create(reinterpret_cast<sockaddr*>(&dirty), sizeof dirty), a);
}

TEST(Address, AssignRefusesAnotherFamily) {
  IPv4Address v4(INADDR_LOOPBACK, 1);
  const IPv4Address before = v4;
  EXPECT_FALSE(v4.assign(IPv6Address().getAddr(), sizeof(sockaddr_in6)));
  EXPECT_FALSE(v4.assign(nullptr, 0));
  EXPECT_EQ(v4, before);
  EXPECT_TRUE(v4.assign(IPv4Address(7, 7).getAddr(), sizeof(sockaddr_in)));
  EXPECT_EQ(v4, IPv4Address(7, 7));
}

TEST(Address, PrintsAsToString) {
  std::ostringstream out;
  out << IPv4Address(INADDR_LOOPBACK, 8080);
  EXPECT_EQ(out.str(), "127.0.0.1:8080");
  IPv4Address moved(INADDR_LOOPBACK, 1);
  moved.setPort(65535);
  EXPECT_EQ(moved.toString(), "127.0.0.1:65535");
}

struct UnixCase {
  std::string path;
  const char* printed;
  socklen_t length;
};

TEST(UnixAddress, KnowsPathsAndAbstractNames) {
  constexpr socklen_t kHead = offsetof(sockaddr_un, sun_path);
  const std::string longest(107, 'x');
  const UnixCase cases[] = {
      {"", "", kHead},
      {"/run/x.sock", "/run/x.sock", kHead + 12},
      {std::string("\0name", 5), "\\0name", kHead + 5},
      {longest, longest.c_str(), kHead + 108},
  };
  for (const auto& [path, printed, length] : cases) {
    const UnixAddress address(path);
    EXPECT_EQ(address.getPath(), path);
    EXPECT_EQ(address.toString(), printed);
    EXPECT_EQ(address.getAddrLen(), length);
    EXPECT_EQ(address.getFamily(), AF_UNIX);
    EXPECT_EQ(*Address::Create(address.getAddr(), address.getAddrLen()), address);
  }
  EXPECT_THROW(UnixAddress(std::string(108, 'x')), std::invalid_argument);
}

TEST(UnixAddress, LengthStaysWithinTheStructure) {
  UnixAddress address;
  address.setAddrLen(0);
  EXPECT_EQ(address.getAddrLen(), offsetof(sockaddr_un, sun_path));
  EXPECT_EQ(address.getPath(), "");
  address.setAddrLen(UINT_MAX);
  EXPECT_EQ(address.getAddrLen(), sizeof(sockaddr_un));
  EXPECT_EQ(address.getPath().size(), sizeof(sockaddr_un::sun_path)) << "all zeros: an abstract name";
}

}  // namespace
}  // namespace sylar::test
