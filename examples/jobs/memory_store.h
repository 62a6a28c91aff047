// A Store in the memory of this process, for one replica, and for tests. What it holds ends with the process.
#pragma once

#include <list>
#include <map>
#include <set>
#include <utility>

#include "store.h"
#include "sylar/clock.h"
#include "sylar/mutex.h"

namespace jobs {

class MemoryStore final : public Store {
 public:
  /// The time is that of `clock`, which stands at `now` at present.
  explicit MemoryStore(const sylar::Clock& clock = sylar::steadyClock(), Time now = wallClock());

  void put(const std::vector<Job>& jobs) override;
  Cancelled cancel(const std::string& id) override;
  Claims claim(const ClaimOptions& options) override;
  size_t settle(const std::vector<Outcome>& outcomes) override;
  std::vector<DeadLetter> deadLetters(size_t limit) override;
  bool retry(const std::string& id) override;
  std::optional<size_t> sweepDead(uint64_t fence, Micros keep, size_t limit) override;
  StoreCounts counts() override;
  void listen(const std::function<void(Time)>& earlier) override;

 private:
  struct Entry {
    std::string payload;
    Time due{0};
    Micros period{0};
    uint64_t run = 0;
    uint64_t token = 0;  // 0: nobody has claimed it
    uint32_t attempts = 0;
    std::string error{};
    Time at{0};  // its place in m_order, or in m_dead
  };
  using Order = std::set<std::pair<Time, std::string>>;
  class Change;

  static Time wallClock();
  Time now() const;
  void place(const std::string& id, Entry& entry, Time at);
  void bury(const std::string& id, Entry& entry);

  const sylar::Clock& m_clock;
  const Micros m_offset;
  sylar::Mutex m_lock;  // held while listeners are called
  std::map<std::string, Entry> m_entries;
  Order m_order;  // by the time at which a job may be claimed
  Order m_dead;   // by the time of death
  uint64_t m_last_number = 0;
  uint64_t m_fence = 0;  // the highest that a leader has shown
  std::list<std::function<void(Time)>> m_listeners;
};

}  // namespace jobs
