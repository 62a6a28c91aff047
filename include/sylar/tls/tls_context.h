// A TlsContext is the part that TLS connections share: certificates, keys, and what is asked of the peer.
//
//   auto context = sylar::TlsContext::Server({.certificates = {{"site.crt", "site.key"}}});
//   sylar::serveTls(*server, context);        // before bind(); sylar/tls/ssl_socket.h
//   ...
//   context->reload();                        // the files have changed
//
// Versions before TLS 1.2, compression, renegotiation and early data are off. Source: OpenSSL 3, RFC 8446, RFC 5246.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sylar/api.h"

struct ssl_st;

namespace sylar {

/// Says why a TlsContext cannot be made: what OpenSSL tells, and of which file.
class SYLAR_API TlsError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class TlsVersion : uint16_t { k12 = 0x0303, k13 = 0x0304 };

/// A server asks its clients for nothing, for a certificate if they have one, or for a certificate.
enum class ClientAuth : uint8_t { kNone, kOptional, kRequired };

struct TlsOptions {
  /// PEM files: a certificate with those that have signed it, and its key without a password.
  struct CertKey {
    std::string cert_file;
    std::string key_file;
  };

  /// A server needs at least one. A client that names a host (SNI) gets the first that is for it, or else the first of all. A
  /// client has at most one, for servers that ask for it.
  std::vector<CertKey> certificates{};
  /// The file holds those who may have signed the peer's certificate. "" is the system's list for a client, and nobody for a
  /// server.
  std::string ca_file{};
  std::string ciphers{};       ///< of TLS 1.2, as in ciphers(1ssl); "" means those with ECDHE and AEAD
  std::string ciphersuites{};  ///< of TLS 1.3; "" means OpenSSL's
  TlsVersion min_version = TlsVersion::k12;
  bool tickets = true;  ///< sessions may be resumed; the keys are the context's, and new after reload()
  ClientAuth client_auth = ClientAuth::kNone;
  bool verify = true;               ///< a client checks the server's certificate and name
  std::vector<std::string> alpn{};  ///< protocols, the preferred first; a client that offers none of the server's is refused
  std::chrono::milliseconds handshake_timeout{10'000};  ///< from accept() or connect(); above 0
};

namespace detail {
class TlsContextControl;
}

/// Thread safety: all calls from any fiber or thread. May suspend: no, but files are read.
class SYLAR_API TlsContext {
 public:
  using ptr = std::shared_ptr<TlsContext>;

  /// Throws TlsError if a file cannot be used, or an option has a wrong value.
  static ptr Server(const TlsOptions& options);
  static ptr Client(const TlsOptions& options = {});
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /// Reads all files again, for connections that begin afterwards. Throws TlsError, and then nothing has changed.
  void reload();
  const TlsOptions& getOptions() const;
  bool isServer() const;

 private:
  friend class detail::TlsContextControl;
  struct Impl;
  explicit TlsContext(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> m_impl;
};

}  // namespace sylar
