// The parser of requests: whole, cut, malformed, and announced but never sent.
#include "examples/ttlkv/request_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ttlkv {
namespace {

using Requests = std::vector<std::vector<std::string>>;

/// Gives the bytes to the reader, and returns the requests that it finds. Requests without arguments are left out, as in the
/// server.
Requests feed(RequestReader& reader, std::string_view bytes) {
  Requests found;
  while (!bytes.empty()) {
    const auto space = reader.space();
    const size_t size = std::min(space.size(), bytes.size());
    std::memcpy(space.data(), bytes.data(), size);
    reader.received(size);
    bytes.remove_prefix(size);
    while (reader.next() == RequestReader::kRequest) {
      if (!reader.args().empty()) found.emplace_back(reader.args().begin(), reader.args().end());
    }
  }
  return found;
}

std::string errorOf(std::string_view bytes) {
  RequestReader reader;
  feed(reader, bytes);
  return reader.error();
}

TEST(TtlkvRequestReader, ReadsAPipelineCutAtEveryByte) {
  using namespace std::string_literals;
  const std::string bytes =
      "*2\r\n$3\r\nGET\r\n$1\r\na\r\n*0\r\nPING\r\n\r\n*-1\r\n"s
      "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\n\0\r\n*\r\nECHO \"a\\x42\\n\" 'it\\'s'\n"s;
  const Requests wanted = {{"GET", "a"}, {"PING"}, {"SET", "", "\0\r\n*"s}, {"ECHO", "aB\n", "it's"}};
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    RequestReader reader;
    Requests found = feed(reader, std::string_view(bytes).substr(0, cut));
    for (auto& request : feed(reader, std::string_view(bytes).substr(cut))) found.push_back(std::move(request));
    EXPECT_EQ(found, wanted) << "cut at " << cut;
    EXPECT_EQ(reader.error(), "");
  }
  RequestReader reader;
  Requests found;
  for (const char c : bytes) {
    for (auto& request : feed(reader, {&c, 1})) found.push_back(std::move(request));
  }
  EXPECT_EQ(found, wanted);
}

TEST(TtlkvRequestReader, RefusesWhatRedisRefuses) {
  const struct {
    std::string bytes, error;
  } kCases[] = {
      {"*x\r\n", "ERR Protocol error: invalid multibulk length"},
      {"*\r\n", "ERR Protocol error: invalid multibulk length"},
      {"* 1\r\n", "ERR Protocol error: invalid multibulk length"},
      {"*01\r\n", "ERR Protocol error: invalid multibulk length"},
      {"*2147483648\r\n", "ERR Protocol error: invalid multibulk length"},
      {"*1\r\nPING\r\n", "ERR Protocol error: expected '$', got 'P'"},
      {"*1\r\n:4\r\n", "ERR Protocol error: expected '$', got ':'"},
      {"*1\r\n\r\n", "ERR Protocol error: expected '$', got '\r'"},
      {"*1\r\n$x\r\n", "ERR Protocol error: invalid bulk length"},
      {"*1\r\n$-1\r\n", "ERR Protocol error: invalid bulk length"},
      {"*1\r\n$536870913\r\n", "ERR Protocol error: invalid bulk length"},
      {"ECHO \"a\r\n", "ERR Protocol error: unbalanced quotes in request"},
      {"ECHO 'a\r\n", "ERR Protocol error: unbalanced quotes in request"},
      {"ECHO \"a\"b\r\n", "ERR Protocol error: unbalanced quotes in request"},
      {std::string(RequestReader::kMaxLine + 1, 'x'), "ERR Protocol error: too big inline request"},
      {"*" + std::string(RequestReader::kMaxLine, '1'), "ERR Protocol error: too big mbulk count string"},
      {"*1\r\n$" + std::string(RequestReader::kMaxLine, '1'), "ERR Protocol error: too big bulk count string"},
  };
  for (const auto& [bytes, error] : kCases) EXPECT_EQ(errorOf(bytes), error) << bytes.substr(0, 40);
}

// A NUL hides the end of its line from Redis, which waits on until the line is too long.
TEST(TtlkvRequestReader, WaitsOnBehindANulInALine) {
  using namespace std::string_literals;
  for (const std::string& line :
       {"\0\r\n"s, "PI\0NG\r\n"s, "ECHO \"a\0\"\r\n"s, "*1\0\r\n$4\r\n"s, "*1\r\n$4\0\r\n"s, "*1\r\n\0$4\r\n"s}) {
    RequestReader reader;
    EXPECT_EQ(feed(reader, "PING\r\n" + line + "PING\r\nPING\n"), (Requests{{"PING"}})) << line;
    EXPECT_EQ(reader.error(), "") << line;
    feed(reader, std::string(RequestReader::kMaxLine, '\n'));
    EXPECT_NE(reader.error().find("too big"), std::string::npos) << line;
  }
}

TEST(TtlkvRequestReader, TakesOtherSpaceBeforeAWordThanBehindIt) {
  RequestReader reader;
  EXPECT_EQ(feed(reader, "\v\fPING\v\r\n'a'\fb \"c\"\v\r\n"), (Requests{{"PING\v"}, {"a", "b", "c"}}));
}

TEST(TtlkvRequestReader, StaysBrokenAfterAnError) {
  RequestReader reader;
  EXPECT_TRUE(feed(reader, "*1\r\n$x\r\n").empty());
  EXPECT_TRUE(feed(reader, "*1\r\n$4\r\nPING\r\n").empty());
  EXPECT_EQ(reader.next(), RequestReader::kBroken);
}

TEST(TtlkvRequestReader, WaitsAtTheLimitOfALine) {
  EXPECT_EQ(errorOf(std::string(RequestReader::kMaxLine, 'x')), "");
  EXPECT_EQ(errorOf("*" + std::string(RequestReader::kMaxLine - 1, '1')), "");
}

TEST(TtlkvRequestReader, AllocatesNothingForBytesThatAreAnnounced) {
  RequestReader reader(int64_t{1} << 31);
  feed(reader, "*2147483647\r\n$1073741824\r\nhello");
  EXPECT_EQ(reader.capacity(), RequestReader::kSmallBuffer);
}

TEST(TtlkvRequestReader, FreesTheBufferOfALargeRequest) {
  RequestReader reader;
  const std::string value(1'000'000, 'v');
  const auto requests = feed(reader, "*1\r\n$1000000\r\n" + value + "\r\n");
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0][0], value);
  EXPECT_LE(reader.capacity(), 4 * value.size());
  feed(reader, "PING\r\n");
  EXPECT_EQ(reader.capacity(), RequestReader::kSmallBuffer);
}

}  // namespace
}  // namespace ttlkv
