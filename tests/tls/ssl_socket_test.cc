#include "sylar/tls/ssl_socket.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sylar/http/http_server.h"
#include "sylar/testing/virtual_time.h"
#include "tests/tls/support.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

class SSLSocketTest : public InBothPlaces {
 protected:
  const Certificate m_certificate;
};
INSTANTIATE_TEST_SUITE_P(Places, SSLSocketTest, kPlaces, placeName);

std::string receiveAll(Socket& socket, size_t size) {
  std::string all(size, '\0');
  size_t got = 0;
  for (int count; got < size && (count = socket.recv(all.data() + got, size - got)) > 0;) got += static_cast<size_t>(count);
  all.resize(got);
  return all;
}

TEST_P(SSLSocketTest, BothEndsTalk) {
  run([this] {
    const auto [client, server] = tlsEnds(servedWith(m_certificate), trusting(m_certificate));
    ASSERT_NE(client, nullptr);
    ASSERT_NE(server, nullptr);
    EXPECT_EQ(client->send("hello", 5), 5);
    EXPECT_EQ(receiveAll(*server, 5), "hello");
    iovec parts[] = {{const_cast<char*>("wor"), 3}, {nullptr, 0}, {const_cast<char*>("ld"), 2}};
    EXPECT_EQ(server->send(parts, 3), 5);
    char a[2], b[3];
    iovec room[] = {{nullptr, 0}, {a, 2}, {b, 3}};
    EXPECT_EQ(client->recv(room, 3), 2);
    EXPECT_EQ(std::string(a, 2) + receiveAll(*client, 3), "world");
    const TlsInfo info = client->info();
    EXPECT_EQ(info.version, "TLSv1.3");
    EXPECT_EQ(info.peer, "CN=server.test");
    EXPECT_EQ(server->info().server_name, "server.test");
    EXPECT_FALSE(info.resumed);
    EXPECT_TRUE(client->close());
    char byte;
    EXPECT_EQ(server->recv(&byte, 1), 0) << "the client has said that it ends";
  });
}

// More than a record, and more than the kernel holds, in both directions at once: a fiber sends while another receives.
TEST_P(SSLSocketTest, MovesMegabytesBothWaysAtOnce) {
  run([this] {
    std::string bytes(3 << 20, '\0');
    std::iota(bytes.begin(), bytes.end(), '\0');
    const auto ends = tlsEnds(servedWith(m_certificate), trusting(m_certificate));
    ASSERT_NE(ends.client, nullptr);
    const auto sendAll = [&bytes](Socket& socket) {
      EXPECT_EQ(socket.send(bytes.data(), bytes.size()), static_cast<int>(bytes.size()));
    };
    const Beside client_sends([&] { sendAll(*ends.client); });
    const Beside server_sends([&] { sendAll(*ends.server); });
    const Beside server_reads([&] { EXPECT_TRUE(receiveAll(*ends.server, bytes.size()) == bytes); });
    EXPECT_TRUE(receiveAll(*ends.client, bytes.size()) == bytes);
  });
}

// A send that does not wait takes what there is room for, and goes on with the same bytes.
TEST_P(SSLSocketTest, SendsWithoutWaiting) {
  run([this] {
    const std::string bytes(4 << 20, 'x');
    const auto ends = tlsEnds(servedWith(m_certificate), trusting(m_certificate));
    ASSERT_NE(ends.client, nullptr);
    size_t sent = 0;
    std::unique_ptr<Beside> reads;  // once there is no room
    while (sent < bytes.size()) {
      const int count = ends.client->send(bytes.data() + sent, bytes.size() - sent, MSG_DONTWAIT);
      if (count > 0) {
        sent += static_cast<size_t>(count);
        continue;
      }
      ASSERT_EQ(errno, EAGAIN);
      if (reads == nullptr)
        reads = std::make_unique<Beside>([&] { EXPECT_EQ(receiveAll(*ends.server, bytes.size()).size(), bytes.size()); });
      ASSERT_EQ(ends.client->awaitWritable(-1), 1);
    }
    ASSERT_NE(reads, nullptr);
    reads->join();
    char byte;
    EXPECT_EQ(ends.client->recv(&byte, 1, MSG_DONTWAIT), -1);
    EXPECT_EQ(errno, EAGAIN);
  });
}

