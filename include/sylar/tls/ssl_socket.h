// A Socket over which TLS is spoken.
//
//   auto client = std::make_shared<sylar::SSLSocket>(sylar::Socket::IPv4, sylar::TlsContext::Client());
//   client->setHost("example.org");                       // whose certificate it must be
//   if (!client->connect(address, 1000)) ... client->getTlsError() tells more than errno
//   client->send("hello", 5);
//
//   sylar::serveTls(*server, context);                    // has any TcpServer speak TLS; before its bind()
//
// Calls do what those of Socket do, and fail in the same ways. In addition they fail with EPROTO if the peer speaks no TLS, is
// refused, or ends the connection without saying so, which may be an attack. recv() returns 0 only if the peer has said so.
//
// A send with MSG_DONTWAIT that has failed with EAGAIN must be repeated with the same bytes. One that waits and fails has ended the
// connection, since a part of it may be on its way.
//
// The handshake of a connection that was accepted is made by its first call, so that it holds up no other connection.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>

#include "sylar/api.h"
#include "sylar/clock.h"
#include "sylar/socket.h"
#include "sylar/tls/tls_context.h"

namespace sylar {

class TcpServer;
namespace detail {
class TlsConnection;
}

/// The result of a handshake.
struct TlsInfo {
  std::string version;      ///< such as "TLSv1.3"
  std::string cipher;       ///< such as "TLS_AES_256_GCM_SHA384"
  std::string alpn;         ///< the protocol, or "" if none was chosen
  std::string server_name;  ///< the host that the client has named (SNI), or ""
  std::string peer;         ///< the subject of the peer's certificate (RFC 2253), or "" if it has shown none
  bool resumed = false;     ///< a session of before goes on
};

/// Thread safety: as Socket. Of several that send at once, each sends all of its bytes before the next.
class SYLAR_API SSLSocket : public Socket {
 public:
  using ptr = std::shared_ptr<SSLSocket>;

  /// Makes an end of a TCP or Unix connection. A context of a server makes a listener, whose accept() returns SSLSockets.
  explicit SSLSocket(int family, TlsContext::ptr context = nullptr);
  /// Makes a client's end of the family of `address`, which must not be null. Source: sylar.
  static ptr CreateTCP(const Address::ptr& address);
  static ptr CreateTCPSocket() { return std::make_shared<SSLSocket>(IPv4); }
  static ptr CreateTCPSocket6() { return std::make_shared<SSLSocket>(IPv6); }
  ~SSLSocket() override;

  /// Makes it a server's end with this certificate and key. Returns false, with getTlsError(), if they cannot be used. To be called
  /// before listen(). Source: sylar.
  bool loadCertificates(const std::string& cert_file, const std::string& key_file);
  /// Sets the name or the address of the server to which connect() is made, which the server's certificate must have.
  void setHost(std::string host);

  /// Makes the handshake, if it has not been made, within `deadline` and the context's handshake_timeout. Returns false with errno
  /// and getTlsError(). May suspend: yes.
  bool handshake(Deadline deadline = Deadline::never());
  /// Returns what was agreed on. Empty before the handshake.
  TlsInfo info() const;
  /// Returns what OpenSSL said when a call last failed with EPROTO.
  std::string getTlsError() const;

  /// Connects, and makes the handshake, each within `timeout_ms`. Without a host, and with a context that verifies, fails with
  /// EINVAL.
  bool connect(Address::ptr addr, uint64_t timeout_ms = ~uint64_t{0}) override;
  /// Tells the peer that this end will send no more, as far as that needs no wait, and closes the socket.
  bool close() override;
  bool shutdown(int how) override;
  int send(const void* buffer, size_t length, int flags = 0) override;
  int send(const iovec* buffers, size_t length, int flags = 0) override;
  int sendTo(const void* buffer, size_t length, Address::ptr to, int flags = 0) override;
  int sendTo(const iovec* buffers, size_t length, Address::ptr to, int flags = 0) override;
  int recv(void* buffer, size_t length, int flags = 0) override;
  int recv(iovec* buffers, size_t length, int flags = 0) override;
  int recvFrom(void* buffer, size_t length, Address::ptr from, int flags = 0) override;
  int recvFrom(iovec* buffers, size_t length, Address::ptr from, int flags = 0) override;

  std::ostream& dump(std::ostream& os) const override;

 protected:
  Socket::ptr makeAccepted(int fd, Address::ptr peer) override;

 private:
  class Accepted;
  class Sending;
  struct Impl;

  SSLSocket(const SSLSocket& listener, int fd, Address::ptr peer, std::unique_ptr<Impl> impl);
  std::shared_ptr<detail::TlsConnection> connection();
  std::shared_ptr<detail::TlsConnection> ready(int flags, Deadline deadline);
  template <class Call>
  int perform(detail::TlsConnection& connection, int flags, Deadline deadline, bool sends, Call call, short& events);
  bool waitFor(short events, Deadline deadline);
  int sendPart(detail::TlsConnection& connection, const char* bytes, size_t size, int flags);
  void sayGoodbye(bool closes);

  const std::unique_ptr<Impl> m_impl;
};

/// Has the server speak TLS on the addresses that it is bound to afterwards.
SYLAR_API void serveTls(TcpServer& server, TlsContext::ptr context);

}  // namespace sylar
