// Unmodified GnuTLS, and libcurl with it, in many fibers of which some fail: pairs of a server and a client over blocking sockets.
#include <curl/curl.h>
#include <gnutls/gnutls.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>

#include "tests/integration/clients/matrix.h"
#include "tests/integration/clients/silent_servers.h"
#include "tests/integration/server_process.h"
#include "tests/support/certificate.h"

namespace sylar::test {
namespace {

struct Free {
  void operator()(gnutls_session_t session) const { ::gnutls_deinit(session); }
  void operator()(gnutls_certificate_credentials_t credentials) const { ::gnutls_certificate_free_credentials(credentials); }
  void operator()(CURL* easy) const { ::curl_easy_cleanup(easy); }
};
using Session = std::unique_ptr<std::remove_pointer_t<gnutls_session_t>, Free>;
using Credentials = std::unique_ptr<std::remove_pointer_t<gnutls_certificate_credentials_t>, Free>;

Credentials credentials() {
  gnutls_certificate_credentials_t made = nullptr;
  EXPECT_EQ(::gnutls_certificate_allocate_credentials(&made), 0);
  return Credentials(made);
}

Session sessionOver(int fd, unsigned side, const Credentials& credentials) {
  gnutls_session_t made = nullptr;
  EXPECT_EQ(::gnutls_init(&made, side | GNUTLS_NO_SIGNAL), 0);
  EXPECT_EQ(::gnutls_set_default_priority(made), 0);
  EXPECT_EQ(::gnutls_credentials_set(made, GNUTLS_CRD_CERTIFICATE, credentials.get()), 0);
  ::gnutls_transport_set_int(made, fd);
  return Session(made);
}

/// What happens between a server and its client.
enum Kind { kGood, kOtherCertificate, kOtherName, kNoTls, kCloses, kIsSilent, kEndsWithoutBye, kResets, kKinds };

/// Of each pair the even number is the server and the odd one the client.
class Pairs {
 public:
  Pairs() {
    for (std::array<int, 2>& pair : m_fds) EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
    EXPECT_EQ(::gnutls_certificate_set_x509_key_file(m_server.get(), m_certificate.path().c_str(), m_certificate.key().c_str(),
                                                     GNUTLS_X509_FMT_PEM),
              0);
    EXPECT_EQ(::gnutls_certificate_set_x509_trust_file(m_client.get(), m_certificate.path().c_str(), GNUTLS_X509_FMT_PEM), 1);
    EXPECT_EQ(::gnutls_certificate_set_x509_trust_file(m_other.get(), m_other_certificate.path().c_str(), GNUTLS_X509_FMT_PEM),
              1);
  }

  std::string use(Users& us, size_t i) {
    const Kind kind = static_cast<Kind>(i / 2 % kKinds);
    const int fd = m_fds[i / 2][i % 2];
    const std::string seen = i % 2 == 0 ? serve(us, kind, fd) : ask(us, kind, fd);
    us.meet();
    if (i % 2 == 0 || (kind != kCloses && kind != kResets)) ::close(fd);
    us.meet();
    if (i == 0) {
      for (std::array<int, 2>& pair : m_fds) EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
    }
    return seen;
  }

 private:
  static std::string told(const Session& session, ssize_t result) {
    const std::string seen = result < 0 ? ::gnutls_strerror(static_cast<int>(result)) : std::to_string(result);
    const char* const alert = ::gnutls_alert_get_name(::gnutls_alert_get(session.get()));
    return seen + (alert == nullptr ? "" : std::string(", ") + alert) + '\n';
  }

  std::string serve(Users& us, Kind kind, int fd) const {
    const Session session = sessionOver(fd, GNUTLS_SERVER, m_server);
    if (kind == kIsSilent) ::gnutls_handshake_set_timeout(session.get(), 30);
    EXPECT_EQ(::write(fd, "x", kind == kResets ? 1 : 0), kind == kResets ? 1 : 0);
    us.meet();
    const int result = ::gnutls_handshake(session.get());
    const int error = result == GNUTLS_E_PULL_ERROR ? errno : 0;
    us.meet();
    std::string seen = told(session, result) + std::to_string(error) + '\n';
    if (result != 0) return seen;
    char bytes[100];
    const ssize_t got = ::gnutls_record_recv(session.get(), bytes, sizeof bytes);
    seen += told(session, got);
    if (got > 0) seen += told(session, ::gnutls_record_send(session.get(), bytes, static_cast<size_t>(got)));
    return seen + told(session, ::gnutls_bye(session.get(), GNUTLS_SHUT_WR));
  }

