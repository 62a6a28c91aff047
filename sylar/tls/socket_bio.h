// Internal. The bytes below TLS: a BIO that reads and writes a descriptor and never waits. Whoever calls OpenSSL waits outside, so
// OpenSSL is never left half-way. Source: BIO_meth_new(3).
#pragma once

#include <openssl/bio.h>

#include <atomic>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// The connection of a BIO.
struct SocketWire {
  int fd = -1;
  bool has_ended = false;                ///< the peer sends no more
  std::atomic<bool> reads_ended{false};  ///< this end reads no more
};

/// Returns a new BIO for `wire`, which must outlive it, or null if there is no memory. It does not close the descriptor.
BIO* makeSocketBio(SocketWire& wire);

}  // namespace sylar::detail
