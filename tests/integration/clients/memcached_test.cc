// Unmodified libmemcached in many fibers.
#include <libmemcached/memcached.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "tests/integration/clients/fleet.h"

namespace sylar::test {
namespace {

struct Free {
  void operator()(memcached_st* memcached) const { ::memcached_free(memcached); }
};
using Memcached = std::unique_ptr<memcached_st, Free>;

/// Connects with the first command.
Memcached clientOf(const char* host, int port) {
  Memcached memcached(::memcached_create(nullptr));
  ::memcached_behavior_set(memcached.get(), MEMCACHED_BEHAVIOR_POLL_TIMEOUT, 100'000);
  EXPECT_EQ(::memcached_server_add(memcached.get(), host, static_cast<in_port_t>(port)), MEMCACHED_SUCCESS);
  return memcached;
}

std::string set(const Memcached& memcached, const std::string& key, const std::string& value) {
  return line(::memcached_strerror(memcached.get(),
                                   ::memcached_set(memcached.get(), key.data(), key.size(), value.data(), value.size(), 0, 0)));
}

std::string get(const Memcached& memcached, const std::string& key) {
  size_t size = 0;
  memcached_return_t result;
  char* const value = ::memcached_get(memcached.get(), key.data(), key.size(), &size, nullptr, &result);
  const std::string text(value, value == nullptr ? 0 : size);
  std::free(value);
  return line(text + ' ' + ::memcached_strerror(memcached.get(), result));
}

std::string client(Server& server) {
  Memcached memcached = clientOf(Server::kName, server.port());
  const std::string key = "key:" + std::to_string(reinterpret_cast<uintptr_t>(memcached.get()));
  std::string said = set(memcached, key, std::string(300'000, 'v'));
  said += get(memcached, key);
  said += get(memcached, "nothing");
  server.stalls();
  said += get(memcached, key);
  server.dies();
  said += get(memcached, key);
  server.isGone();
  memcached = clientOf(Server::kAddress, server.port());
  said += get(memcached, key);
  server.returns();
  memcached = clientOf(Server::kAddress, server.port());
  said += get(memcached, key);
  said += set(memcached, key, "again");
  said += get(memcached, key);
  said += line(::memcached_strerror(memcached.get(), ::memcached_delete(memcached.get(), key.data(), key.size(), 0)));
  return said;
}

// HA-6
TEST(Memcached, SaysInFibersWhatItSaysOnAThread) { saysInFibersWhatItSaysOnAThread("memcached", &client); }

}  // namespace
}  // namespace sylar::test
