// The JSON of requests: what is taken, and what is refused, and in which words.
#include "examples/jobs/request.h"

#include <gtest/gtest.h>

#include <chrono>

namespace jobs {
namespace {

using namespace std::chrono_literals;

std::string refusal(const std::string& body) {
  try {
    readJob("a", body);
  } catch (const BadRequest& mistake) {
    return mistake.what();
  }
  return "";
}

TEST(JobsRequest, AJobIsDueInAWhileOrAtATimeOrEveryPeriod) {
  const Job later = readJob("a", R"({"in_ms": 1500, "payload": {"x": [1, "é"]}})");
  EXPECT_EQ(later.id, "a");
  EXPECT_TRUE(later.when.from_now);
  EXPECT_EQ(later.when.time, 1500ms);
  EXPECT_EQ(later.period, 0ms);
  EXPECT_EQ(later.payload, "{\"x\":[1,\"\\u00e9\"]}");
  const Job then = readJob("a", R"({"at_ms": 1764000000000})");
  EXPECT_FALSE(then.when.from_now);
  EXPECT_EQ(then.when.time, 1764000000000ms);
  EXPECT_EQ(then.payload, "null");
  const Job every = readJob("a", R"({"every_ms": 60000})");
  EXPECT_TRUE(every.when.from_now);
  EXPECT_EQ(every.when.time, 1min);
  EXPECT_EQ(every.period, 1min);
}

// J-7
TEST(JobsRequest, MistakesAreRefusedInWords) {
  EXPECT_EQ(refusal("{"), "the body is not JSON");
  EXPECT_EQ(refusal("[]"), "a job must be an object");
  EXPECT_EQ(refusal(R"({"in_ms": 1, "payload": )" + std::string(100'000, '[')), "the body is nested more than 64 deep");
  EXPECT_EQ(refusal(R"({"in_ms": 1, "payload": )" + std::string(63, '[') + std::string(63, ']') + "}"), "");
  EXPECT_EQ(refusal("{}"), "one of in_ms, at_ms and every_ms must be given");
  EXPECT_EQ(refusal(R"({"in_ms": 1, "at_ms": 1})"), "one of in_ms, at_ms and every_ms must be given");
  EXPECT_EQ(refusal(R"({"in_ms": 1, "paylod": 1})"), "no field has the name \"paylod\"");
  EXPECT_EQ(refusal(R"({"every_ms": 0})"), "every_ms must be an integer from 1 to 3155760000000");
  for (const char* wrong :
       {"-1", "\"1\"", "1.5", "1e3", "null", "true", "3155760000001", "18446744073709551615", "-9223372036854775808"}) {
    EXPECT_EQ(refusal(R"({"in_ms": )" + std::string(wrong) + "}"), "in_ms must be an integer from 0 to 3155760000000") << wrong;
  }
  EXPECT_EQ(refusal(R"({"in_ms": 3155760000000})"), "");
  EXPECT_EQ(refusal(R"({"at_ms": 7258118400001})"), "at_ms must be an integer from 0 to 7258118400000");
}

// J-7
TEST(JobsRequest, AnIdIsVisibleAndNotLong) {
  EXPECT_NO_THROW(checkId("a/b:c?%"));
  EXPECT_NO_THROW(checkId(std::string(200, 'a')));
  for (const std::string& wrong : {std::string(), std::string("a b"), std::string("a\n"), std::string("\xc3\xa9"),
                                   std::string(201, 'a'), std::string(1, '\0')}) {
    EXPECT_THROW(checkId(wrong), BadRequest) << wrong;
  }
}

// J-7
TEST(JobsRequest, AnArrayHasJobsWithDifferentIds) {
  const auto jobs = readJobs(R"([{"id": "a", "in_ms": 1}, {"id": "b", "at_ms": 2}])");
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[1].id, "b");
  EXPECT_EQ(jobs[1].when.time, 2ms);
  for (const char* wrong : {"{}", "[]", "[1]", R"([{"in_ms": 1}])", R"([{"id": 1, "in_ms": 1}])", R"([{"id": "", "in_ms": 1}])",
                            R"([{"id": "a", "in_ms": 1}, {"id": "a", "in_ms": 1}])", R"([{"id": "a"}])"}) {
    EXPECT_THROW(readJobs(wrong), BadRequest) << wrong;
  }
}

}  // namespace
}  // namespace jobs
