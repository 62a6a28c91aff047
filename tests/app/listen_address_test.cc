#include "sylar/app/listen_address.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace sylar {
namespace {

std::string resolved(const std::string& text) {
  std::string all;
  for (const Address::ptr& address : resolveListenAddress(text)) all += (all.empty() ? "" : " ") + address->toString();
  return all;
}

TEST(ListenAddress, RightForms) {
  for (const char* text : {"0.0.0.0:80", "127.0.0.1:0", "[::]:80", "[::1]:65535", "localhost:80", "lo:80", "my-host.example:80",
                           "/run/x.sock", "./x", "@x"}) {
    EXPECT_EQ(listenAddressRule(text), "") << text;
  }
}

TEST(ListenAddress, WrongForms) {
  for (const char* text : {"", "80", "host", ":80", "host:", "host:65536", "host:-1", "host:+1", "host:1x", "host: 80",
                           "ho st:80", "::1:80", "[::1:80", "::1]:80", "[]:80", "a:b:80"}) {
    EXPECT_NE(listenAddressRule(text), "") << text;
  }
  EXPECT_NE(listenAddressRule("/" + std::string(107, 'x')), "") << "one byte too long for a Unix socket";
  EXPECT_EQ(listenAddressRule("/" + std::string(106, 'x')), "");
}

TEST(ListenAddress, NumbersAreTakenAsTheyAre) {
  EXPECT_EQ(resolved("127.0.0.1:80"), "127.0.0.1:80");
  EXPECT_EQ(resolved("[::1]:80"), "[::1]:80");
}

TEST(ListenAddress, AnInterfaceStandsForItsAddresses) { EXPECT_NE(resolved("lo:81").find("127.0.0.1:81"), std::string::npos); }

TEST(ListenAddress, ANameIsLookedUp) { EXPECT_EQ(resolved("localhost:82"), "127.0.0.1:82"); }

TEST(ListenAddress, WithoutAColonItIsAPath) { EXPECT_EQ(resolved("/run/x.sock"), "/run/x.sock"); }

TEST(ListenAddress, BehindAnAtItIsAnAbstractName) {
  EXPECT_EQ(resolved("@demo"), "\\0demo");
  EXPECT_EQ(resolved("@a/b"), "\\0a/b");
  EXPECT_NE(listenAddressRule("@"), "");
  EXPECT_EQ(listenAddressRule("@" + std::string(106, 'x')), "");
  EXPECT_NE(listenAddressRule("@" + std::string(107, 'x')), "");
}

TEST(ListenAddress, ANameThatNobodyKnowsIsAnError) {
  try {
    resolved("no.such.host.invalid:80");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()).find("file"), std::string::npos) << "it is about a host: " << error.what();
  }
}

}  // namespace
}  // namespace sylar
