// A socket as a stream.
//
// Thread safety: one reader and one writer at a time; close() from anywhere.
#pragma once

#include <string>

#include "sylar/api.h"
#include "sylar/socket.h"
#include "sylar/stream.h"

namespace sylar {

/// A stream over a socket.
class SYLAR_API SocketStream : public Stream {
 public:
  using ptr = std::shared_ptr<SocketStream>;

  /// `sock` must not be null. If the stream is the `owner`, its destructor closes the socket.
  explicit SocketStream(Socket::ptr sock, bool owner = true);
  ~SocketStream() override;

  /// Reads and writes as Stream does. The result is < 0 with ENOTCONN if the socket is not connected. On a blocking socket
  /// write() writes everything, unless a timeout or an error comes in between.
  int read(void* buffer, size_t length) override;
  int write(const void* buffer, size_t length) override;
  void close() override;

  Socket::ptr getSocket() const { return m_socket; }
  bool isConnected() const { return m_socket->isConnected(); }
  Address::ptr getRemoteAddress() const { return m_socket->getRemoteAddress(); }
  Address::ptr getLocalAddress() const { return m_socket->getLocalAddress(); }
  std::string getRemoteAddressString() const { return getRemoteAddress()->toString(); }
  std::string getLocalAddressString() const { return getLocalAddress()->toString(); }

 protected:
  const Socket::ptr m_socket;
  const bool m_owner;
};

}  // namespace sylar
