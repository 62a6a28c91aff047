// A Store in Redis, for any number of replicas. How long jobs last is decided by its `appendonly` and `appendfsync`.
#pragma once

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
  void listen(const std::function<void(Time)>& earlier) override;

 private:
  RedisConnection::Reply call(const char* function, const std::vector<std::string>& arguments);

  const std::string m_prefix;
  Pool<RedisConnection, RedisTarget> m_pool;
};

}  // namespace jobs