// CD-N2, SEC-42
TEST_P(SSLSocketTest, RefusesWhoIsNotMeant) {
  const Certificate other("other.test");
  run([&, this] {
    std::string error;
    EXPECT_EQ(tlsEnds(servedWith(m_certificate), trusting(m_certificate), "elsewhere.test", &error).client, nullptr);
    EXPECT_EQ(errno, EPROTO);
    EXPECT_NE(error.find("mismatch"), std::string::npos) << error;
    EXPECT_EQ(tlsEnds(servedWith(other), trusting(m_certificate), "other.test", &error).client, nullptr);
    EXPECT_EQ(errno, EPROTO);
    EXPECT_NE(error.find("self-signed certificate"), std::string::npos) << error;
    EXPECT_EQ(tlsEnds(servedWith(m_certificate), {.verify = true}, "server.test", &error).client, nullptr)
        << "the system does not know it";
    EXPECT_NE(tlsEnds(servedWith(other), {.verify = false}, "").client, nullptr);
    EXPECT_EQ(tlsEnds(servedWith(m_certificate), trusting(m_certificate), "127.0.0.1", &error).client, nullptr);
    EXPECT_NE(error.find("IP address mismatch"), std::string::npos) << error;
    const SSLSocket::ptr nameless = tlsClient(trusting(m_certificate), "");
    EXPECT_FALSE(nameless->connect(loopback(1)));
    EXPECT_EQ(errno, EINVAL) << "without a name nobody can be checked";
  });
}

// WEB-13
TEST_P(SSLSocketTest, ShowsTheCertificateOfTheNamedHost) {
  const Certificate other("other.test"), wild("*.wild.test");
  run([&, this] {
    TlsOptions servers = servedWith(m_certificate);
    for (const Certificate* const one : {&other, &wild}) servers.certificates.push_back({one->path(), one->key()});
    const auto shownTo = [&](const std::string& host) {
      const TlsEnds ends = tlsEnds(servers, {.verify = false}, host);
      return ends.client == nullptr ? "nobody" : ends.client->info().peer;
    };
    EXPECT_EQ(shownTo("server.test"), "CN=server.test");
    EXPECT_EQ(shownTo("other.test"), "CN=other.test");
    EXPECT_EQ(shownTo("www.wild.test"), "CN=*.wild.test");
    EXPECT_EQ(shownTo("unknown.test"), "CN=server.test");
    EXPECT_EQ(shownTo(""), "CN=server.test");
  });
}

// WEB-13
TEST_P(SSLSocketTest, AgreesOnAProtocol) {
  run([this] {
    const auto agreed = [&](const std::vector<std::string>& servers, const std::vector<std::string>& clients) {
      TlsOptions server = servedWith(m_certificate), client = trusting(m_certificate);
      server.alpn = servers;
      client.alpn = clients;
      const TlsEnds ends = tlsEnds(server, client);
      return ends.client == nullptr ? "refused" : ends.client->info().alpn;
    };
    EXPECT_EQ(agreed({"h2", "http/1.1"}, {"http/1.1", "h2"}), "h2");
    EXPECT_EQ(agreed({"http/1.1"}, {"h2", "http/1.1"}), "http/1.1");
    EXPECT_EQ(agreed({"http/1.1"}, {}), "");
    EXPECT_EQ(agreed({}, {"h2"}), "");
    EXPECT_EQ(agreed({"http/1.1"}, {"smtp"}), "refused");
  });
}

// WEB-13
TEST_P(SSLSocketTest, AsksClientsForCertificates) {
  const Certificate known("client.test"), unknown("stranger.test");
  run([&, this] {
    const auto peerOf = [&](ClientAuth auth, const Certificate* shown) {
      TlsOptions server = servedWith(m_certificate), client = trusting(m_certificate);
      server.client_auth = auth;
      server.ca_file = known.path();
      client.min_version = TlsVersion::k12;
      if (shown != nullptr) client.certificates = {{shown->path(), shown->key()}};
      const TlsEnds ends = tlsEnds(server, client);
      return ends.server->info().version.empty() ? "refused" : ends.server->info().peer;
    };
    EXPECT_EQ(peerOf(ClientAuth::kRequired, &known), "CN=client.test");
    EXPECT_EQ(peerOf(ClientAuth::kRequired, &unknown), "refused");
    EXPECT_EQ(peerOf(ClientAuth::kRequired, nullptr), "refused");
    EXPECT_EQ(peerOf(ClientAuth::kOptional, nullptr), "");
    EXPECT_EQ(peerOf(ClientAuth::kOptional, &unknown), "refused");
    EXPECT_EQ(peerOf(ClientAuth::kNone, &known), "") << "nobody has asked";
  });
}

