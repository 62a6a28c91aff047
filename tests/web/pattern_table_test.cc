// Which route has a request, and which patterns may not be together.
#include "sylar/web/pattern_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/seed.h"
#include "tests/web/slow_matcher.h"
#include "tests/web/table.h"

namespace sylar::http {
namespace {

using test::Table;

struct Asked {
  const char *method, *path, *host, *winner;
};

void expectWinners(std::vector<std::string> patterns, const std::vector<Asked>& rows) {
  std::sort(patterns.begin(), patterns.end());
  do {
    const Table table(patterns);
    for (const Asked& row : rows) {
      ASSERT_EQ(table.winner(row.method, row.path, row.host), row.winner) << row.method << ' ' << row.host << row.path;
    }
  } while (std::next_permutation(patterns.begin(), patterns.end()));
}

// WEB-1
TEST(PatternTable, MostSpecificPatternWinsWhateverTheOrder) {
  expectWinners({"/", "/a/", "/a/{x}", "/a/b", "GET /a/b", "/a/{$}"}, {{"GET", "/a/b", "", "GET /a/b"},
                                                                       {"HEAD", "/a/b", "", "GET /a/b"},
                                                                       {"POST", "/a/b", "", "/a/b"},
                                                                       {"GET", "/a/c", "", "/a/{x}"},
                                                                       {"GET", "/a/", "", "/a/{$}"},
                                                                       {"GET", "/a/b/c", "", "/a/"},
                                                                       {"GET", "/a/b/", "", "/a/"},
                                                                       {"GET", "/a", "", "/"},
                                                                       {"GET", "/", "", "/"},
                                                                       {"GET", "*", "", "none"},
                                                                       {"GET", "", "", "none"}});
  expectWinners({"/a/b/c", "/a/{x}/d", "/{x}/{y}/{z}", "/{x...}", "/{x}/b/{$}"}, {{"GET", "/a/b/c", "", "/a/b/c"},
                                                                                  {"GET", "/a/b/d", "", "/a/{x}/d"},
                                                                                  {"GET", "/a/b/e", "", "/{x}/{y}/{z}"},
                                                                                  {"GET", "/a/b/", "", "/{x}/b/{$}"},
                                                                                  {"GET", "/a/b", "", "/{x...}"}});
  expectWinners(
      {"HEAD /a", "GET /a", "POST /{x}", "/{x}"},
      {{"HEAD", "/a", "", "HEAD /a"}, {"GET", "/a", "", "GET /a"}, {"POST", "/a", "", "POST /{x}"}, {"PUT", "/a", "", "/{x}"}});
  expectWinners({"h.example/", "GET h.example/a", "[::1]/a", "/a"}, {{"GET", "/a", "", "/a"},
                                                                     {"GET", "/a", "g.example", "/a"},
                                                                     {"GET", "/a", "h.example", "GET h.example/a"},
                                                                     {"GET", "/a", "H.Example:80", "GET h.example/a"},
                                                                     {"PUT", "/a", "h.example", "h.example/"},
                                                                     {"GET", "/a", "[::1]", "[::1]/a"},
                                                                     {"GET", "/a", "[::1]:80", "[::1]/a"},
                                                                     {"PUT", "/b", "[::1]", "none"}});
}

// WEB-3: of all patterns that match the path, whatever their hosts.
TEST(PatternTable, WithoutTheMethodAllAllowedOnesAreFound) {
  const Table table({"GET /a/{x}", "POST /a/b", "PUT /{x...}", "DELETE h/a/b"});
  EXPECT_EQ(table.find("PATCH", "/a/b").allowed.toString(), "GET, HEAD, POST, PUT");
  EXPECT_EQ(table.find("PATCH", "/a/b", "h").allowed.toString(), "DELETE, GET, HEAD, POST, PUT");
  EXPECT_EQ(table.find("PATCH", "/c").allowed.toString(), "PUT");
  EXPECT_TRUE(table.find("PATCH", "/c").is_path_known);
  EXPECT_FALSE(Table({"GET /a"}).find("PATCH", "/b").is_path_known);
}

// WEB-5
TEST(PatternTable, SegmentsAreComparedDecoded) {
  const Table table({"/a b/{x}", "/a/b", "/a%2Fb", "/{x}"});
  EXPECT_EQ(table.winner("GET", "/a%20b/c"), "/a b/{x}");
  EXPECT_EQ(table.winner("GET", "/a%2fb"), "/a%2Fb");
  EXPECT_EQ(table.winner("GET", "/%61%2Fc"), "/{x}");
  EXPECT_EQ(table.winner("GET", "/%61/%62"), "/a/b");
}

// WEB-D16
TEST(PatternTable, EmptySegmentIsNoName) {
  const Table table({"/{x}/b", "/c/{x}/e", "/d/{x}/e/{y...}"});
  EXPECT_EQ(table.winner("GET", "//b"), "none");
  EXPECT_EQ(table.winner("GET", "/c//e"), "none");
  EXPECT_EQ(table.winner("GET", "/d//e/"), "none");
  EXPECT_EQ(table.winner("GET", "/d/d/e/"), "/d/{x}/e/{y...}");
  EXPECT_EQ(table.winner("GET", "/d/d/e//"), "/d/{x}/e/{y...}");
}

// WEB-2, WEB-D16
TEST(PatternTable, ConflictNamesBothPatternsAndARequest) {
  const struct {
    const char *present, *added, *example;
  } rows[] = {
      {"/a/{x}", "/{y}/b", "/a/b"},
      {"/a/{x}", "/a/{y}", "/a/x"},
      {"/a/", "/a/{x...}", "/a/"},
      {"GET /{x}", "/a", "GET /a"},
      {"/{x}/b/c", "/a/", "/a/b/c"},
      {"/a/", "/{x}/b/c", "/a/b/c"},
      {"POST h/a/{x}", "POST H/{y}/b", "POST h/a/b"},
  };
  for (const auto& row : rows) {
    Table table({"/1/2/3/4", row.present});
    try {
      table.add(row.added);
      ADD_FAILURE() << row.added;
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(error.what(), "pattern \"" + std::string(row.added) + "\" conflicts with \"" + row.present + "\": both match \"" +
                                  row.example + "\", and neither is more specific");
    }
    EXPECT_EQ(table.winner("GET", "/1/2/3/4"), "/1/2/3/4");
  }
}

// WEB-L22
TEST(PatternTable, HasAtMost10000Patterns) {
  Table table;
  for (int i = 0; i < 10'000; ++i) {
    table.add("/" + std::to_string(i % 100) + "/{x}/" + std::to_string(i));
  }
  EXPECT_THROW(table.add("/a"), std::length_error);
  EXPECT_EQ(table.winner("GET", "/99/a/9999"), "/99/{x}/9999");
  EXPECT_EQ(table.winner("GET", "/99/a/9998"), "none");
}

// WEB-L22: both ways lead on at each of 12 segments, and no path to an end. With a lookup that goes back into the same node again
// this would take longer than any test may.
TEST(PatternTable, MissVisitsNoNodeTwice) {
  Table table;
  for (unsigned set = 0; set < 4096; ++set) {
    std::string pattern;
    for (unsigned bit = 0; bit < 12; ++bit) pattern += (set >> bit & 1) != 0 ? "/a" : "/{x" + std::to_string(bit) + '}';
    table.add(pattern + '/' + std::to_string(set));
  }
  const std::string path = "/a/a/a/a/a/a/a/a/a/a/a/a/";
  for (int i = 0; i < 100; ++i) ASSERT_EQ(table.winner("GET", path + "none"), "none");
  EXPECT_EQ(table.winner("GET", path + "4095"), "/a/a/a/a/a/a/a/a/a/a/a/a/4095");
}

// ---- Against the obvious matcher. -----------------------------------------------------------------------------------------------

struct Request {
  std::string method, host, path;
};

/// All requests of two segments that patterns name, one that none names, and the empty one, up to a length beyond all patterns.
std::vector<Request> allRequests() {
  std::vector<std::string> paths{""}, all;
  for (int length = 1; length <= 4; ++length) {
    std::vector<std::string> longer;
    for (const std::string& path : paths) {
      for (const char* segment : {"/a", "/b", "/z", "/"}) longer.push_back(path + segment);
    }
    all.insert(all.end(), longer.begin(), longer.end());
    paths = std::move(longer);
  }
  std::vector<Request> requests;
  for (const std::string& path : all) {
    for (const char* method : {"GET", "HEAD", "POST"}) {
      for (const char* host : {"h", "g"}) requests.push_back({method, host, path});
    }
  }
  return requests;
}

constexpr size_t kRequests = (4 + 16 + 64 + 256) * 3 * 2;
using Matched = std::bitset<kRequests>;

/// What the obvious matcher knows of patterns: the set of requests that each matches.
class Oracle {
 public:
  const Matched& matched(const std::string& pattern) {
    const auto [at, is_new] = m_matched.try_emplace(pattern);
    for (size_t i = 0; is_new && i < kRequests; ++i) {
      at->second[i] = test::matches(pattern, m_requests[i].method, m_requests[i].host, m_requests[i].path);
    }
    return at->second;
  }
  const Request& request(size_t i) const { return m_requests[i]; }

