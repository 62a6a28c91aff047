// A Store in PostgreSQL, for any number of replicas.
//
// A put and a claim at the same time do not see each other before they commit. So each commits first and looks afterwards: the put,
// whether its job is the first, to tell those who sleep; the claim, which job is the first, to sleep until then. One of the two
// sees the other.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pool.h"
#include "postgres_connection.h"
#include "store.h"

namespace jobs {

class PostgresStore final : public Store {
 public:
  explicit PostgresStore(PostgresTarget target) : m_pool(std::move(target)) {}

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
  PostgresConnection::Result execute(const char* statement, const std::vector<std::string>& arguments);

  Pool<PostgresConnection, PostgresTarget> m_pool;
};

}  // namespace jobs
