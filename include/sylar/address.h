// Socket addresses: IPv4, IPv6, Unix, and those of families that are not known here. Names can be looked up.
//
//   Address::ptr any = Address::LookupAny("localhost:80");           // asks the resolver
//   IPAddress::ptr fixed = IPAddress::Create("192.0.2.1", 80);       // numbers only
//
// Thread safety: as a plain value; several threads may read an address, or one may change it. Static functions from any thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sylar/api.h"

namespace sylar {

class IPAddress;

/// A socket address of any family.
class SYLAR_API Address {
 public:
  using ptr = std::shared_ptr<Address>;

  virtual ~Address() = default;

  /// Returns a copy of `addr` in the class of its family. Returns null if `addr` is null, or `addrlen` does not fit the family.
  static ptr Create(const sockaddr* addr, socklen_t addrlen);

  /// Appends the addresses of `host` to `result`, each once. `host` is a name or number, with or without a port or the name of
  /// a service behind a colon: "name", "name:80", "name:http", "1.2.3.4:80", "::1", "[::1]", "[::1]:80". `family` is AF_INET,
  /// AF_INET6, or AF_UNSPEC for both; `type` is SOCK_STREAM, ... or 0 for any.
  ///
  /// On failure returns false with errno and leaves `result` unchanged: ENOENT (no such name or service), EINVAL (malformed, a
  /// port that is not digits from 0 to 65535, or a family without names), EAGAIN (the resolver is busy), ENOMEM, ECANCELED or
  /// ETIMEDOUT at the end of a scope, or the resolver's own. May suspend: yes, in getaddrinfo, which is hooked.
  /// Source: getaddrinfo(3), sylar.
  static bool Lookup(std::vector<ptr>& result, const std::string& host, int family = AF_INET, int type = 0, int protocol = 0);
  /// Returns the first address that Lookup() finds; null if there is none. May suspend: yes.
  static ptr LookupAny(const std::string& host, int family = AF_INET, int type = 0, int protocol = 0);
  /// Returns the first that is an IP address; null if there is none. May suspend: yes.
  static std::shared_ptr<IPAddress> LookupAnyIPAddress(const std::string& host, int family = AF_INET, int type = 0,
                                                       int protocol = 0);

  /// Adds the addresses of all network interfaces to `result`, by the name of the interface, with the lengths of their prefixes
  /// in bits. Returns false if there is none of the family, or on an error, with errno. May suspend: no. Source: getifaddrs(3),
  /// sylar.
  static bool GetInterfaceAddresses(std::multimap<std::string, std::pair<ptr, uint32_t>>& result, int family = AF_INET);
  /// Appends the addresses of the interface `iface`. For "" and "*" these are the addresses that stand for all interfaces, with
  /// prefix 0.
  static bool GetInterfaceAddresses(std::vector<std::pair<ptr, uint32_t>>& result, const std::string& iface,
                                    int family = AF_INET);

  int getFamily() const { return getAddr()->sa_family; }
  virtual const sockaddr* getAddr() const = 0;
  virtual sockaddr* getAddr() = 0;
  virtual socklen_t getAddrLen() const = 0;
  /// Makes this a copy of `addr`. Returns false and changes nothing if the family is another, or the length does not fit.
  virtual bool assign(const sockaddr* addr, socklen_t addrlen) = 0;

  /// Writes the address as toString() formats it.
  virtual std::ostream& insert(std::ostream& os) const = 0;
  /// Returns "1.2.3.4:80", "[::1]:80", "/run/x.sock", or "\0name" for an abstract Unix address.
  std::string toString() const;

  /// Compares by bytes, then by length; this is an order for maps, without a meaning.
  bool operator<(const Address& other) const;
  bool operator==(const Address& other) const;
  bool operator!=(const Address& other) const { return !(*this == other); }
};

SYLAR_API std::ostream& operator<<(std::ostream& os, const Address& address);

/// An IPv4 or IPv6 address with a port.
class SYLAR_API IPAddress : public Address {
 public:
  using ptr = std::shared_ptr<IPAddress>;

  /// Returns the address that is written in numbers only, such as "127.0.0.1" or "::1". Returns null for any other text.
  /// Source: inet_pton(3).
  static ptr Create(const char* address, uint16_t port = 0);

  /// Returns the network's address in which all bits behind the prefix are set, with the same port. Returns null if
  /// `prefix_len` is longer than the address.
  virtual ptr broadcastAddress(uint32_t prefix_len) const = 0;
  /// Returns the network's address in which all bits behind the prefix are cleared, with the same port. Returns null if
  /// `prefix_len` is longer than the address.
  virtual ptr networkAddress(uint32_t prefix_len) const = 0;
  /// Does what networkAddress() does, in sylar's spelling.
  ptr networdAddress(uint32_t prefix_len) const { return networkAddress(prefix_len); }
  /// Returns the mask with `prefix_len` leading bits, and port 0.
  virtual ptr subnetMask(uint32_t prefix_len) const = 0;

