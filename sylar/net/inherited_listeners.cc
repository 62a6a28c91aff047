#include "sylar/net/inherited_listeners.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sylar/base/os_mutex.h"

namespace sylar::inherited_listeners {
namespace {

struct Inherited {
  Address::ptr address;
  int fd;
};

OsMutex g_mutex;
std::vector<Inherited> g_all SYLAR_GUARDED_BY(g_mutex);

int optionOf(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

}  // namespace

Address::ptr add(int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (optionOf(fd, SO_ACCEPTCONN) != 1 || optionOf(fd, SO_TYPE) != SOCK_STREAM) return nullptr;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) return nullptr;
  Address::ptr address = Address::Create(reinterpret_cast<sockaddr*>(&name), size);
  if (address == nullptr) return nullptr;
  const Lock lock(g_mutex);
  g_all.push_back({address, fd});
  return address;
}

int take(const Address& address) {
  const Lock lock(g_mutex);
  const auto one = std::ranges::find_if(g_all, [&](const Inherited& each) { return *each.address == address; });
  if (one == g_all.end()) return -1;
  const int fd = one->fd;
  g_all.erase(one);
  return fd;
}

size_t closeRest() {
  const Lock lock(g_mutex);
  for (const Inherited& each : g_all) ::close(each.fd);
  return std::exchange(g_all, {}).size();
}

}  // namespace sylar::inherited_listeners
