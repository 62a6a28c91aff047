// A Store in Redis, for any number of replicas. How long jobs last is decided by its `appendonly` and `appendfsync`.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "pool.h"
#include "redis_connection.h"
#include "store.h"

namespace jobs {

class RedisStore final : public Store {
 public:
  /// All keys begin with `prefix` in braces.
  RedisStore(RedisTarget target, const std::string& prefix) : m_prefix('{' + prefix + '}'), m_pool(std::move(target)) {}

  void put(const std::vector<Job>& jobs) override;
  Cancelled cancel(const std::string& id) override;
  Claims claim(const ClaimOptions& options) override;
  size_t settle(const std::vector<Outcome>& outcomes) override;
  std::vector<DeadLetter> deadLetters(size_t limit) override;
  bool retry(const std::string& id) override;
  std::optional<size_t> sweepDead(uint64_t fence, Micros keep, size_t limit) override;
  StoreCounts counts() override;
  void mend(Micros visibility) override;
  Damage damage() const override { return {m_dropped, m_repaired}; }
  void listen(const std::function<void(Time)>& earlier) override;

 private:
  /// What a function has returned.
  struct Result {
    RedisConnection::Reply reply;
    const redisReply* operator->() const { return reply->element[0]; }
  };

  Result call(const char* function, const std::vector<std::string>& arguments);
  void note(uint64_t repaired, const redisReply& dropped);

  const std::string m_prefix;
  Pool<RedisConnection, RedisTarget> m_pool;
  std::atomic<uint64_t> m_dropped{0};
  std::atomic<uint64_t> m_repaired{0};
};

}  // namespace jobs
