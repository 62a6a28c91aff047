#include "sylar/tls/tls_context.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/tls/support.h"

namespace sylar::test {
namespace {

/// Returns why the options are refused, or "" if they are not.
std::string refusal(const TlsOptions& options, bool of_server = true) {
  try {
    (void)(of_server ? TlsContext::Server(options) : TlsContext::Client(options));
    return "";
  } catch (const TlsError& error) {
    return error.what();
  }
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(TlsContext, RefusesWhatItCannotUse) {
  const Certificate one, other;
  EXPECT_EQ(refusal(servedWith(one)), "");
  EXPECT_EQ(refusal({}, false), "");
  EXPECT_TRUE(has(refusal({}), "needs a certificate"));
  EXPECT_TRUE(has(refusal({.certificates = {{one.path(), other.key()}}}), "key values mismatch"));
  EXPECT_TRUE(has(refusal({.certificates = {{one.key(), one.key()}}}), "no certificate in '" + one.key()));
  EXPECT_TRUE(has(refusal({.certificates = {{one.path(), one.path()}}}), "no key in '" + one.path()));
  const auto with = [&](auto change) {
    TlsOptions options = servedWith(one);
    change(options);
    return refusal(options);
  };
  EXPECT_TRUE(has(with([](TlsOptions& options) { options.ciphers = "NONSENSE"; }), "no cipher in 'NONSENSE'"));
  EXPECT_TRUE(has(with([](TlsOptions& options) { options.ciphersuites = "NONSENSE"; }), "NONSENSE"));
  EXPECT_TRUE(has(with([](TlsOptions& options) { options.alpn = {""}; }), "no name of a protocol"));
  EXPECT_TRUE(has(with([](TlsOptions& options) { options.client_auth = ClientAuth::kRequired; }), "needs a ca_file"));
  EXPECT_TRUE(has(with([](TlsOptions& options) {
                    options.client_auth = ClientAuth::kRequired;
                    options.ca_file = "/nowhere";
                  }),
                  "/nowhere"));
  EXPECT_TRUE(
      has(with([](TlsOptions& options) { options.handshake_timeout = std::chrono::milliseconds(0); }), "handshake_timeout"));
}

// A key with a password: nobody is asked for it.
TEST(TlsContext, RefusesAKeyWithAPassword) {
  const Certificate one;
  const std::string locked = one.key() + ".locked";
  ASSERT_EQ(std::system(("openssl pkey -aes256 -passout pass:secret -in " + one.key() + " -out " + locked).c_str()), 0);
  EXPECT_TRUE(has(refusal({.certificates = {{one.path(), locked}}}), "no key in '" + locked));
}

// WEB-14, WEB-D17, SEC-45
TEST(TlsContext, ReadsItsFilesAgain) {
  Certificate certificate("old.test");
  const TlsContext::ptr context = TlsContext::Server(servedWith(certificate));
  const Socket::ptr listener = tlsListener(context);
  const auto shown = [&] {
    const SSLSocket::ptr client = tlsClient({.verify = false}, "");
    Socket::ptr server;
    const Beside accepts([&] {
      server = listener->accept();
      std::dynamic_pointer_cast<SSLSocket>(server)->handshake();
    });
    return client->connect(listener->getLocalAddress()) ? client->info().peer : client->getTlsError();
  };
  EXPECT_EQ(shown(), "CN=old.test");
  certificate.makeFor("new.test");
  EXPECT_EQ(shown(), "CN=old.test");
  context->reload();
  EXPECT_EQ(shown(), "CN=new.test");
  std::ofstream(certificate.path()) << "nothing";
  EXPECT_THROW(context->reload(), TlsError);
  EXPECT_EQ(shown(), "CN=new.test") << "what cannot be used replaces nothing";
}

}  // namespace
}  // namespace sylar::test
