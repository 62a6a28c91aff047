// Internal. The result of a handshake, as OpenSSL tells it.
#pragma once

#include <openssl/ssl.h>

#include "sylar/base/internal.h"
#include "sylar/tls/ssl_socket.h"

namespace sylar::detail {

/// The handshake must have been made. May leave errors in OpenSSL's queue.
TlsInfo infoOf(const SSL* ssl);

}  // namespace sylar::detail
