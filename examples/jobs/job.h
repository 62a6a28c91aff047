// What a job is, and what becomes of it. All times are microseconds since 1970 by the clock of the store, and so the same for all
// replicas.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace jobs {

using Micros = std::chrono::microseconds;
using Time = Micros;  ///< since 1970
inline constexpr Time kNoTime = Time::max();

/// When a job is due: at a time, or so long after the store has taken it.
struct When {
  Micros time{0};
  bool from_now = false;

  static When at(Time time) { return {time, false}; }
  static When in(Micros delay) { return {delay, true}; }
};

struct Job {
  std::string id;
  std::string payload;
  When when;         ///< of the first run
  Micros period{0};  ///< from one run to the next; 0: it runs once
};

/// One attempt at a run of a job, which one replica has until the visibility timeout passes.
///
/// `run` numbers the runs of all jobs: a later run of a job has a higher number, and all attempts at a run have the same. A handler
/// that does its work together with "this run is done" in one transaction of its own database does it exactly once. `token` numbers
/// the claims in the same way: of two replicas that both believe that they have the job, the one with the lower token is wrong.
struct Claim {
  std::string id;
  std::string payload;
  Time due{0};  ///< of the run
  Time at{0};   ///< of this attempt, before which it must not begin
  uint64_t run = 0;
  uint64_t token = 0;
  uint32_t attempt = 0;  ///< 1 is the first
};

enum class Verdict : uint8_t {
  kDone,   ///< the run is over; a recurring job waits for its next one
  kRetry,  ///< another attempt at it follows after a delay
  kDead,   ///< it is given up: the job becomes a dead letter
};

/// The names that the stores use.
inline const char* toText(Verdict verdict) {
  return verdict == Verdict::kDone ? "done" : verdict == Verdict::kRetry ? "retry" : "dead";
}

/// What has become of a claim.
struct Outcome {
  std::string id;
  uint64_t token = 0;
  Verdict verdict = Verdict::kDone;
  Micros delay{0};      ///< until the next attempt
  std::string error{};  ///< of an attempt that failed
};

struct DeadLetter {
  std::string id;
  std::string payload;
  Time due{0};
  uint32_t attempts = 0;
  std::string error;
};

/// What a cancel has found.
enum class Cancelled : uint8_t {
  kWaiting,  ///< it will not run
  kClaimed,  ///< a replica has claimed it: this attempt may run or be running, and there will be no other
  kGone,     ///< there is no such job
};

/// The store cannot be reached, or has refused what it was asked.
struct StoreError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// The connection to it has ended, or none could be made.
struct ConnectionLost : StoreError {
  using StoreError::StoreError;
};

}  // namespace jobs
