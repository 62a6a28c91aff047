// Reads jobs from the JSON of requests, and refuses what is wrong with it in words.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "job.h"

namespace jobs {

/// What is wrong with a request.
struct BadRequest : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws BadRequest if `id` is not from 1 to 200 visible ASCII characters.
void checkId(const std::string& id);

/// Reads {"in_ms": N}, {"at_ms": N} or {"every_ms": N}, with a "payload" that may be any JSON. Throws BadRequest.
Job readJob(const std::string& id, const std::string& body);

/// Reads an array of at most 1000 of these, each with its "id". Throws BadRequest.
std::vector<Job> readJobs(const std::string& body);

}  // namespace jobs