  static bool hasHost(const std::string& pattern) { return pattern.find("h/") != std::string::npos; }
  bool conflict(const std::string& a, const std::string& b) {
    const Matched both = matched(a) & matched(b);
    return hasHost(a) == hasHost(b) && both.any() && (matched(a) == matched(b) || (both != matched(a) && both != matched(b)));
  }
  /// Returns the pattern of `set` that has request `i`.
  std::string winner(const std::vector<std::string>& set, size_t i) {
    std::string best = "none";
    for (const std::string& one : set) {
      if (!matched(one)[i]) continue;
      const bool is_better =
          best == "none" || (hasHost(one) != hasHost(best) ? hasHost(one) : matched(one).count() < matched(best).count());
      if (is_better) best = one;
    }
    return best;
  }

 private:
  const std::vector<Request> m_requests = allRequests();
  std::map<std::string, Matched> m_matched;
};

std::string randomPattern(std::mt19937& random) {
  static constexpr const char* kBegin[] = {"", "", "GET ", "POST ", "HEAD ", "h", "GET h"};
  static constexpr const char* kSegments[] = {"/a", "/b", "/{x}", "/a", "/{x}"};
  static constexpr const char* kEnds[] = {"", "", "", "/", "/{$}", "/{t...}"};
  std::string pattern = kBegin[random() % std::size(kBegin)];
  const size_t length = random() % 3;
  for (size_t i = 0; i < length; ++i) {
    std::string segment = kSegments[random() % std::size(kSegments)];
    if (segment == "/{x}") segment.insert(3, 1, static_cast<char>('0' + i));
    pattern += segment;
  }
  const char* const end = kEnds[random() % std::size(kEnds)];
  return pattern + (length == 0 && *end == '\0' ? "/" : end);
}

// WEB-1, WEB-2
TEST(PatternTable, AgreesWithTheObviousMatcher) {
  Oracle oracle;
  std::mt19937 random(static_cast<uint32_t>(sylar::test::seed()));
  for (int round = 0; round < 20'000; ++round) {
    Table table;
    std::vector<std::string> accepted;
    for (int tries = 0; tries < 8; ++tries) {
      const std::string pattern = randomPattern(random);
      const bool conflicts =
          std::any_of(accepted.begin(), accepted.end(), [&](const std::string& one) { return oracle.conflict(one, pattern); });
      try {
        table.add(pattern);
        ASSERT_FALSE(conflicts) << pattern << " among " << testing::PrintToString(accepted);
        accepted.push_back(pattern);
      } catch (const std::invalid_argument& error) {
        ASSERT_TRUE(conflicts) << error.what();
      }
    }
    for (int asked = 0; asked < 20; ++asked) {
      const size_t i = random() % kRequests;
      const Request& request = oracle.request(i);
      ASSERT_EQ(table.winner(request.method, request.path, request.host), oracle.winner(accepted, i))
          << request.method << ' ' << request.host << request.path << " among " << testing::PrintToString(accepted);
    }
  }
}

}  // namespace
}  // namespace sylar::http
