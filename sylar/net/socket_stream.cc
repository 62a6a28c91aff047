#include "sylar/socket_stream.h"

#include <utility>

#include "sylar/check.h"

namespace sylar {

SocketStream::SocketStream(Socket::ptr sock, bool owner) : m_socket(std::move(sock)), m_owner(owner) {
  SYLAR_CHECK(m_socket != nullptr);
}

SocketStream::~SocketStream() {
  if (m_owner) m_socket->close();
}

int SocketStream::read(void* buffer, size_t length) { return m_socket->recv(buffer, length); }
int SocketStream::write(const void* buffer, size_t length) { return m_socket->send(buffer, length); }
void SocketStream::close() { m_socket->close(); }

}  // namespace sylar
