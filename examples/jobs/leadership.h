// One replica of many leads, by a lease of etcd. The others see who it is, and one of them follows it when the lease ends.
//
//   jobs::Leadership leadership(jobs::Etcd({"http://127.0.0.1:2379"}, 2s), {.name = "r1"}, [] { return about; });
//   iom.schedule([&] { leadership.run(); });                        // until the fiber is cancelled
//   if (const auto fence = leadership.fence()) store.sweepDead(*fence, ...);
//
// The first replica that puts the key PREFIX/leader leads, and the key ends with its lease. A replica that was paused after it
// looked at the clock may still believe that it leads. So all that a leader does carries its fencing token, the revision at which
// its key was made. A later leader has a higher one, and a store that has seen it refuses the lower.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "etcd.h"
#include "sylar/clock.h"
#include "sylar/mutex.h"

namespace jobs {

/// A clock that goes on while the machine is suspended, as etcd's does. Source: CLOCK_BOOTTIME of clock_gettime(2).
const sylar::Clock& bootClock();

/// The replicas that take part.
struct Members {
  struct Member {
    std::string name;
    nlohmann::json about;  ///< what it says of itself
  };

  std::string leader;           ///< its name; empty: none is known
  std::vector<Member> members;  ///< in the order of their names
};

/// Thread safety: all calls from any thread, in fibers; run() once at a time.
class Leadership {
 public:
  struct Options {
    std::string name;              ///< of this replica, which no other has
    std::string prefix = "jobs";   ///< of all keys
    std::chrono::seconds ttl{10};  ///< of the lease, which is renewed three times in it. etcd takes some 2 s at least
  };

  /// `about` returns what the others see of this replica. `clock` tells when a lease has ended.
  Leadership(Etcd etcd, Options options, std::function<nlohmann::json()> about, const sylar::Clock& clock = bootClock());

  /// Takes part until the fiber is cancelled. Then it gives the lease back, so another replica leads soon. May suspend: yes.
  void run();

  /// Returns the fencing token, which is at least 1, while this replica leads. A lease counts from before it was asked for. May
  /// suspend: no.
  std::optional<uint64_t> fence() const;
  /// Returns what etcd said last. May suspend: no.
  Members members() const;

 private:
  void renew();
  void resign();
  nlohmann::json enter();
  void read(const nlohmann::json& entered, int64_t lease_end_ns);

  const Options m_options;
  const std::function<nlohmann::json()> m_about;
  const sylar::Clock& m_clock;
  Etcd m_etcd;          // of the fiber in run()
  std::string m_lease;  // its number, as etcd writes it; empty: there is none

  mutable sylar::Mutex m_lock;  // guards all below
  uint64_t m_fence = 0;         // 0: another leads, or none
  int64_t m_lease_end_ns = 0;
  Members m_members;
};

}  // namespace jobs
