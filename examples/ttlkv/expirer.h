// The Expirer removes keys on time, also those that nobody asks for.
//
// Each shard has one timer of the library, armed for the earliest expiry of its heap. A timer for each key would work as well.
// It would cost more memory and a second lock for each SET, and a key would have to tell its own timer from that of the key that
// had the name before.
//
// Keys expire by the time of day, and timers run by the monotonic clock. So a timer that fires looks at the time of day again,
// and is armed again if the clock was set back. A timer never waits for longer than kLongestWait, so that keys also go soon
// after the clock was set forward. Until then no command sees them, because each of them looks at the time of day.
//
// Thread safety: all calls from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "keyspace.h"
#include "sylar/iomanager.h"
#include "sylar/timer.h"

namespace ttlkv {

class Expirer {
 public:
  static constexpr std::chrono::milliseconds kLongestWait{10'000};

  /// One pass removes at most `budget` keys of a shard, then lets other fibers run.
  Expirer(Keyspace& keyspace, size_t budget);

  /// Arms the timers on `iom`, which must stop before the expirer is destroyed.
  void start(sylar::IOManager& iom);
  /// Stops the timers. A pass that runs may go on.
  void stop();
  /// Arms the timer of a shard for its earliest expiry, or stops it if there is none. The caller holds the lock of the shard.
  void update(size_t shard);

  /// Lets the timers remove keys, or leaves that to the commands. For tests of clients: DEBUG SET-ACTIVE-EXPIRE.
  void setActive(bool active);

  /// Returns the number of shards that have a timer armed.
  size_t armedTimers();
  uint64_t passes() const { return m_passes.load(std::memory_order_relaxed); }

 private:
  struct Sweep {
    Expirer* expirer = nullptr;
    size_t shard = 0;
    // The lock of the shard guards these.
    sylar::ScopedTimer timer{};
    int64_t armed_for_ms = kNever;
    bool running = false;
  };

  void run(Sweep& sweep);
  bool runPass(Sweep& sweep);
  void arm(Sweep& sweep);

  Keyspace& m_keyspace;
  const size_t m_budget;
  std::vector<Sweep> m_sweeps;
  std::atomic<sylar::IOManager*> m_iom{nullptr};
  std::atomic<bool> m_active{true};
  std::atomic<uint64_t> m_passes{0};
};

}  // namespace ttlkv
