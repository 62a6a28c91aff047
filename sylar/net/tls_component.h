// Internal. What the component tls gives to a module that does without it. A program that links sylar::tls has it.
#pragma once

#include <functional>
#include <string>

#include "sylar/base/internal.h"
#include "sylar/tcp_server.h"

namespace sylar::detail {

struct TlsComponent {
  /// Has `server` speak TLS on the addresses to which it is bound from now on, with a certificate and a key from files. Returns
  /// what reads these again for new connections. Both throw std::runtime_error, which says what is wrong with the files, and then
  /// nothing has changed.
  std::function<void()> (*serve)(TcpServer& server, const std::string& cert_file, const std::string& key_file);
};

}  // namespace sylar::detail

/// Its address is null in a program without the component.
extern "C" [[gnu::weak]] SYLAR_API const sylar::detail::TlsComponent sylar_tls_component;
