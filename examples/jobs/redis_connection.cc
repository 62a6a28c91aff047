#include "redis_connection.h"

#include <string_view>

#include "redis_library.h"

namespace jobs {

RedisConnection::RedisConnection(const RedisTarget& target) : m_context(redisConnect(target.host.c_str(), target.port)) {
  if (m_context == nullptr) throw std::bad_alloc();
  if (m_context->err != 0) throw ConnectionLost(std::string("redis: ") + m_context->errstr);
  redisEnableKeepAlive(m_context.get());  // by the kernel, after 15 s of silence
  try {
    command({"FUNCTION", "LOAD", "REPLACE", kRedisLibrary});
  } catch (const StoreError& failure) {
    // A server whose memory is full takes no functions. It has them unless no replica came before.
    if (!std::string_view(failure.what()).starts_with("redis: OOM")) throw;
  }
}

RedisConnection::Reply RedisConnection::command(const std::vector<std::string>& words) {
  std::vector<const char*> texts;
  std::vector<size_t> sizes;
  for (const std::string& each : words) {
    texts.push_back(each.data());
    sizes.push_back(each.size());
  }
  return checked(redisCommandArgv(m_context.get(), static_cast<int>(words.size()), texts.data(), sizes.data()));
}

RedisConnection::Reply RedisConnection::next() {
  void* reply = nullptr;
  redisGetReply(m_context.get(), &reply);
  return checked(reply);
}

RedisConnection::Reply RedisConnection::checked(void* reply) const {
  Reply owned(static_cast<redisReply*>(reply));
  if (owned == nullptr) throw ConnectionLost(std::string("redis: ") + m_context->errstr);
  if (owned->type == REDIS_REPLY_ERROR) throw StoreError("redis: " + std::string(owned->str, owned->len));
  return owned;
}

}  // namespace jobs