// WEB-16, SEC-43: an end of which nobody speaks may be an attacker's.
TEST_P(SSLSocketTest, TellsACutFromAnEnd) {
  run([this] {
    const auto [client, server] = tlsEnds(servedWith(m_certificate), trusting(m_certificate));
    ASSERT_NE(client, nullptr);
    ASSERT_EQ(client->send("half", 4), 4);
    ::shutdown(client->getSocket(), SHUT_WR);
    EXPECT_EQ(receiveAll(*server, 4), "half");
    char byte;
    EXPECT_EQ(server->recv(&byte, 1), -1);
    EXPECT_EQ(errno, EPROTO);
    EXPECT_NE(server->getTlsError().find("unexpected eof"), std::string::npos) << server->getTlsError();
  });
}

TEST_P(SSLSocketTest, MaySendOnWhenThePeerHasEnded) {
  run([this] {
    const auto [client, server] = tlsEnds(servedWith(m_certificate), trusting(m_certificate));
    ASSERT_NE(client, nullptr);
    EXPECT_TRUE(client->shutdown(SHUT_WR));
    char byte;
    EXPECT_EQ(server->recv(&byte, 1), 0);
    EXPECT_EQ(server->send("answer", 6), 6);
    EXPECT_EQ(receiveAll(*client, 6), "answer");
  });
}

// WEB-11, WEB-D1, SEC-44: what one connection does wrong is not told to another.
TEST_P(SSLSocketTest, KeepsTheFaultsOfOneFromTheOthers) {
  run([this] {
    constexpr int kRounds = 200;
    const TlsContext::ptr context = TlsContext::Server(servedWith(m_certificate));
    const Socket::ptr listener = tlsListener(context);
    const Beside wrong([&] {
      for (int i = 0; i < kRounds; ++i) {
        const Socket::ptr plain = connectedTo(listener->getLocalAddress());
        EXPECT_EQ(plain->send("GET / HTTP/1.1\r\n\r\n", 18), 18);
        char answer[64];
        while (plain->recv(answer, sizeof answer) > 0) continue;
      }
    });
    const Beside right([&] {
      for (int i = 0; i < kRounds; ++i) {
        const SSLSocket::ptr client = tlsClient(trusting(m_certificate));
        ASSERT_TRUE(client->connect(listener->getLocalAddress())) << client->getTlsError();
        EXPECT_EQ(client->send("x", 1), 1);
        EXPECT_EQ(receiveAll(*client, 1), "x");
        EXPECT_TRUE(client->shutdown(SHUT_WR));
        char byte;
        EXPECT_EQ(client->recv(&byte, 1), 0) << client->getTlsError();
      }
    });
    int refused = 0, ended = 0;
    std::vector<std::unique_ptr<Beside>> served;
    for (int i = 0; i < 2 * kRounds; ++i) {
      const Socket::ptr client = listener->accept();
      ASSERT_NE(client, nullptr);
      char byte;
      int count;
      while ((count = client->recv(&byte, 1)) > 0) EXPECT_EQ(client->send(&byte, 1), 1);
      ++(count == 0 ? ended : refused);
    }
    EXPECT_EQ(refused, kRounds);
    EXPECT_EQ(ended, kRounds);
  });
}

// Cause: OpenSSL went on with the record of another sender, and took it for this one's.
TEST_P(SSLSocketTest, SendersDoNotMix) {
  run([this] {
    constexpr size_t kSize = 10'000, kTimes = 200;
    const auto ends = tlsEnds(servedWith(m_certificate), trusting(m_certificate));
    ASSERT_NE(ends.client, nullptr);
    const auto sendAll = [&](char letter) {
      const std::string bytes(kSize, letter);
      for (size_t i = 0; i < kTimes; ++i) ASSERT_EQ(ends.client->send(bytes.data(), kSize), static_cast<int>(kSize));
    };
    const Beside first([&] { sendAll('a'); });
    const Beside second([&] { sendAll('b'); });
    const std::string all = receiveAll(*ends.server, 2 * kSize * kTimes);
    ASSERT_EQ(all.size(), 2 * kSize * kTimes);
    for (size_t at = 0; at < all.size(); at += kSize) ASSERT_EQ(all.substr(at, kSize), std::string(kSize, all[at]));
    EXPECT_EQ(std::ranges::count(all, 'a'), static_cast<ptrdiff_t>(kSize * kTimes));
  });
}