  std::string ask(Users& us, Kind kind, int fd) const {
    us.meet();
    if (kind == kNoTls) ::dprintf(fd, "GET / HTTP/1.1\r\n\r\n");
    if (kind == kResets) {  // a close beside bytes that nobody has read
      pollfd readable{fd, POLLIN, 0};
      EXPECT_EQ(::poll(&readable, 1, -1), 1);
    }
    if (kind == kCloses || kind == kResets) ::close(fd);
    if (kind == kNoTls || kind == kIsSilent || kind == kCloses || kind == kResets) return us.meet(), "nothing";
    const Session session = sessionOver(fd, GNUTLS_CLIENT, kind == kOtherCertificate ? m_other : m_client);
    ::gnutls_session_set_verify_cert(session.get(), kind == kOtherName ? "other.test" : "server.test", 0);
    const int result = ::gnutls_handshake(session.get());
    if (result != 0) ::gnutls_alert_send_appropriate(session.get(), result);
    us.meet();
    std::string seen = told(session, result) + std::to_string(::gnutls_session_get_verify_cert_status(session.get())) + '\n';
    if (result != 0) return ::shutdown(fd, SHUT_RDWR), seen;
    if (kind == kEndsWithoutBye) return ::shutdown(fd, SHUT_RDWR), seen;
    seen += told(session, ::gnutls_record_send(session.get(), "hello", 5));
    char bytes[100];
    seen += told(session, ::gnutls_record_recv(session.get(), bytes, sizeof bytes));
    return seen + told(session, ::gnutls_record_recv(session.get(), bytes, sizeof bytes));
  }

  const Certificate m_certificate;
  const Certificate m_other_certificate;
  const Credentials m_server = credentials();
  const Credentials m_client = credentials();
  const Credentials m_other = credentials();
  std::array<std::array<int, 2>, Users::kSize / 2> m_fds;
};

TEST(Gnutls, SeesInFibersWhatItSeesInThreads) {
  Pairs pairs;
  seesInFibersWhatItSeesInThreads(10, [&](Users& us, size_t i) { return pairs.use(us, i); });
}

size_t take(char*, size_t, size_t size, void* all) { return *static_cast<bool*>(all) ? size : 0; }

TEST(Gnutls, CurlSeesInFibersWhatItSeesInThreads) {
  ASSERT_NE(std::string(::curl_version_info(CURLVERSION_NOW)->ssl_version).find("GnuTLS"), std::string::npos);
  ServerProcess server("nginx_tls");
  const Certificate certificate(server.port(), ""), other;
  const Silent silent;
  seesInFibersWhatItSeesInThreads(7, [&](Users& us, size_t i) {
    const std::unique_ptr<CURL, Free> easy(::curl_easy_init());
    bool all = i % 8 != 4;
    const int port = i % 8 == 3 ? silent.port() : i % 8 == 5 ? 1 : server.port();
    const std::string name = i % 8 == 2 ? "other.test" : "server.test";
    const std::string host = name + ':' + std::to_string(port);
    const std::unique_ptr<curl_slist, std::integral_constant<void (*)(curl_slist*), ::curl_slist_free_all>> address(
        ::curl_slist_append(nullptr, (host + ":127.0.0.1").c_str()));
    ::curl_easy_setopt(easy.get(), CURLOPT_RESOLVE, address.get());
    ::curl_easy_setopt(easy.get(), CURLOPT_URL,
                       ("https://" + host +
                        (i % 8 == 6   ? "/nothing"
                         : i % 8 == 7 ? "/slow"
                                      : "/large"))
                           .c_str());
    ::curl_easy_setopt(easy.get(), CURLOPT_CAINFO, (i % 8 == 1 ? other : certificate).path().c_str());
    ::curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &take);
    ::curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &all);
    if (i % 8 == 3) ::curl_easy_setopt(easy.get(), CURLOPT_TIMEOUT_MS, 50L);
    std::string seen;
    for (int round = 0; round < 3; ++round) {
      us.meet();
      const CURLcode result = ::curl_easy_perform(easy.get());
      us.meet();
      long status = 0;
      curl_off_t size = 0;
      ::curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
      ::curl_easy_getinfo(easy.get(), CURLINFO_SIZE_DOWNLOAD_T, &size);
      seen += ::curl_easy_strerror(result) + (' ' + std::to_string(status)) + ' ' + std::to_string(all ? size : 0) + '\n';
    }
    return seen;
  });
}

}  // namespace
}  // namespace sylar::test
