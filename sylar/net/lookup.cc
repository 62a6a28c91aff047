// Resolves names to addresses. Source: getaddrinfo(3), getifaddrs(3).
#include <ifaddrs.h>
#include <netdb.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "sylar/address.h"

namespace sylar {
namespace {

struct HostAndService {
  std::string host;
  std::string service;  // empty if there is none
};

/// Returns true for a service name or a port. A text without a letter must be a port, that is, digits up to 65535. The resolver
/// would also take blanks, signs, and the remainder of a larger number.
bool isService(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (std::ranges::any_of(text, is_letter)) return true;
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Splits "name", "name:service", "[v6]", "[v6]:service" or "v6". Returns nothing if a part is missing or the port is invalid.
std::optional<HostAndService> split(const std::string& text) {
  HostAndService result;
  const size_t colon = text.rfind(':');
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string::npos) return std::nullopt;
    const bool has_service = end + 1 < text.size();
    if (has_service && (text[end + 1] != ':' || end + 2 == text.size())) return std::nullopt;
    result = {text.substr(1, end - 1), has_service ? text.substr(end + 2) : ""};
  } else if (colon == std::string::npos || text.find(':') != colon) {  // more than one means a bare IPv6 address
    result.host = text;
  } else {
    if (colon + 1 == text.size()) return std::nullopt;
    result = {text.substr(0, colon), text.substr(colon + 1)};
  }
  // A 0 inside would end the name for the resolver.
  if (result.host.empty() || text.find('\0') != std::string::npos) return std::nullopt;
  if (!result.service.empty() && !isService(result.service)) return std::nullopt;
  return result;
}

struct FreeAddrInfo {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using AddrInfo = std::unique_ptr<addrinfo, FreeAddrInfo>;

int errnoOf(int answer, int resolver_errno) {
  switch (answer) {
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
    case EAI_SERVICE: return ENOENT;
    case EAI_AGAIN: return EAGAIN;
    case EAI_MEMORY: return ENOMEM;
    case EAI_SYSTEM: return resolver_errno;
    default: return EINVAL;
  }
}

/// Asks the resolver. Returns 0 or an errno.
int resolve(const HostAndService& name, const addrinfo& hints, AddrInfo& result) {
  addrinfo* list = nullptr;
  const int answer = ::getaddrinfo(name.host.c_str(), name.service.empty() ? nullptr : name.service.c_str(), &hints, &list);
  if (answer != 0) return errnoOf(answer, errno);
  result.reset(list);
  return 0;
}

uint32_t prefixLength(const sockaddr* mask) {
  if (mask == nullptr) return 0;
  const bool v4 = mask->sa_family == AF_INET;
  const auto* bytes = v4 ? reinterpret_cast<const uint8_t*>(&reinterpret_cast<const sockaddr_in*>(mask)->sin_addr)
                         : reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr.s6_addr;
  uint32_t length = 0;
  for (int i = 0; i < (v4 ? 4 : 16); ++i) length += static_cast<uint32_t>(std::popcount(bytes[i]));
  return length;
}

socklen_t sizeOf(int family) { return family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6); }

}  // namespace

bool Address::Lookup(std::vector<ptr>& result, const std::string& host, int family, int type, int protocol) {
  const auto name = split(host);
  AddrInfo found;
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = type;
  hints.ai_protocol = protocol;
  if (const int error = name ? resolve(*name, hints, found) : EINVAL) {
    errno = error;
    return false;
  }
  std::vector<ptr> addresses;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    ptr address = Create(one->ai_addr, one->ai_addrlen);
    const auto same = [&](const ptr& other) { return *other == *address; };  // it comes once for each type of socket
    if (address != nullptr && std::ranges::none_of(addresses, same)) addresses.push_back(std::move(address));
  }
  result.insert(result.end(), addresses.begin(), addresses.end());
  return true;
}

Address::ptr Address::LookupAny(const std::string& host, int family, int type, int protocol) {
  std::vector<ptr> all;
  return Lookup(all, host, family, type, protocol) ? all.front() : nullptr;
}

IPAddress::ptr Address::LookupAnyIPAddress(const std::string& host, int family, int type, int protocol) {
  std::vector<ptr> all;
  if (!Lookup(all, host, family, type, protocol)) return nullptr;
  for (const ptr& one : all) {
    if (auto ip = std::dynamic_pointer_cast<IPAddress>(one)) return ip;
  }
  return nullptr;
}

bool Address::GetInterfaceAddresses(std::multimap<std::string, std::pair<ptr, uint32_t>>& result, int family) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  bool any = false;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const int its_family = one->ifa_addr == nullptr ? AF_UNSPEC : one->ifa_addr->sa_family;
    const bool is_ip = its_family == AF_INET || its_family == AF_INET6;
    if (!is_ip || (family != AF_UNSPEC && family != its_family)) continue;
    result.emplace(one->ifa_name, std::pair(Create(one->ifa_addr, sizeOf(its_family)), prefixLength(one->ifa_netmask)));
    any = true;
  }
  return any;
}

bool Address::GetInterfaceAddresses(std::vector<std::pair<ptr, uint32_t>>& result, const std::string& iface, int family) {
  if (iface.empty() || iface == "*") {
    if (family == AF_INET || family == AF_UNSPEC) result.emplace_back(std::make_shared<IPv4Address>(), 0);
    if (family == AF_INET6 || family == AF_UNSPEC) result.emplace_back(std::make_shared<IPv6Address>(), 0);
    return family == AF_INET || family == AF_INET6 || family == AF_UNSPEC;
  }
  std::multimap<std::string, std::pair<ptr, uint32_t>> all;
  if (!GetInterfaceAddresses(all, family)) return false;
  const auto [begin, end] = all.equal_range(iface);
  for (auto it = begin; it != end; ++it) result.push_back(it->second);
  return begin != end;
}

}  // namespace sylar
