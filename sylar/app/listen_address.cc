#include "sylar/app/listen_address.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace sylar::detail {
namespace {

struct HostPort {
  std::string host;
  uint16_t port;
};

/// Splits `text` at its last colon; returns nothing if it is no host and port.
std::optional<HostPort> split(const std::string& text) {
  const size_t colon = text.rfind(':');
  const std::string_view digits = std::string_view(text).substr(colon + 1);
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (colon == 0 || digits.empty() || error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  std::string host = text.substr(0, colon);
  const bool brackets = host.front() == '[' && host.back() == ']' && host.size() > 2;
  if (!brackets && host.find_first_of("[]: ") != std::string::npos) return std::nullopt;
  if (brackets) host = host.substr(1, host.size() - 2);
  return HostPort{host, port};
}

bool isPath(const std::string& text) { return text.find(':') == std::string::npos; }
bool isAbstract(const std::string& text) { return text.size() > 1 && text.front() == '@'; }

}  // namespace

std::string listenAddressRule(const std::string& text) {
  if (isPath(text)) {
    const bool named = text.find('/') != std::string::npos || isAbstract(text);
    return named && text.size() < sizeof(sockaddr_un::sun_path) ? ""
                                                                : "must have a port, as 0.0.0.0:8020, or be a Unix socket of "
                                                                  "less than 108 bytes: a path with a slash in it, or @ and "
                                                                  "an abstract name";
  }
  return split(text) ? "" : "must be address:port, as 0.0.0.0:8020 or [::]:8020, with a port from 0 to 65535";
}

std::vector<Address::ptr> resolveListenAddress(const std::string& text) {
  if (isPath(text)) return {std::make_shared<UnixAddress>(isAbstract(text) ? '\0' + text.substr(1) : text)};
  const std::optional<HostPort> parts = split(text);
  if (!parts) throw std::runtime_error(listenAddressRule(text));
  if (const auto fixed = IPAddress::Create(parts->host.c_str(), parts->port)) return {fixed};

  std::vector<Address::ptr> found;
  std::vector<std::pair<Address::ptr, uint32_t>> interfaces;
  if (Address::GetInterfaceAddresses(interfaces, parts->host, AF_INET)) {
    for (const auto& [address, prefix] : interfaces) {
      std::dynamic_pointer_cast<IPAddress>(address)->setPort(parts->port);
      found.push_back(address);
    }
  } else if (!Address::Lookup(found, parts->host + ':' + std::to_string(parts->port), AF_INET, SOCK_STREAM)) {
    if (errno == ENOENT) throw std::runtime_error("there is no interface and no host of this name");
    throw std::runtime_error(fmt::format("there is no interface of this name, and hosts cannot be asked for: {}",
                                         std::system_category().message(errno)));
  }
  return found;
}

}  // namespace sylar::detail
