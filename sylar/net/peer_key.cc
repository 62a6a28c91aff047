#include "sylar/net/peer_key.h"

#include <netinet/in.h>

#include <cstring>

#include "sylar/socket.h"

namespace sylar::detail {

std::optional<PeerKey> limitedPeer(const Socket& client, bool limit_loopback) {
  const Address::ptr address = client.getRemoteAddress();
  const auto* const ip = dynamic_cast<const IPAddress*>(address.get());
  if (ip == nullptr || (ip->isLoopback() && !limit_loopback)) return std::nullopt;
  PeerKey peer{};
  if (ip->getFamily() == AF_INET) {
    peer[10] = peer[11] = 0xff;  // as IPv6 writes it
    std::memcpy(&peer[12], &reinterpret_cast<const sockaddr_in*>(ip->getAddr())->sin_addr, 4);
    return peer;
  }
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(ip->getAddr())->sin6_addr;
  std::memcpy(peer.data(), v6.s6_addr, IN6_IS_ADDR_V4MAPPED(&v6) ? 16 : 8);
  return peer;
}

}  // namespace sylar::detail