  /// Returns true if the address is the host itself: 127.0.0.0/8, ::1, and the IPv4-mapped addresses of 127.0.0.0/8.
  virtual bool isLoopback() const = 0;

  virtual uint32_t getPort() const = 0;
  virtual void setPort(uint16_t port) = 0;
};

/// An IPv4 address with a port.
class SYLAR_API IPv4Address final : public IPAddress {
 public:
  using ptr = std::shared_ptr<IPv4Address>;

  /// Returns the address that is written as "127.0.0.1". Returns null for any other text.
  static ptr Create(const char* address, uint16_t port = 0);

  explicit IPv4Address(const sockaddr_in& address);
  /// Makes an address from `address`, which is in host byte order.
  explicit IPv4Address(uint32_t address = INADDR_ANY, uint16_t port = 0);

  const sockaddr* getAddr() const override { return reinterpret_cast<const sockaddr*>(&m_addr); }
  sockaddr* getAddr() override { return reinterpret_cast<sockaddr*>(&m_addr); }
  socklen_t getAddrLen() const override { return sizeof m_addr; }
  bool assign(const sockaddr* addr, socklen_t addrlen) override;
  std::ostream& insert(std::ostream& os) const override;

  IPAddress::ptr broadcastAddress(uint32_t prefix_len) const override;
  IPAddress::ptr networkAddress(uint32_t prefix_len) const override;
  IPAddress::ptr subnetMask(uint32_t prefix_len) const override;
  bool isLoopback() const override;
  uint32_t getPort() const override { return ntohs(m_addr.sin_port); }
  void setPort(uint16_t port) override { m_addr.sin_port = htons(port); }

 private:
  sockaddr_in m_addr;
};

/// An IPv6 address with a port.
class SYLAR_API IPv6Address final : public IPAddress {
 public:
  using ptr = std::shared_ptr<IPv6Address>;

  /// Returns the address that is written as "::1". Returns null for any other text.
  static ptr Create(const char* address, uint16_t port = 0);

  /// Makes the address "::".
  IPv6Address();
  explicit IPv6Address(const sockaddr_in6& address) : m_addr(address) {}
  explicit IPv6Address(const uint8_t address[16], uint16_t port = 0);

  const sockaddr* getAddr() const override { return reinterpret_cast<const sockaddr*>(&m_addr); }
  sockaddr* getAddr() override { return reinterpret_cast<sockaddr*>(&m_addr); }
  socklen_t getAddrLen() const override { return sizeof m_addr; }
  bool assign(const sockaddr* addr, socklen_t addrlen) override;
  std::ostream& insert(std::ostream& os) const override;

  IPAddress::ptr broadcastAddress(uint32_t prefix_len) const override;
  IPAddress::ptr networkAddress(uint32_t prefix_len) const override;
  IPAddress::ptr subnetMask(uint32_t prefix_len) const override;
  bool isLoopback() const override;
  uint32_t getPort() const override { return ntohs(m_addr.sin6_port); }
  void setPort(uint16_t port) override { m_addr.sin6_port = htons(port); }

 private:
  sockaddr_in6 m_addr;
};

/// The address of a Unix socket: a path, an abstract name, or no name.
class SYLAR_API UnixAddress final : public Address {
 public:
  using ptr = std::shared_ptr<UnixAddress>;

  /// Makes an address without a name.
  UnixAddress();
  /// Makes an address from a path, or from an abstract name with a 0 before it. Throws std::invalid_argument if `path` is
  /// longer than 107 bytes. Source: unix(7).
  explicit UnixAddress(const std::string& path);

  const sockaddr* getAddr() const override { return reinterpret_cast<const sockaddr*>(&m_addr); }
  sockaddr* getAddr() override { return reinterpret_cast<sockaddr*>(&m_addr); }
  socklen_t getAddrLen() const override { return m_length; }
  /// Sets the length after the caller wrote into getAddr(). It is limited to the kernel's largest, and the family always stays.
  /// Source: sylar.
  void setAddrLen(uint32_t length);
  bool assign(const sockaddr* addr, socklen_t addrlen) override;
  std::ostream& insert(std::ostream& os) const override;

  /// Returns the path as given to the constructor. An abstract name has its 0 in front; without a name the result is empty.
  std::string getPath() const;
  bool isAbstract() const;

 private:
  sockaddr_un m_addr{};
  socklen_t m_length;
};

/// An address of a family that is not known here, kept as bytes.
class SYLAR_API UnknownAddress final : public Address {
 public:
  explicit UnknownAddress(int family);
  explicit UnknownAddress(const sockaddr& address);

  const sockaddr* getAddr() const override { return reinterpret_cast<const sockaddr*>(&m_addr); }
  sockaddr* getAddr() override { return reinterpret_cast<sockaddr*>(&m_addr); }
  socklen_t getAddrLen() const override { return m_length; }
  bool assign(const sockaddr* addr, socklen_t addrlen) override;
  std::ostream& insert(std::ostream& os) const override;

 private:
  sockaddr_storage m_addr{};
  socklen_t m_length;
};

}  // namespace sylar
