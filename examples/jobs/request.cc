#include "request.h"

#include <algorithm>
#include <initializer_list>
#include <set>

#include <nlohmann/json.hpp>

namespace jobs {

namespace {

using Json = nlohmann::json;

constexpr int64_t kLastTime = 7'258'118'400'000;      // 2200-01-01, in ms: exact in a double, too, even in microseconds
constexpr int64_t kLongestDelay = 3'155'760'000'000;  // 100 years, in ms
constexpr size_t kMostJobs = 1000;
constexpr int kMostDepth = 64;  // it is written by a function that calls itself, on the stack of a fiber

Json parse(const std::string& body) {
  const auto checkDepth = [](int depth, Json::parse_event_t, const Json&) {
    if (depth > kMostDepth) throw BadRequest("the body is nested more than " + std::to_string(kMostDepth) + " deep");
    return true;
  };
  Json json = Json::parse(body, checkDepth, false);
  if (json.is_discarded()) throw BadRequest("the body is not JSON");
  return json;
}

Micros milliseconds(const Json& job, const char* name, int64_t least, int64_t most) {
  const Json& value = job[name];
  const bool right = value.is_number_unsigned() ? value.get<uint64_t>() <= static_cast<uint64_t>(most)
                                                : value.is_number_integer() && value.get<int64_t>() <= most;
  if (!right || value.get<int64_t>() < least) {
    throw BadRequest(std::string(name) + " must be an integer from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return std::chrono::milliseconds(value.get<int64_t>());
}

void checkFields(const Json& job, std::initializer_list<const char*> known) {
  for (const auto& [name, value] : job.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw BadRequest("no field has the name " + Json(name).dump(-1, ' ', true, Json::error_handler_t::replace));
    }
  }
}

Job jobOf(const std::string& id, const Json& json) {
  checkId(id);
  Job job{.id = id, .payload = "null", .when = {}};
  if (json.contains("in_ms") + json.contains("at_ms") + json.contains("every_ms") != 1) {
    throw BadRequest("one of in_ms, at_ms and every_ms must be given");
  }
  if (json.contains("in_ms")) job.when = When::in(milliseconds(json, "in_ms", 0, kLongestDelay));
  if (json.contains("at_ms")) job.when = When::at(milliseconds(json, "at_ms", 0, kLastTime));
  if (json.contains("every_ms")) {
    job.period = milliseconds(json, "every_ms", 1, kLongestDelay);
    job.when = When::in(job.period);
  }
  if (json.contains("payload")) job.payload = json["payload"].dump(-1, ' ', true, Json::error_handler_t::replace);
  return job;
}

}  // namespace

void checkId(const std::string& id) {
  const bool visible = std::all_of(id.begin(), id.end(), [](char each) { return each > ' ' && each <= '~'; });
  if (!visible || id.empty() || id.size() > 200) throw BadRequest("an id must have from 1 to 200 visible ASCII characters");
}

Job readJob(const std::string& id, const std::string& body) {
  const Json json = parse(body);
  if (!json.is_object()) throw BadRequest("a job must be an object");
  checkFields(json, {"in_ms", "at_ms", "every_ms", "payload"});
  return jobOf(id, json);
}

std::vector<Job> readJobs(const std::string& body) {
  const Json json = parse(body);
  if (!json.is_array() || json.empty() || json.size() > kMostJobs) {
    throw BadRequest("the body must be an array of 1 to " + std::to_string(kMostJobs) + " jobs");
  }
  std::vector<Job> all;
  std::set<std::string> ids;
  for (const Json& each : json) {
    if (!each.is_object()) throw BadRequest("a job must be an object");
    checkFields(each, {"id", "in_ms", "at_ms", "every_ms", "payload"});
    if (!each.contains("id") || !each["id"].is_string()) throw BadRequest("a job must have an id, which is a string");
    all.push_back(jobOf(each["id"].get<std::string>(), each));
    if (!ids.insert(all.back().id).second) throw BadRequest("the id " + all.back().id + " occurs twice");
  }
  return all;
}

}  // namespace jobs
