// The recurring sweep of the replica that leads: it deletes dead letters that nobody has looked after for a long time, and has the
// store look for damage.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "store.h"

namespace jobs {

/// Thread safety: swept() from any thread; run() once.
class DeadSweep {
 public:
  struct Options {
    Micros keep = std::chrono::hours(7 * 24);      ///< dead letters are deleted when they are older
    Micros period = std::chrono::minutes(10);      ///< of the sweep
    Micros visibility = std::chrono::seconds(30);  ///< after which the job of a replica that is silent goes to another
  };

  /// `fence` returns the fencing token of this replica while it leads. The store must outlive the object.
  DeadSweep(Store& store, std::function<std::optional<uint64_t>()> fence, Options options);

  /// Sweeps until the fiber is cancelled. May suspend: yes.
  void run();
  /// Returns how many dead letters this replica has deleted. May suspend: no.
  uint64_t swept() const { return m_swept; }

 private:
  void sweep();

  Store& m_store;
  const std::function<std::optional<uint64_t>()> m_fence;
  const Options m_options;
  std::atomic<uint64_t> m_swept{0};
};

}  // namespace jobs
