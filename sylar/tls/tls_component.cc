#include "sylar/net/tls_component.h"

#include "sylar/tls/ssl_socket.h"

namespace sylar::detail {
namespace {

std::function<void()> serve(TcpServer& server, const std::string& cert_file, const std::string& key_file) {
  const TlsContext::ptr context = TlsContext::Server({.certificates = {{cert_file, key_file}}});
  serveTls(server, context);
  return [context] { context->reload(); };
}

}  // namespace
}  // namespace sylar::detail

constinit const sylar::detail::TlsComponent sylar_tls_component{&sylar::detail::serve};
