#include "sylar/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstring>
#include <ostream>
#include <span>
#include <sstream>
#include <stdexcept>

namespace sylar {
namespace {

constexpr socklen_t kUnixHead = offsetof(sockaddr_un, sun_path);

/// Says what becomes of the bits of an address after a prefix.
enum class HostBits { kCleared, kSet };

/// Sets or clears the bits of `address` from bit `prefix` on. Returns false if there are not that many.
bool fillBehind(std::span<uint8_t> address, uint32_t prefix, HostBits bits) {
  if (prefix > 8 * address.size()) return false;
  for (size_t i = prefix / 8; i < address.size(); ++i) {
    const auto behind = static_cast<uint8_t>(i == prefix / 8 ? 0xff >> prefix % 8 : 0xff);
    address[i] = static_cast<uint8_t>(bits == HostBits::kSet ? address[i] | behind : address[i] & ~behind);
  }
  return true;
}

std::span<uint8_t> bytesOf(sockaddr_in& address) {
  return {reinterpret_cast<uint8_t*>(&address.sin_addr), sizeof address.sin_addr};
}
std::span<uint8_t> bytesOf(sockaddr_in6& address) { return {address.sin6_addr.s6_addr, 16}; }

/// Returns a copy of `address` with other bits after the prefix, or null if the prefix is too long.
template <class Class, class Raw>
IPAddress::ptr withHostBits(Raw address, uint32_t prefix_len, HostBits bits) {
  return fillBehind(bytesOf(address), prefix_len, bits) ? std::make_shared<Class>(address) : nullptr;
}

template <class Raw>
bool assignTo(Raw& mine, sa_family_t family, const sockaddr* addr, socklen_t addrlen) {
  if (addr == nullptr || addrlen < sizeof mine || addr->sa_family != family) return false;
  std::memcpy(&mine, addr, sizeof mine);
  return true;
}

}  // namespace

Address::ptr Address::Create(const sockaddr* addr, socklen_t addrlen) {
  if (addr == nullptr || addrlen < sizeof(sa_family_t)) return nullptr;
  ptr result;
  switch (addr->sa_family) {
    case AF_INET: result = std::make_shared<IPv4Address>(); break;
    case AF_INET6: result = std::make_shared<IPv6Address>(); break;
    case AF_UNIX: result = std::make_shared<UnixAddress>(); break;
    default: result = std::make_shared<UnknownAddress>(addr->sa_family);
  }
  return result->assign(addr, addrlen) ? result : nullptr;
}

std::string Address::toString() const {
  std::ostringstream out;
  insert(out);
  return out.str();
}

bool Address::operator<(const Address& other) const {
  const int order = std::memcmp(getAddr(), other.getAddr(), std::min(getAddrLen(), other.getAddrLen()));
  return order != 0 ? order < 0 : getAddrLen() < other.getAddrLen();
}

bool Address::operator==(const Address& other) const {
  return getAddrLen() == other.getAddrLen() && std::memcmp(getAddr(), other.getAddr(), getAddrLen()) == 0;
}

std::ostream& operator<<(std::ostream& os, const Address& address) { return address.insert(os); }

IPAddress::ptr IPAddress::Create(const char* address, uint16_t port) {
  if (ptr v4 = IPv4Address::Create(address, port)) return v4;
  return IPv6Address::Create(address, port);
}

IPv4Address::ptr IPv4Address::Create(const char* address, uint16_t port) {
  in_addr parsed{};
  if (::inet_pton(AF_INET, address, &parsed) != 1) return nullptr;
  return std::make_shared<IPv4Address>(ntohl(parsed.s_addr), port);
}

IPv4Address::IPv4Address(uint32_t address, uint16_t port) : m_addr{AF_INET, htons(port), {htonl(address)}, {}} {}

IPv4Address::IPv4Address(const sockaddr_in& address) : m_addr(address) {
  std::memset(m_addr.sin_zero, 0, sizeof m_addr.sin_zero);
}

bool IPv4Address::assign(const sockaddr* addr, socklen_t addrlen) {
  if (!assignTo(m_addr, AF_INET, addr, addrlen)) return false;
  std::memset(m_addr.sin_zero, 0, sizeof m_addr.sin_zero);  // it counts in comparisons
  return true;
}

std::ostream& IPv4Address::insert(std::ostream& os) const {
  char text[INET_ADDRSTRLEN];
  return os << ::inet_ntop(AF_INET, &m_addr.sin_addr, text, sizeof text) << ':' << getPort();
}

IPAddress::ptr IPv4Address::broadcastAddress(uint32_t prefix_len) const {
  return withHostBits<IPv4Address>(m_addr, prefix_len, HostBits::kSet);
}
IPAddress::ptr IPv4Address::networkAddress(uint32_t prefix_len) const {
  return withHostBits<IPv4Address>(m_addr, prefix_len, HostBits::kCleared);
}
IPAddress::ptr IPv4Address::subnetMask(uint32_t prefix_len) const {
  return IPv4Address(INADDR_BROADCAST).networkAddress(prefix_len);
}

bool IPv4Address::isLoopback() const { return ntohl(m_addr.sin_addr.s_addr) >> 24 == 127; }

IPv6Address::ptr IPv6Address::Create(const char* address, uint16_t port) {
  in6_addr parsed{};
  if (::inet_pton(AF_INET6, address, &parsed) != 1) return nullptr;
  return std::make_shared<IPv6Address>(parsed.s6_addr, port);
}

IPv6Address::IPv6Address() : m_addr{} { m_addr.sin6_family = AF_INET6; }

IPv6Address::IPv6Address(const uint8_t address[16], uint16_t port) : IPv6Address() {
  std::memcpy(m_addr.sin6_addr.s6_addr, address, 16);
  setPort(port);
}

bool IPv6Address::assign(const sockaddr* addr, socklen_t addrlen) { return assignTo(m_addr, AF_INET6, addr, addrlen); }

std::ostream& IPv6Address::insert(std::ostream& os) const {
  char text[INET6_ADDRSTRLEN];
  os << '[' << ::inet_ntop(AF_INET6, &m_addr.sin6_addr, text, sizeof text);
  if (m_addr.sin6_scope_id != 0) os << '%' << m_addr.sin6_scope_id;
  return os << "]:" << getPort();
}

IPAddress::ptr IPv6Address::broadcastAddress(uint32_t prefix_len) const {
  return withHostBits<IPv6Address>(m_addr, prefix_len, HostBits::kSet);
}
IPAddress::ptr IPv6Address::networkAddress(uint32_t prefix_len) const {
  return withHostBits<IPv6Address>(m_addr, prefix_len, HostBits::kCleared);
}
IPAddress::ptr IPv6Address::subnetMask(uint32_t prefix_len) const {
  uint8_t ones[16];
  std::memset(ones, 0xff, sizeof ones);
  return IPv6Address(ones).networkAddress(prefix_len);
}

bool IPv6Address::isLoopback() const {
  const in6_addr& address = m_addr.sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127);
}