// Cause: the one who had not made the handshake waited for a message of it that the other had read.
TEST_P(SSLSocketTest, SeveralMayMakeTheHandshake) {
  run([this] {
    for (int i = 0; i < 20; ++i) {
      const Socket::ptr listener = tlsListener(TlsContext::Server(servedWith(m_certificate)));
      const SSLSocket::ptr client = tlsClient(trusting(m_certificate));
      Socket::ptr server;
      const Beside accepts([&] {
        server = listener->accept();
        const Beside receives([&] { EXPECT_EQ(receiveAll(*server, 5), "hello"); });
        EXPECT_EQ(server->send("first", 5), 5);
      });
      ASSERT_TRUE(client->connect(listener->getLocalAddress())) << client->getTlsError();
      EXPECT_EQ(receiveAll(*client, 5), "first");
      EXPECT_EQ(client->send("hello", 5), 5);
    }
  });
}

// Cause: OpenSSL's refusal to send behind the goodbye ended the receiving as well.
TEST_P(SSLSocketTest, AShutdownBesideASendLetsReceivingGoOn) {
  run([this] {
    const std::string bytes(32 << 20, 'x');
    const auto ends = tlsEnds(servedWith(m_certificate), trusting(m_certificate));
    ASSERT_NE(ends.client, nullptr);
    Beside sends([&] { EXPECT_LT(ends.client->send(bytes.data(), bytes.size()), static_cast<int>(bytes.size())); });
    EXPECT_EQ(receiveAll(*ends.server, 100'000).size(), 100'000u);  // it is under way
    EXPECT_TRUE(ends.client->shutdown(SHUT_WR));
    sends.join();
    EXPECT_EQ(ends.server->send("answer", 6), 6);
    EXPECT_EQ(receiveAll(*ends.client, 6), "answer") << ends.client->getTlsError();
  });
}

// Cause: the server's tickets, which nobody had read, made the close a reset.
TEST_P(SSLSocketTest, WhatWasSentBeforeACloseArrives) {
  run([this] {
    const std::string bytes(1 << 20, 'x');
    auto ends = tlsEnds(servedWith(m_certificate), trusting(m_certificate));
    ASSERT_NE(ends.client, nullptr);
    const Beside reads([&] {
      EXPECT_EQ(receiveAll(*ends.server, bytes.size()).size(), bytes.size());
      char byte;
      EXPECT_EQ(ends.server->recv(&byte, 1), 0) << ends.server->getTlsError();
    });
    EXPECT_EQ(ends.client->send(bytes.data(), bytes.size()), static_cast<int>(bytes.size()));
    ends.client = nullptr;
  });
}

// Cause: a goodbye was left out if another call was inside OpenSSL at that moment.
TEST_P(SSLSocketTest, SaysGoodbyeWhileOthersReceive) {
  run([this] {
    const std::string bytes(200'000, 'x');
    for (int i = 0; i < 20; ++i) {
      const auto ends = tlsEnds(servedWith(m_certificate), trusting(m_certificate));
      ASSERT_NE(ends.client, nullptr);
      const Beside sends([&] { EXPECT_EQ(ends.server->send(bytes.data(), bytes.size()), static_cast<int>(bytes.size())); });
      const Beside reads([&] { EXPECT_EQ(receiveAll(*ends.client, bytes.size()).size(), bytes.size()); });
      EXPECT_TRUE(ends.client->shutdown(SHUT_WR));
      char byte;
      EXPECT_EQ(ends.server->recv(&byte, 1), 0) << ends.server->getTlsError();
    }
  });
}

TEST_P(SSLSocketTest, KeepsTheRulesOfAShutdown) {
  run([this] {
    const auto [client, server] = tlsEnds(servedWith(m_certificate), trusting(m_certificate));
    ASSERT_NE(client, nullptr);
    char byte;
    EXPECT_EQ(client->recv(&byte, 0), 0);
    EXPECT_EQ(server->send("answer", 6), 6);
    EXPECT_TRUE(client->shutdown(SHUT_WR));
    EXPECT_TRUE(client->shutdown(SHUT_WR));
    EXPECT_EQ(client->send("x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
    EXPECT_EQ(receiveAll(*client, 6), "answer") << "the other direction goes on";
  });
  run([this] {
    const auto ends = tlsEnds(servedWith(m_certificate), trusting(m_certificate));
    ASSERT_NE(ends.client, nullptr);
    const Beside reads([&] {
      char byte;
      EXPECT_EQ(ends.server->recv(&byte, 1), 0) << "this end does not want to read any more";
    });
    ::usleep(1000);  // it waits, or does not yet
    EXPECT_TRUE(ends.server->shutdown(SHUT_RD));
    EXPECT_EQ(ends.server->send("x", 1), 1);
    EXPECT_EQ(receiveAll(*ends.client, 1), "x");
  });
}

// Cause: the session of before was closed with the new descriptor, and read from a stranger's.
TEST_P(SSLSocketTest, MayBeConnectedAnew) {
  run([this] {
    const Socket::ptr listener = tlsListener(TlsContext::Server(servedWith(m_certificate)));
    const SSLSocket::ptr client = tlsClient(trusting(m_certificate));
    for (int i = 0; i < 3; ++i) {
      const Beside serves([&] {
        const Socket::ptr server = listener->accept();
        char byte;
        EXPECT_EQ(server->recv(&byte, 1), 1);
        EXPECT_EQ(server->send(&byte, 1), 1);
        EXPECT_EQ(server->recv(&byte, 1), 0);
      });
      ASSERT_TRUE(client->connect(listener->getLocalAddress())) << client->getTlsError();
      EXPECT_EQ(client->send("x", 1), 1);
      EXPECT_EQ(receiveAll(*client, 1), "x");
      EXPECT_TRUE(client->close());
      EXPECT_TRUE(client->bind(loopback()));
      EXPECT_EQ(client->send("x", 1), -1);
      EXPECT_EQ(errno, ENOTCONN);
      EXPECT_TRUE(client->close());
    }
  });
}

// Cause: the child said goodbye in the parent's name.
TEST_P(SSLSocketTest, AForkedChildLeavesItToItsParent) {
  if (GetParam() == Place::kFiber) return;
  run([this] {
    auto ends = tlsEnds(servedWith(m_certificate), trusting(m_certificate));
    ASSERT_NE(ends.client, nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      ends.client = nullptr;
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(ends.client->send("x", 1), 1);
    EXPECT_EQ(receiveAll(*ends.server, 1), "x");
  });
}

TEST_P(SSLSocketTest, ACloseEndsAWait) {
  run([this] {
    const auto ends = tlsEnds(servedWith(m_certificate), trusting(m_certificate));
    ASSERT_NE(ends.client, nullptr);
    Beside reads([&] {
      char byte;
      EXPECT_EQ(ends.server->recv(&byte, 1), -1);
      EXPECT_EQ(errno, EBADF);
    });
    ::usleep(1000);  // it waits, or does not yet; both end
    EXPECT_TRUE(ends.server->close());
    reads.join();
  });
}

TEST_P(SSLSocketTest, RefusesFilesThatCannotBeUsed) {
  run([] {
    SSLSocket listener(Socket::IPv4);
    EXPECT_FALSE(listener.loadCertificates("/nowhere/certificate", "/nowhere/key"));
    EXPECT_NE(listener.getTlsError().find("/nowhere/certificate"), std::string::npos) << listener.getTlsError();
  });
}

// WEB-15, WEB-L1, SEC-11: in a fiber on virtual time, because who says nothing has ten seconds.
TEST(SSLSocketTime, WhoSaysNothingIsGivenUp) {
  const Certificate certificate;
  VirtualTime time;
  time.run([&] {
    const Socket::ptr listener = tlsListener(TlsContext::Server(servedWith(certificate)));
    const Socket::ptr silent = connectedTo(listener->getLocalAddress());
    const Socket::ptr server = listener->accept();
    server->setRecvTimeout(3000);
    char byte;
    EXPECT_EQ(server->recv(&byte, 1), -1);
    EXPECT_EQ(errno, EAGAIN) << "its own timeout comes first";
    server->setRecvTimeout(0);
    EXPECT_EQ(server->recv(&byte, 1), -1);
    EXPECT_EQ(errno, ETIMEDOUT);
  });
  EXPECT_EQ(time.elapsed(), 10s);
}

// WEB-17
TEST(SSLSocketTime, ACancelEndsAHandshake) {
  const Certificate certificate;
  VirtualTime time;
  time.run([&] {
    const Socket::ptr listener = tlsListener(TlsContext::Server(servedWith(certificate)));
    const Socket::ptr silent = connectedTo(listener->getLocalAddress());
    const Socket::ptr server = listener->accept();
    const auto shakes = std::make_shared<Fiber>([&] {
      char byte;
      EXPECT_EQ(server->recv(&byte, 1), -1);
      EXPECT_EQ(errno, ECANCELED);
    });
    IOManager::GetThis()->schedule(shakes);
    ::sleep(1);
    shakes->cancel();
    shakes->join();
  });
  EXPECT_EQ(time.elapsed(), 1s);
}

/// Serves what `handle` does by HTTP over TLS to one client, which `ask` is.
void serveOne(const Certificate& certificate, http::FunctionServlet::callback handle,
              const std::function<void(http::HttpServer&, SSLSocket&)>& ask) {
  inFiber([&] {
    const auto server = std::make_shared<http::HttpServer>(true);
    server->getServletDispatch()->addServlet("/", std::move(handle));
    serveTls(*server, TlsContext::Server(servedWith(certificate)));
    ASSERT_TRUE(server->bind(loopback()));
    ASSERT_TRUE(server->start());
    const SSLSocket::ptr client = tlsClient(trusting(certificate));
    ASSERT_TRUE(client->connect(server->getSocks().front()->getLocalAddress())) << client->getTlsError();
    ask(*server, *client);
    client->close();
    server->stop();
    EXPECT_TRUE(server->join());
  });
}

// The promise of serveTls(): any TcpServer, here one of HTTP.
TEST(SSLSocketServer, ServesHttp) {
  const Certificate certificate;
  const auto answers = [](auto request, auto response, auto) {
    response->setBody(std::string(request->getBody().size() + 100'000, 'y'));
    return 0;
  };
  serveOne(certificate, answers, [](http::HttpServer& server, SSLSocket& client) {
    constexpr std::string_view kRequest = "POST / HTTP/1.1\r\nHost: server.test\r\nContent-Length: 3\r\n\r\nabc";
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(client.send(kRequest.data(), kRequest.size()), static_cast<int>(kRequest.size()));
      std::string answer;
      while (answer.find("\r\n\r\n") == std::string::npos) answer += receiveAll(client, 1);
      EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
      EXPECT_EQ(receiveAll(client, 100'003), std::string(100'003, 'y'));
    }
    server.stop();
    char byte;
    EXPECT_EQ(client.recv(&byte, 1), 0) << "the server says that it ends: " << client.getTlsError();
  });
}

// SEC-36, SEC-43. Cause: the end was said to be one before the reset.
TEST(SSLSocketServer, AnAnswerThatBreaksOffLooksSo) {
  const Certificate certificate;
  const auto breaks = [](auto, auto response, auto session) -> int32_t {
    EXPECT_TRUE(session->beginResponse(response));
    EXPECT_TRUE(session->writeBody("half"));
    throw std::runtime_error("the handler breaks off");
  };
  serveOne(certificate, breaks, [](http::HttpServer&, SSLSocket& client) {
    constexpr std::string_view kRequest = "GET / HTTP/1.0\r\n\r\n";
    ASSERT_EQ(client.send(kRequest.data(), kRequest.size()), static_cast<int>(kRequest.size()));
    char buffer[256];
    int count;
    while ((count = client.recv(buffer, sizeof buffer)) > 0) continue;
    EXPECT_EQ(count, -1) << "the answer must not look whole";
  });
}

// CD-N8. Cause: what OpenSSL had decrypted was not seen.
TEST(SSLSocketServer, AStopAnswersWhatHasCome) {
  const Certificate certificate;
  std::atomic<bool> began{false}, go_on{false};
  const auto waits = [&](auto, auto response, auto) {
    began = true;
    while (!go_on) ::usleep(100);
    response->setBody("x");
    return 0;
  };
  serveOne(certificate, waits, [&](http::HttpServer& server, SSLSocket& client) {
    constexpr int kRequests = 3;
    std::string requests;
    for (int i = 0; i < kRequests; ++i) requests += "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(470, 'x') + "\r\n\r\n";
    ASSERT_EQ(client.send(requests.data(), requests.size()), static_cast<int>(requests.size()));
    while (!began) ::usleep(100);
    server.stop();
    go_on = true;
    std::string all;
    char buffer[1024];
    for (int count; (count = client.recv(buffer, sizeof buffer)) > 0;) all.append(buffer, static_cast<size_t>(count));
    size_t answers = 0;
    for (size_t at = 0; (at = all.find("HTTP/1.1 200", at)) != all.npos; ++at) ++answers;
    EXPECT_EQ(answers, kRequests);
  });
}

}  // namespace
}  // namespace sylar::test
