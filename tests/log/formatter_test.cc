#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

#include <cctype>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "sylar/log.h"
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

TEST_F(LogFormatterTest, APlaceMayBePartedAndMayBeMissing) {
  EXPECT_EQ(format("%f:%l|%l:%f|%f-%l|%f:"), "pay.cc:42|42:pay.cc|pay.cc-42|pay.cc:");
  const auto nowhere = std::make_shared<LogEvent>(m_logger, LogLevel::WARN, "", 0, 0u, 0u, 0u, 0u, "");
  const auto at = [&](const LogFormatter& formatter) { return formatter.format(m_logger, LogLevel::WARN, nowhere); };
  EXPECT_EQ(at(LogFormatter("%f:%l|%f|%l")), "-|-|-");
  class Own : public LogFormatter::FormatItem {
    void format(std::ostream& os, std::shared_ptr<Logger>, LogLevel::Level, LogEvent::ptr) override { os << "own"; }
  };
  EXPECT_EQ(at(LogFormatter("%f:%l", {{'l', std::make_shared<Own>()}})), "-:own");
  EXPECT_EQ(at(LogFormatter("%f:%l", {{'f', std::make_shared<Own>()}})), "own:-");
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
  const std::string safe = "a\n\t2026 forged\\x0d\n\t\\x00\\x1b[31m\\x7f\t%d{%p}\\\xc3\xa9\\xff";
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

// SEC-59: what a terminal obeys or a reader is misled by beyond ASCII; the text of any language stays.
TEST_F(LogFormatterTest, CommandsBeyondAsciiAreEscapedAndTextStays) {
  const struct {
    std::string text, safe;
  } table[] = {
      {"\xc2\x9b"
       "31m",
       "\\xc2\\x9b31m"},                                             // U+009B, CSI
      {"\xc2\x80\xc2\x9f\xc2\xa0", "\\xc2\\x80\\xc2\\x9f\xc2\xa0"},  // the first and the last of C1; what follows it
      {"\x9b"
       "31m\x80\x9f",
       "\\x9b31m\\x80\\x9f"},  // as a terminal of 8 bits has them
      {"a\xe2\x80\xae"
       "b",
       "a\\xe2\\x80\\xae"
       "b"},  // U+202E, right-to-left override
      {"\xe2\x80\xaa\xe2\x80\xad", "\\xe2\\x80\\xaa\\xe2\\x80\\xad"},
      {"\xe2\x81\xa6\xe2\x81\xa9", "\\xe2\\x81\\xa6\\xe2\\x81\\xa9"},  // U+2066, U+2069: isolates
      {"\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "\\xe2\\x80\\x8e\\xe2\\x80\\x8f\\xd8\\x9c"},
      {"\xe2\x80\xa8\xe2\x80\xa9", "\\xe2\\x80\\xa8\\xe2\\x80\\xa9"},                    // U+2028, U+2029: separators of lines
      {"\xe2\x80\x8d\xe2\x80\xa7\xe2\x80\xaf", "\xe2\x80\x8d\xe2\x80\xa7\xe2\x80\xaf"},  // their neighbours
      {"caf\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87 \xd7\xa9 \xf0\x9f\x98\x80",
       "caf\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87 \xd7\xa9 \xf0\x9f\x98\x80"},
      {"\xf4\x8f\xbf\xbf\xf4\x90\x80\x80", "\xf4\x8f\xbf\xbf\\xf4\\x90\\x80\\x80"},  // the last character, and one beyond
      {"\xc1\x9b \xe0\x82\x9b \xf0\x80\x82\x9b", "\\xc1\\x9b \\xe0\\x82\\x9b \\xf0\\x80\\x82\\x9b"},  // U+009B, overlong
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},                                                            // a surrogate
      {"\xc2", "\\xc2"},                                                                              // cut off
      {"\xe2\x80", "\\xe2\\x80"},
      {"\xf0\x9f\x98 x", "\\xf0\\x9f\\x98 x"},
      {"\xe2\xc2\x9b", "\\xe2\\xc2\\x9b"},  // no byte hides behind one that promises more
  };
  for (const auto& row : table) {
    m_event->getSS().str("");
    m_event->getSS() << row.text;
    EXPECT_EQ(format("%m"), row.safe);
  }
}

/// As a program that knew sylar would write it.
class UpperCaseItem : public LogFormatter::FormatItem {
 public:
  void format(std::ostream& os, std::shared_ptr<Logger> logger, LogLevel::Level level, LogEvent::ptr event) override {
    os << logger->getName() << "/" << LogLevel::ToString(level) << "/";
    for (const char letter : event->getContent()) os << static_cast<char>(std::toupper(letter));
  }
};

TEST_F(LogFormatterTest, ItemOfAProgramCanBeCalled) {
  std::ostringstream out;
  const LogFormatter::FormatItem::ptr item = std::make_shared<UpperCaseItem>();
  item->format(out, m_logger, LogLevel::WARN, m_event);
  EXPECT_EQ(out.str(), "billing/WARN/TEXT");
}

TEST_F(LogFormatterTest, ItemOfAProgramHasALetterInPatterns) {
  const std::map<char, LogFormatter::FormatItem::ptr> items = {{'U', std::make_shared<UpperCaseItem>()},
                                                               {'p', std::make_shared<UpperCaseItem>()}};
  const LogFormatter formatter("<%U> %m %p%n", items);
  EXPECT_FALSE(formatter.isError());
  EXPECT_EQ(formatter.format(m_logger, LogLevel::WARN, m_event), "<billing/WARN/TEXT> text billing/WARN/TEXT\n")
      << "its letter goes before the library's";
  EXPECT_TRUE(LogFormatter("%U").isError());
}

}  // namespace
}  // namespace sylar