UnixAddress::UnixAddress() : m_length(kUnixHead) { m_addr.sun_family = AF_UNIX; }

UnixAddress::UnixAddress(const std::string& path) : UnixAddress() {
  if (path.size() >= sizeof m_addr.sun_path) {
    throw std::invalid_argument("sylar: the path of a Unix socket has at most 107 bytes: " + path);
  }
  std::memcpy(m_addr.sun_path, path.data(), path.size());
  m_length = kUnixHead + static_cast<socklen_t>(path.size());
  if (!path.empty() && !isAbstract()) ++m_length;  // the 0 after a path counts
}

void UnixAddress::setAddrLen(uint32_t length) { m_length = std::clamp<socklen_t>(length, kUnixHead, sizeof m_addr); }

bool UnixAddress::assign(const sockaddr* addr, socklen_t addrlen) {
  if (addr == nullptr || addrlen < kUnixHead || addrlen > sizeof m_addr || addr->sa_family != AF_UNIX) return false;
  std::memset(&m_addr, 0, sizeof m_addr);
  std::memcpy(&m_addr, addr, addrlen);
  m_length = addrlen;
  return true;
}

bool UnixAddress::isAbstract() const { return m_length > kUnixHead && m_addr.sun_path[0] == '\0'; }

std::string UnixAddress::getPath() const {
  const size_t size = m_length - kUnixHead;
  return {m_addr.sun_path, isAbstract() ? size : ::strnlen(m_addr.sun_path, size)};
}

std::ostream& UnixAddress::insert(std::ostream& os) const {
  return isAbstract() ? os << "\\0" << getPath().substr(1) : os << getPath();
}

UnknownAddress::UnknownAddress(int family) : m_length(sizeof(sockaddr)) { m_addr.ss_family = static_cast<sa_family_t>(family); }

UnknownAddress::UnknownAddress(const sockaddr& address) : m_length(sizeof address) {
  std::memcpy(&m_addr, &address, sizeof address);
}

bool UnknownAddress::assign(const sockaddr* addr, socklen_t addrlen) {
  if (addr == nullptr || addrlen < sizeof(sa_family_t) || addrlen > sizeof m_addr || addr->sa_family != m_addr.ss_family) {
    return false;
  }
  std::memset(&m_addr, 0, sizeof m_addr);
  std::memcpy(&m_addr, addr, addrlen);
  m_length = addrlen;
  return true;
}

std::ostream& UnknownAddress::insert(std::ostream& os) const { return os << "[UnknownAddress family=" << getFamily() << "]"; }

}  // namespace sylar
