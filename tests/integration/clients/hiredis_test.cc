// Unmodified hiredis in many fibers.
#include <hiredis/hiredis.h>

#include <memory>
#include <string>

#include "tests/integration/clients/fleet.h"

namespace sylar::test {
namespace {

struct Free {
  void operator()(redisContext* context) const { ::redisFree(context); }
  void operator()(redisReply* reply) const { ::freeReplyObject(reply); }
};
using Context = std::unique_ptr<redisContext, Free>;

template <class... Arguments>
std::string ask(const Context& context, const char* format, Arguments... arguments) {
  const std::unique_ptr<redisReply, Free> reply(static_cast<redisReply*>(::redisCommand(context.get(), format, arguments...)));
  if (reply == nullptr) return line(context->errstr);
  if (reply->type == REDIS_REPLY_INTEGER) return line(std::to_string(reply->integer));
  return line(std::string(reply->str, reply->len));
}

std::string client(Server& server) {
  Context context(::redisConnect(Server::kName, server.port()));
  const std::string key = "key:" + std::to_string(reinterpret_cast<uintptr_t>(context.get()));
  const std::string value(300'000, 'v');
  std::string said = line(context->errstr);
  said += ask(context, "SET %s %b", key.c_str(), value.data(), value.size());
  said += ask(context, "GET %s", key.c_str());
  said += ask(context, "DEL %s", key.c_str());
  said += ask(context, "DEBUG SLEEP 0.01");
  server.stalls();
  said += ask(context, "ECHO after_all");
  server.dies();
  said += ask(context, "ECHO never");
  said += ask(context, "ECHO neither");
  server.isGone();
  context.reset(::redisConnect(Server::kAddress, server.port()));
  said += line(context->errstr);
  server.returns();
  EXPECT_EQ(::redisReconnect(context.get()), REDIS_OK);
  said += ask(context, "ECHO again");
  return said;
}

// HA-6
TEST(Hiredis, SaysInFibersWhatItSaysOnAThread) { saysInFibersWhatItSaysOnAThread("redis", &client); }

}  // namespace
}  // namespace sylar::test
