// What a pattern says, and how two of them relate.
#include "sylar/web/pattern.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "sylar/web/path.h"

namespace sylar::http {
namespace {

std::string refusalOf(const std::string& pattern) {
  try {
    Pattern{pattern};
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

std::string manySegments(size_t count) {
  std::string path;
  for (size_t i = 0; i < count; ++i) path += "/a";
  return path;
}

TEST(Pattern, WellFormedOnesAreAccepted) {
  for (const char* pattern : {"/",
                              "/{$}",
                              "/a",
                              "/a/",
                              "/a/{$}",
                              "/{x}",
                              "/{x...}",
                              "/a/{x_1}/b/{_y...}",
                              "GET /a",
                              "GET \t /a ",
                              "DELETE host/a",
                              "M-SEARCH /a",
                              "Example.COM/",
                              "127.0.0.1/",
                              "[::1]/a",
                              "/a b",
                              "/a%20b",
                              "/a%2Fb",
                              "/%25",
                              "/..",
                              "/\xc3\xa4",
                              "/$",
                              "/..."}) {
    EXPECT_EQ(refusalOf(pattern), "accepted") << pattern;
  }
}

TEST(Pattern, MalformedOnesAreRefusedWithTheReason) {
  const struct {
    const char *pattern, *reason;
  } rows[] = {
      {"", "it has no path"},
      {"GET", "it has no path"},
      {"GET ", "it has no path"},
      {"host", "it has no path"},
      {"get /a", "\"get\" is not a method"},
      {" /a", "\"\" is not a method"},
      {"NONE /a", "\"NONE\" is not a method"},
      {"TRACE /a", "no route answers this method"},
      {"CONNECT /a", "no route answers this method"},
      {"host:80/a", "without a port"},
      {"{host}/a", "without a port"},
      {"ho st/a", "\"ho\" is not a method"},
      {"GET ho st/a", "the host is a name or address"},
      {"//", "it has an empty segment"},
      {"/a//b", "it has an empty segment"},
      {"/{}", "a wildcard has no name"},
      {"/{...}", "a wildcard has no name"},
      {"/{x", "a brace begins or ends a segment"},
      {"/x}", "a brace begins or ends a segment"},
      {"/{{x}}", "a brace begins or ends a segment"},
      {"/{x}{y}", "a brace begins or ends a segment"},
      {"/a{x}", "a brace begins or ends a segment"},
      {"/{x}b", "a brace begins or ends a segment"},
      {"/{1x}", "\"1x\" is not a name"},
      {"/{a-b}", "\"a-b\" is not a name"},
      {"/{a b}", "\"a b\" is not a name"},
      {"/{x..}", "\"x..\" is not a name"},
      {"/{$x}", "\"$x\" is not a name"},
      {"/{x...}/a", "{x...} must be at the end"},
      {"/{x...}/", "{x...} must be at the end"},
      {"/{$}/a", "{$} must be at the end"},
      {"/{$}/", "{$} must be at the end"},
      {"/{x}/{x}", "the name \"x\" twice"},
      {"/{x}/a/{x...}", "the name \"x\" twice"},
      {"/a?b", "it has a query or fragment"},
      {"/a#b", "it has a query or fragment"},
      {"/100%", "a '%' begins no escape"},
      {"/%4", "a '%' begins no escape"},
      {"/%zz", "a '%' begins no escape"},
  };
  for (const auto& row : rows) {
    const std::string refusal = refusalOf(row.pattern);
    EXPECT_NE(refusal.find(row.reason), std::string::npos) << row.pattern << ": " << refusal;
    EXPECT_NE(refusal.find('"' + std::string(row.pattern) + '"'), std::string::npos) << refusal;
  }
}

// WEB-L22
TEST(Pattern, HasAtMost64Segments) {
  EXPECT_EQ(refusalOf(manySegments(64)), "accepted");
  EXPECT_EQ(refusalOf(manySegments(63) + '/'), "accepted");
  EXPECT_NE(refusalOf(manySegments(65)).find("it has more than 64 segments"), std::string::npos);
  EXPECT_NE(refusalOf(manySegments(64) + '/').find("it has more than 64 segments"), std::string::npos);
}

const char* nameOf(Relation relation) {
  switch (relation) {
    case Relation::kDisjoint: return "disjoint";
    case Relation::kSame: return "same";
    case Relation::kMoreSpecific: return "more specific";
    case Relation::kMoreGeneral: return "more general";
    case Relation::kOverlap: return "overlap";
  }
  return "none";
}

// WEB-1, WEB-2, WEB-D16
TEST(Pattern, RelationOfTwo) {
  const struct {
    const char *first, *second, *relation;
  } rows[] = {
      {"/a", "/a", "same"},
      {"/{x}", "/{y}", "same"},
      {"/a/", "/a/{x...}", "same"},
      {"GET /a", "GET /a", "same"},
      {"h/a", "H/a", "same"},
      {"/a%41", "/aA", "same"},
      {"/a", "/b", "disjoint"},
      {"/a", "/a/", "disjoint"},
      {"/a", "/a/{$}", "disjoint"},
      {"/{x}", "/", "more specific"},
      {"/{x}", "/{$}", "disjoint"},
      {"/a/{x}", "/a/{$}", "disjoint"},
      {"/a/{$}", "/a/", "more specific"},
      {"/a/{$}", "/{x}/{$}", "more specific"},
      {"/a/{$}", "/{x}/", "more specific"},
      {"/a", "/{x}", "more specific"},
      {"/a/b", "/a/", "more specific"},
      {"/a/{x}", "/a/{x...}", "more specific"},
      {"/a/b/", "/a/", "more specific"},
      {"/a%2Fb", "/{x}", "more specific"},
      {"/a%2Fb", "/a/b", "disjoint"},
      {"GET /a", "/a", "more specific"},
      {"HEAD /a", "GET /a", "more specific"},
      {"POST /a", "GET /a", "disjoint"},
      {"GET /a", "GET /{x}", "more specific"},
      {"h/", "/a/b", "more specific"},
      {"h/{x}", "POST /a", "more specific"},
      {"h/a", "g/a", "disjoint"},
      {"/a/{x}", "/{y}/b", "overlap"},
      {"/a/", "/{x}/b", "overlap"},
      {"/{x}/b/", "/a/{y...}", "overlap"},
      {"GET /{x}", "/a", "overlap"},
      {"GET /{x...}", "/a/b", "overlap"},
      {"HEAD /{x}", "GET /a", "overlap"},
      {"h/a/{x}", "h/{y}/b", "overlap"},
      {"/{x}/{y}/c", "/a/", "overlap"},
  };
  for (const auto& row : rows) {
    const Pattern first(row.first), second(row.second);
    EXPECT_STREQ(nameOf(first.relationTo(second)), row.relation) << row.first << " and " << row.second;
    std::string reverse = row.relation;
    if (reverse == "more specific") reverse = "more general";
    EXPECT_EQ(nameOf(second.relationTo(first)), reverse) << row.second << " and " << row.first;
  }
}

// WEB-2
TEST(Pattern, ExampleOfARequestThatBothMatch) {
  const struct {
    const char *first, *second, *example;
  } rows[] = {
      {"/a/{x}", "/{y}/b", "/a/b"},
      {"/{x}", "/{y}", "/x"},
      {"/", "/{x...}", "/"},
      {"GET /{x}", "/a", "GET /a"},
      {"HEAD /{x}", "GET /a", "HEAD /a"},
      {"h/a/{x}", "h/{y}/b", "h/a/b"},
      {"/{x}/b/", "/a/{y...}", "/a/b/"},
      {"/{x}/{y}/c", "/a/", "/a/x/c"},
      {"/a b/{x}", "/{y}/c%2Fd", "/a%20b/c%2Fd"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Pattern(row.first).exampleWith(Pattern(row.second)), row.example);
    EXPECT_EQ(Pattern(row.second).exampleWith(Pattern(row.first)), row.example);
  }
}

// WEB-5
TEST(CanonicalPath, DecodesAllButSlashAndPercent) {
  const struct {
    const char *path, *canonical;
    bool malformed;
  } rows[] = {
      {"/a/b", "/a/b", false}, {"/%61%2e", "/a.", false}, {"/a%2fb%2F", "/a%2Fb%2F", false}, {"/%25%32%46", "/%252F", false},
      {"/%", "/%25", true},    {"/%2", "/%252", true},    {"/%zz/%41", "/%25zz/A", true},    {"/a+b", "/a+b", false},
  };
  for (const auto& row : rows) {
    const CanonicalPath path(row.path);
    EXPECT_EQ(path.text(), row.canonical);
    EXPECT_EQ(path.isMalformed(), row.malformed) << row.path;
  }
}

// WEB-5
TEST(Pattern, BindsTheDecodedParts) {
  HttpRequest request;
  const CanonicalPath path("/u%73er/a%2Fb/%252F/x/%2F/y");
  Pattern("/user/{first}/{second}/{rest...}").bind(path.text(), request);
  EXPECT_EQ(request.getPathParam("first"), "a/b");
  EXPECT_EQ(request.getPathParam("second"), "%2F");
  EXPECT_EQ(request.getPathParam("rest"), "x///y");
  EXPECT_EQ(request.getPathParam("third"), "");
  request.reset();
  EXPECT_EQ(request.getPathParam("first"), "");
}

}  // namespace
}  // namespace sylar::http
