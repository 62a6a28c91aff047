// Internal. Makes the sessions of a TlsContext.
#pragma once

#include <openssl/ssl.h>

#include <memory>

#include "sylar/base/internal.h"
#include "sylar/tls/tls_context.h"

namespace sylar::detail {

struct SslDeleter {
  void operator()(SSL* ssl) const { ::SSL_free(ssl); }
};

/// One connection, as OpenSSL keeps it.
struct TlsSession {
  std::shared_ptr<const void> files;  // what was read from those of the context; its callbacks look there
  std::unique_ptr<SSL, SslDeleter> ssl;
};

class TlsContextControl {
 public:
  /// Returns a session with the files that were read last. `ssl` is null, with errors in OpenSSL's queue, if there is no memory.
  static TlsSession makeSession(const TlsContext& context);
};

}  // namespace sylar::detail
