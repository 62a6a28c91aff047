// Socket addresses: IPv4, IPv6, Unix, and those of families that are not known here; and names looked up.
//
//   Address::ptr any = Address::LookupAny("localhost:80");           // asks the resolver
//   IPAddress::ptr fixed = IPAddress::Create("192.0.2.1", 80);       // numbers only
//
// Thread safety: as of a plain value: any number may read one, or one may change it. What is static, from anywhere.
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

namespace sylar {

class IPAddress;

class Address {
 public:
  using ptr = std::shared_ptr<Address>;

  virtual ~Address() = default;

  /// A copy of `addr`, in the class of its family. Null if `addr` is null, or `addrlen` does not fit the family.
  static ptr Create(const sockaddr* addr, socklen_t addrlen);

  /// Appends to `result` what `host` stands for: a name or number, with or without a port or the name of a service behind a
  /// colon: "name", "name:80", "name:http", "1.2.3.4:80", "::1", "[::1]", "[::1]:80". `family`: AF_INET, AF_INET6 or AF_UNSPEC
  /// for both; `type`: SOCK_STREAM, ... or 0 for any. Each address once. False with errno, `result` as before: ENOENT (no such
  /// name or service), EINVAL (malformed, or a family without names), EAGAIN (the resolver, or the pool on which it runs, is
  /// busy), ENOMEM, or the resolver's own. Suspends, if the resolver must be asked: yes; it runs on a helper thread. Source:
  /// getaddrinfo(3), sylar.
  static bool Lookup(std::vector<ptr>& result, const std::string& host, int family = AF_INET, int type = 0, int protocol = 0);
  /// The first of those; null if there is none. Suspends: yes.
  static ptr LookupAny(const std::string& host, int family = AF_INET, int type = 0, int protocol = 0);
  /// The first that is an IP address. Suspends: yes.
  static std::shared_ptr<IPAddress> LookupAnyIPAddress(const std::string& host, int family = AF_INET, int type = 0,
                                                       int protocol = 0);

  /// The addresses of all network interfaces, by the name of the interface, with the lengths of their prefixes in bits. False:
  /// there is none of the family, or errno tells. Suspends: no. Source: getifaddrs(3), sylar.
  static bool GetInterfaceAddresses(std::multimap<std::string, std::pair<ptr, uint32_t>>& result, int family = AF_INET);
  /// The same for the interface `iface`; "" and "*": the addresses that stand for all interfaces, with prefix 0.
  static bool GetInterfaceAddresses(std::vector<std::pair<ptr, uint32_t>>& result, const std::string& iface,
                                    int family = AF_INET);

  int getFamily() const { return getAddr()->sa_family; }
  virtual const sockaddr* getAddr() const = 0;
  virtual sockaddr* getAddr() = 0;
  virtual socklen_t getAddrLen() const = 0;
  /// Becomes a copy of `addr`. False, and it is as before: another family, or a length that does not fit.
  virtual bool assign(const sockaddr* addr, socklen_t addrlen) = 0;

  /// Writes it as toString() has it.
  virtual std::ostream& insert(std::ostream& os) const = 0;
  /// "1.2.3.4:80", "[::1]:80", "/run/x.sock", "\0name" for an abstract Unix address.
  std::string toString() const;

  /// By bytes, then by length: an order for maps, without a meaning.
  bool operator<(const Address& other) const;
  bool operator==(const Address& other) const;
  bool operator!=(const Address& other) const { return !(*this == other); }
};

std::ostream& operator<<(std::ostream& os, const Address& address);

class IPAddress : public Address {
 public:
  using ptr = std::shared_ptr<IPAddress>;

  /// From numbers only: "127.0.0.1", "::1". Null if it is something else. Source: inet_pton(3).
  static ptr Create(const char* address, uint16_t port = 0);

  /// The network's address in which all bits behind the prefix are set. Null if `prefix_len` is longer than the address. The port
  /// is kept.
  virtual ptr broadcastAddress(uint32_t prefix_len) const = 0;
  /// The same with those bits cleared.
  virtual ptr networkAddress(uint32_t prefix_len) const = 0;
  /// sylar's spelling of it.
  ptr networdAddress(uint32_t prefix_len) const { return networkAddress(prefix_len); }
  /// The mask with `prefix_len` leading bits; port 0.
  virtual ptr subnetMask(uint32_t prefix_len) const = 0;

  /// Whether it is of the host itself: 127.0.0.0/8, ::1, ::ffff:127.0.0.0/104.
  virtual bool isLoopback() const = 0;

  virtual uint32_t getPort() const = 0;
  virtual void setPort(uint16_t port) = 0;
};

class IPv4Address final : public IPAddress {
 public:
  using ptr = std::shared_ptr<IPv4Address>;

  /// "127.0.0.1". Null if it is something else.
  static ptr Create(const char* address, uint16_t port = 0);

  explicit IPv4Address(const sockaddr_in& address);
  /// `address` in host byte order.
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

class IPv6Address final : public IPAddress {
 public:
  using ptr = std::shared_ptr<IPv6Address>;

  /// "::1". Null if it is something else.
  static ptr Create(const char* address, uint16_t port = 0);

  /// "::"
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

class UnixAddress final : public Address {
 public:
  using ptr = std::shared_ptr<UnixAddress>;

  /// Without a name.
  UnixAddress();
  /// A path, or an abstract name with a 0 before it; at most 107 bytes, or std::invalid_argument. Source: unix(7).
  explicit UnixAddress(const std::string& path);

  const sockaddr* getAddr() const override { return reinterpret_cast<const sockaddr*>(&m_addr); }
  sockaddr* getAddr() override { return reinterpret_cast<sockaddr*>(&m_addr); }
  socklen_t getAddrLen() const override { return m_length; }
  /// For who wrote into getAddr(); more than the kernel's largest is cut to that, and the family is always there. Source: sylar.
  void setAddrLen(uint32_t length);
  bool assign(const sockaddr* addr, socklen_t addrlen) override;
  std::ostream& insert(std::ostream& os) const override;

  /// As given to the constructor: an abstract name has its 0 in front; empty: without a name.
  std::string getPath() const;
  bool isAbstract() const;

 private:
  sockaddr_un m_addr{};
  socklen_t m_length;
};

/// Of a family that is not known here; its bytes.
class UnknownAddress final : public Address {
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
