#include "sylar/tls/tls_context.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "sylar/base/os_mutex.h"
#include "sylar/tls/tls_context_control.h"
#include "sylar/tls/tls_errors.h"

namespace sylar {
namespace {

struct CtxDeleter {
  void operator()(SSL_CTX* ctx) const { ::SSL_CTX_free(ctx); }
};
using CtxPtr = std::unique_ptr<SSL_CTX, CtxDeleter>;

/// Mozilla's "intermediate", without DHE. Source: RFC 9325, 4.2.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

[[noreturn]] void fail(std::string_view what) {
  const std::string why = detail::takeTlsErrors();
  throw TlsError(fmt::format("sylar: {}{}{}", what, why.empty() ? "" : ": ", why));
}
void require(bool holds, std::string_view what) {
  if (!holds) fail(what);
}

/// Protocol names with their lengths in front, as in the message. Source: RFC 7301, 3.1.
std::vector<unsigned char> wireFormat(const std::vector<std::string>& protocols) {
  std::vector<unsigned char> wire;
  for (const std::string& one : protocols) {
    require(!one.empty() && one.size() < 256, fmt::format("'{}' is no name of a protocol (alpn)", one));
    wire.push_back(static_cast<unsigned char>(one.size()));
    wire.insert(wire.end(), one.begin(), one.end());
  }
  return wire;
}

/// The contents of the files of a context. The first of `all` is for clients that name no host.
struct Loaded {
  std::vector<CtxPtr> all;
  std::vector<unsigned char> alpn;
};

const Loaded& loadedOf(SSL* ssl) { return *static_cast<const Loaded*>(SSL_get_app_data(ssl)); }

/// Gives the client the certificate for the host that it has named, if there is one.
int chooseCertificate(SSL* ssl, int* /*alert*/, void* /*unused*/) {
  const char* const host = ::SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (host == nullptr) return SSL_TLSEXT_ERR_NOACK;
  for (const CtxPtr& one : loadedOf(ssl).all) {
    X509* const certificate = ::SSL_CTX_get0_certificate(one.get());
    if (::X509_check_host(certificate, host, 0, 0, nullptr) != 1) continue;
    ::SSL_set_SSL_CTX(ssl, one.get());
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_NOACK;
}

int chooseProtocol(SSL* ssl, const unsigned char** chosen, unsigned char* size, const unsigned char* offered,
                   unsigned offered_size, void* /*unused*/) {
  const std::vector<unsigned char>& ours = loadedOf(ssl).alpn;
  const int found = ::SSL_select_next_proto(const_cast<unsigned char**>(chosen), size, ours.data(),
                                            static_cast<unsigned>(ours.size()), offered, offered_size);
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/// A key with a password cannot be used. Without this OpenSSL would ask on the terminal.
int noPassword(char*, int, int, void*) { return 0; }

CtxPtr newCtx(const TlsOptions& options, bool is_server) {
  CtxPtr ctx(::SSL_CTX_new(is_server ? ::TLS_server_method() : ::TLS_client_method()));
  require(ctx != nullptr, "no memory for a TLS context");
  require(::SSL_CTX_set_min_proto_version(ctx.get(), static_cast<int>(options.min_version)) == 1,
          "the TLS version cannot be used");
  ::SSL_CTX_set_options(ctx.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  if (!options.tickets) ::SSL_CTX_set_options(ctx.get(), SSL_OP_NO_TICKET);
  if (!options.tickets) ::SSL_CTX_set_num_tickets(ctx.get(), 0);
  ::SSL_CTX_set_session_cache_mode(ctx.get(), SSL_SESS_CACHE_OFF);  // sessions are in the tickets
  ::SSL_CTX_set_mode(ctx.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ::SSL_CTX_clear_mode(ctx.get(), SSL_MODE_AUTO_RETRY);  // who has asked not to wait gets the turn back
  const std::string& ciphers = options.ciphers.empty() ? kCiphers : options.ciphers;
  require(::SSL_CTX_set_cipher_list(ctx.get(), ciphers.c_str()) == 1, fmt::format("no cipher in '{}'", ciphers));
  if (!options.ciphersuites.empty()) {
    require(::SSL_CTX_set_ciphersuites(ctx.get(), options.ciphersuites.c_str()) == 1,
            fmt::format("no ciphersuites: '{}'", options.ciphersuites));
  }
  ::SSL_CTX_set_default_passwd_cb(ctx.get(), noPassword);
  return ctx;
}

void useCertificate(SSL_CTX* ctx, const TlsOptions::CertKey& files) {
  require(::SSL_CTX_use_certificate_chain_file(ctx, files.cert_file.c_str()) == 1,
          fmt::format("no certificate in '{}'", files.cert_file));
  require(::SSL_CTX_use_PrivateKey_file(ctx, files.key_file.c_str(), SSL_FILETYPE_PEM) == 1,
          fmt::format("no key in '{}'", files.key_file));
  require(::SSL_CTX_check_private_key(ctx) == 1, fmt::format("'{}' is not the key of '{}'", files.key_file, files.cert_file));
}

void trust(SSL_CTX* ctx, const std::string& ca_file) {
  require(::SSL_CTX_load_verify_locations(ctx, ca_file.c_str(), nullptr) == 1, fmt::format("no certificates in '{}'", ca_file));
}

void setUpServer(SSL_CTX* ctx, const TlsOptions& options, const Loaded& loaded) {
  ::SSL_CTX_set_tlsext_servername_callback(ctx, chooseCertificate);
  if (!loaded.alpn.empty()) ::SSL_CTX_set_alpn_select_cb(ctx, chooseProtocol, nullptr);
  constexpr unsigned char kContext[] = "sylar";  // a session is one of this program's; needed where certificates are asked for
  ::SSL_CTX_set_session_id_context(ctx, kContext, sizeof kContext - 1);
  if (options.client_auth == ClientAuth::kNone) return;
  require(!options.ca_file.empty(), "a server that asks clients for certificates needs a ca_file");
  trust(ctx, options.ca_file);
  ::SSL_CTX_set_client_CA_list(ctx, ::SSL_load_client_CA_file(options.ca_file.c_str()));
  const int required = options.client_auth == ClientAuth::kRequired ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
  ::SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | required, nullptr);
}

void setUpClient(SSL_CTX* ctx, const TlsOptions& options, const Loaded& loaded) {
  require(::SSL_CTX_set_alpn_protos(ctx, loaded.alpn.data(), static_cast<unsigned>(loaded.alpn.size())) == 0,
          "no memory for the protocols");
  if (!options.verify) return;
  options.ca_file.empty() ? require(::SSL_CTX_set_default_verify_paths(ctx) == 1, "the system has no list of certificates")
                          : trust(ctx, options.ca_file);
  ::SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, nullptr);
}

std::shared_ptr<const Loaded> load(const TlsOptions& options, bool is_server) {
  ::ERR_clear_error();
  auto loaded = std::make_shared<Loaded>();
  loaded->alpn = wireFormat(options.alpn);
  const size_t count = std::max<size_t>(options.certificates.size(), 1);
  for (size_t i = 0; i < count; ++i) {
    CtxPtr ctx = newCtx(options, is_server);
    if (i < options.certificates.size()) useCertificate(ctx.get(), options.certificates[i]);
    is_server ? setUpServer(ctx.get(), options, *loaded) : setUpClient(ctx.get(), options, *loaded);
    loaded->all.push_back(std::move(ctx));
  }
  return loaded;
}

}  // namespace

struct TlsContext::Impl {
  Impl(const TlsOptions& its_options, bool is_servers) : options(its_options), is_server(is_servers) {}

  const TlsOptions options;
  const bool is_server;
  OsMutex mutex;
  std::shared_ptr<const Loaded> loaded SYLAR_GUARDED_BY(mutex) = load(options, is_server);
};

TlsContext::TlsContext(std::unique_ptr<Impl> impl) : m_impl(std::move(impl)) {}
TlsContext::~TlsContext() = default;

TlsContext::ptr TlsContext::Server(const TlsOptions& options) {
  require(!options.certificates.empty(), "a server needs a certificate");
  require(options.handshake_timeout.count() > 0, "handshake_timeout must be above 0");
  return ptr(new TlsContext(std::make_unique<Impl>(options, true)));
}
TlsContext::ptr TlsContext::Client(const TlsOptions& options) {
  require(options.certificates.size() <= 1, "a client has one certificate at most");
  require(options.handshake_timeout.count() > 0, "handshake_timeout must be above 0");
  return ptr(new TlsContext(std::make_unique<Impl>(options, false)));
}

void TlsContext::reload() {
  std::shared_ptr<const Loaded> loaded = load(m_impl->options, m_impl->is_server);
  const Lock lock(m_impl->mutex);
  m_impl->loaded.swap(loaded);
}

const TlsOptions& TlsContext::getOptions() const { return m_impl->options; }
bool TlsContext::isServer() const { return m_impl->is_server; }

}  // namespace sylar

namespace sylar::detail {

TlsSession TlsContextControl::makeSession(const TlsContext& context) {
  std::shared_ptr<const Loaded> loaded;
  {
    const Lock lock(context.m_impl->mutex);
    loaded = context.m_impl->loaded;
  }
  TlsSession session;
  session.ssl.reset(::SSL_new(loaded->all.front().get()));
  if (session.ssl != nullptr) SSL_set_app_data(session.ssl.get(), const_cast<Loaded*>(loaded.get()));
  session.files = std::move(loaded);
  return session;
}

}  // namespace sylar::detail
