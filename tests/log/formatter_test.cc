#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

#include <sstream>
#include <string>

#include "sylar/log/log.h"
#include "sylar/log/log_formatter.h"

namespace sylar {
namespace {

class LogFormatterTest : public testing::Test {
 protected:
  LogFormatterTest() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
    m_event->getSS() << "text";
  }
  std::string format(const std::string& pattern) { return LogFormatter(pattern).format(m_logger, LogLevel::WARN, m_event); }

  const Logger::ptr m_logger = std::make_shared<Logger>("billing");
  // 2001-09-09 01:46:40.012345678
  const LogEvent::ptr m_event = std::make_shared<LogEvent>(m_logger, LogLevel::WARN, "pay.cc", 42, 1234u, 77u, 5'000'000'000u,
                                                           1'000'000'000u, "worker_1", 12'345'678u);
};

TEST_F(LogFormatterTest, EachLetter) {
  const struct {
    const char* pattern;
    const char* text;
  } kCases[] = {
      {"%m", "text"},
      {"%p", "WARN"},
      {"%r", "1234"},
      {"%c", "billing"},
      {"%t", "77"},
      {"%n", "\n"},
      {"%d", "2001-09-09 01:46:40"},
      {"%d{}", "2001-09-09 01:46:40"},
      {"%d{%H:%M}", "01:46"},
      {"%f", "pay.cc"},
      {"%l", "42"},
      {"%T", "\t"},
      {"%F", "5000000000"},
      {"%N", "worker_1"},
      {"%%", "%"},
      {"", ""},
      {"plain {text} }", "plain {text} }"},
      {"%m{x}", "text{x}"},
      {"%%m%m%%", "%mtext%"},
      {"%p%p", "WARNWARN"},
      {"%d{%%d %d}%d{%Y}", "%d 092001"},
  };
  for (const auto& one : kCases) {
    EXPECT_FALSE(LogFormatter(one.pattern).isError()) << one.pattern;
    EXPECT_EQ(format(one.pattern), one.text) << one.pattern;
    EXPECT_EQ(LogFormatter(one.pattern).getPattern(), one.pattern);
  }
}

// CD-L1
TEST_F(LogFormatterTest, FractionsOfASecondAreCutNotRounded) {
  EXPECT_EQ(format("%d{%S.%3N}"), "40.012");
  EXPECT_EQ(format("%d{%S.%6N}"), "40.012345");
  EXPECT_EQ(format("%d{%9N %M}"), "012345678 46");
  EXPECT_EQ(format("%d{%3N%3N}"), "012012");
  EXPECT_EQ(format("%d{%%3N}"), "%3N");
}

TEST_F(LogFormatterTest, WrongPartsAreToldAndStandAsTheyAre) {
  for (const char* pattern : {"%q", "%", "%m%", "%-5p", "%5p", "% m", "%d{%H", "a%zb"}) {
    EXPECT_TRUE(LogFormatter(pattern).isError()) << pattern;
  }
  EXPECT_EQ(format("a%qb"), "a%qb");
  EXPECT_EQ(format("%m%"), "text%");
  EXPECT_EQ(format("%-5p"), "%-5p");
  EXPECT_EQ(format("%m %d{%H"), "text %d{%H");
}

TEST_F(LogFormatterTest, DefaultPattern) {
  EXPECT_EQ(format(LogFormatter::kDefaultPattern),
            "2001-09-09 01:46:40\t77\tworker_1\t5000000000\t[WARN]\t[billing]\tpay.cc:42\ttext\n");
  EXPECT_EQ(LogFormatter().getPattern(), LogFormatter::kDefaultPattern);
}

// SEC-59
TEST_F(LogFormatterTest, TextForgesNoLineAndCommandsNoTerminal) {
  using namespace std::string_literals;
  const std::string text = "a\n2026 forged\r\n\0\x1b[31m\x7f\t%d{%p}\\\xc3\xa9\xff"s;
  const std::string safe = "a\n\t2026 forged\\x0d\n\t\\x00\\x1b[31m\\x7f\t%d{%p}\\\xc3\xa9\xff";
  m_event->getSS().str("");
  m_event->getSS().write(text.data(), static_cast<std::streamsize>(text.size()));
  EXPECT_EQ(format("<%m>"), "<" + safe + ">");
  const auto logger = std::make_shared<Logger>("\n");
  const auto event = std::make_shared<LogEvent>(logger, LogLevel::WARN, "", 0, 0u, 0u, 0u, 0u, "\x1b");
  EXPECT_EQ(LogFormatter("%c %N").format(logger, LogLevel::WARN, event), "\n\t \\x1b");
}

TEST_F(LogFormatterTest, TimesOfOtherSecondsAndPatternsAreNotMixedUp) {
  const auto at = [&](uint64_t second) {
    return std::make_shared<LogEvent>(m_logger, LogLevel::WARN, "", 0, 0u, 0u, 0u, second, "");
  };
  const LogFormatter seconds("%d{%S}"), minutes("%d{%M}");
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(seconds.format(m_logger, LogLevel::WARN, at(61)), "01");
    EXPECT_EQ(minutes.format(m_logger, LogLevel::WARN, at(61)), "01");
    EXPECT_EQ(seconds.format(m_logger, LogLevel::WARN, at(62)), "02");
    EXPECT_EQ(minutes.format(m_logger, LogLevel::WARN, at(122)), "02");
  }
  const std::string wide(300, '.');
  EXPECT_EQ(LogFormatter("%d{" + wide.substr(0, 100) + "%S}").format(m_logger, LogLevel::WARN, at(61)),
            wide.substr(0, 100) + "01");
}

TEST_F(LogFormatterTest, WritesToAStream) {
  std::ostringstream out;
  LogFormatter("%p").format(out, m_logger, LogLevel::ERROR, m_event) << "!";
  EXPECT_EQ(out.str(), "ERROR!");
}

}  // namespace
}  // namespace sylar
