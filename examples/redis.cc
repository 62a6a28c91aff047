// An unmodified client library in fibers. hiredis blocks in connect, read, write and poll, and each time only its fiber waits.
//
//   redis [PORT]      a redis on 127.0.0.1; default 6379
#include <hiredis/hiredis.h>

#include <cstdio>
#include <cstdlib>

#include "sylar/iomanager.h"

namespace {

redisContext* connectTo(int port) {
  redisContext* redis = redisConnect("127.0.0.1", port);
  if (redis == nullptr || redis->err != 0) {
    std::fprintf(stderr, "redis on port %d: %s\n", port, redis == nullptr ? "out of memory" : redis->errstr);
    std::exit(1);
  }
  return redis;
}

void run(redisContext* redis, const char* what, const char* command) {
  auto* reply = static_cast<redisReply*>(redisCommand(redis, command));
  std::printf("%s: %s\n", what,
              reply == nullptr                   ? redis->errstr
              : reply->type == REDIS_REPLY_ARRAY ? reply->element[1]->str
                                                 : "ok");
  freeReplyObject(reply);
}

}  // namespace

int main(int argc, char** argv) {
  const int port = argc > 1 ? std::atoi(argv[1]) : 6379;
  sylar::IOManager iom(1, false, "redis");  // one thread for both fibers

  // [fibers]
  iom.schedule([port] {
    redisContext* redis = connectTo(port);
    run(redis, "waiting fiber got", "BLPOP sylar:example 5");  // blocks until there is a value
    redisFree(redis);
  });

  iom.schedule([port] {
    redisContext* redis = connectTo(port);
    for (int i = 0; i < 3; ++i) run(redis, "busy fiber", "PING");
    run(redis, "busy fiber", "LPUSH sylar:example hello");
    redisFree(redis);
  });
  // [fibers]
}
