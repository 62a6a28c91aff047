// A Store holds the jobs of all replicas. Its calls are ordinary blocking code, and suspend the fiber that makes them.
//
// A claimed job stays in the store and becomes visible again when its visibility timeout has passed, so a replica that dies loses
// nothing. A claim is ended by its token, so a replica that was taken for dead changes nothing when it comes back.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "job.h"

namespace jobs {

/// What a claim asks for.
struct ClaimOptions {
  size_t limit = 1;           ///< how many jobs
  Micros ahead{0};            ///< jobs that are due so soon are claimed already, to be run on time
  Micros visibility{0};       ///< from the time of the attempt on
  uint32_t max_attempts = 1;  ///< a job that was claimed so often and never came to an end becomes a dead letter
};

struct Claims {
  std::vector<Claim> taken;  ///< in the order of their times
  Time now{0};               ///< the clock of the store
  Time next = kNoTime;       ///< of the earliest job that is left; of one that is claimed, when it is visible again
};

struct StoreCounts {
  uint64_t jobs = 0;  ///< that wait or are claimed
  uint64_t late = 0;  ///< of these, those that nobody has though their time has come
  uint64_t dead = 0;  ///< dead letters
};

/// What a replica has found that was not as the calls of a store leave it.
struct Damage {
  uint64_t dropped = 0;   ///< jobs and dead letters whose data were lost or damaged; each was logged
  uint64_t repaired = 0;  ///< those that were whole, and had lost their place in the order
};

/// Thread safety: all calls from any thread, in fibers. Each may throw StoreError; what it was to do is then done or not. May
/// suspend: yes.
class Store {
 public:
  virtual ~Store() = default;

  /// Adds jobs, in place of those of the same ids. No id may occur twice.
  virtual void put(const std::vector<Job>& jobs) = 0;
  /// Removes a job or a dead letter.
  virtual Cancelled cancel(const std::string& id) = 0;

  virtual Claims claim(const ClaimOptions& options) = 0;
  /// Ends claims. Of those that another replica has claimed since, nothing changes. Returns how many were still valid.
  virtual size_t settle(const std::vector<Outcome>& outcomes) = 0;

  /// The latest dead letters.
  virtual std::vector<DeadLetter> deadLetters(size_t limit) = 0;
  /// Makes a dead letter a job that is due now, with all its attempts before it. Returns false if there is none of this id.
  virtual bool retry(const std::string& id) = 0;
  /// Deletes up to `limit` dead letters that died at least `keep` ago, for the leader whose fencing token is `fence`. Returns how
  /// many. Returns nothing, and nothing changes, if a leader with a higher token has called it.
  virtual std::optional<size_t> sweepDead(uint64_t fence, Micros keep, size_t limit) = 0;
  virtual StoreCounts counts() = 0;

  /// Looks for damage that no other call would find. A job that a replica may still have comes back after `visibility`. Most stores
  /// cannot be damaged in part.
  virtual void mend(Micros /*visibility*/) {}
  /// Returns what this object has found so far. May suspend: no.
  virtual Damage damage() const { return {}; }

  /// Calls `earlier` with the time of each job that has become the first of all, through whatever replica, and once at the
  /// beginning, with a time long past, because what was before has not been heard. Several threads may call `earlier` at once,
  /// and it must not call the store. Returns when the fiber is cancelled, and throws StoreError when the connection is lost.
  virtual void listen(const std::function<void(Time)>& earlier) = 0;
};

}  // namespace jobs
