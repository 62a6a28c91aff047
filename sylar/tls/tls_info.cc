#include "sylar/tls/tls_info.h"

#include <openssl/bio.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace sylar::detail {
namespace {

std::string subjectOf(const SSL* ssl) {
  X509* const certificate = ::SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr) return "";
  const std::unique_ptr<BIO, decltype(&::BIO_free)> text(::BIO_new(::BIO_s_mem()), &::BIO_free);
  if (text == nullptr || ::X509_NAME_print_ex(text.get(), ::X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) < 0)
    return "";
  char* bytes = nullptr;
  const long size = ::BIO_get_mem_data(text.get(), &bytes);
  return {bytes, static_cast<size_t>(size)};
}

std::string orEmpty(const char* text) { return text != nullptr ? text : ""; }

}  // namespace

TlsInfo infoOf(const SSL* ssl) {
  TlsInfo info;
  info.version = ::SSL_get_version(ssl);
  info.cipher = orEmpty(::SSL_get_cipher_name(ssl));
  info.server_name = orEmpty(::SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name));
  info.peer = subjectOf(ssl);
  info.resumed = ::SSL_session_reused(ssl) == 1;
  const unsigned char* alpn = nullptr;
  unsigned size = 0;
  ::SSL_get0_alpn_selected(ssl, &alpn, &size);
  if (size > 0) info.alpn.assign(alpn, alpn + size);
  return info;
}

}  // namespace sylar::detail
