// A connection to Redis by hiredis, as it is: its blocking calls suspend the fiber that makes them.
#pragma once

#include <hiredis/hiredis.h>

#include <memory>
#include <string>
#include <vector>

#include "job.h"

namespace jobs {

struct RedisTarget {
  std::string host;
  int port = 6379;
};

/// Thread safety: none.
class RedisConnection {
 public:
  struct Free {
    void operator()(redisContext* context) const { redisFree(context); }
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
  };
  using Reply = std::unique_ptr<redisReply, Free>;

  /// Connects, and gives the server the functions of redis_library.h. Throws StoreError.
  explicit RedisConnection(const RedisTarget& target);

  /// Sends a command and returns its reply. Throws StoreError if that is an error, ConnectionLost if there is none.
  Reply command(const std::vector<std::string>& words);
  /// Waits for what comes by itself after a SUBSCRIBE. Throws ConnectionLost.
  Reply next();

 private:
  Reply checked(void* reply) const;

  const std::unique_ptr<redisContext, Free> m_context;
};

}  // namespace jobs
