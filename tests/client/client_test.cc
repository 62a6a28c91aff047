#include "sylar/http/client.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sylar/cancel.h"
#include "sylar/http/http_server.h"
#include "sylar/http/router.h"
#include "sylar/sync/blocking_pool.h"
#include "sylar/tls/ssl_socket.h"
#include "tests/client/web_server.h"
#include "tests/sched/gate.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;
using http::Client;
using http::ClientError;
using http::ClientOptions;
using http::ClientRequest;
using http::ClientResponse;
using http::HttpMethod;
using http::HttpServer;
using http::HttpStatus;
using http::Router;

/// A server that says to each connection what it was told to, whatever it is asked.
class RawServer {
 public:
  explicit RawServer(std::vector<std::string> answers) {
    m_iom.schedule([this, answers = std::move(answers)] {
      for (const std::string& answer : answers) {
        const Socket::ptr client = m_listener->accept();
        if (client == nullptr) return;
        ++m_accepted;
        std::string head;
        char byte;
        while (head.find("\r\n\r\n") == head.npos && client->recv(&byte, 1) == 1) head += byte;
        client->send(answer.data(), answer.size());
      }
    });
  }
  ~RawServer() {
    m_listener->close();
    m_iom.stop();
  }
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;
  std::string url() const { return "http://" + m_listener->getLocalAddress()->toString() + "/"; }
  int accepted() const { return m_accepted; }

 private:
  const Socket::ptr m_listener = listenerOn();
  std::atomic<int> m_accepted{0};
  IOManager m_iom{SchedulerOptions{.threads = 1, .use_caller = false, .name = "raw"}};
};

class ClientTest : public InBothPlaces {
 protected:
  void TearDown() override { BlockingPool::process().endAll(); }  // helpers that have looked names up

  /// Returns the kind of the error of a request, or "none".
  static std::string errorOf(Client& client, const ClientRequest& request) {
    try {
      (void)client.request(request);
      return "none";
    } catch (const ClientError& error) {
      return nameOf(error.kind());
    }
  }
  static std::string errorOf(const ClientOptions& options, const std::string& url) {
    Client client(options);
    return errorOf(client, {.url = url});
  }
};
INSTANTIATE_TEST_SUITE_P(Places, ClientTest, kPlaces, placeName);

TEST_P(ClientTest, GetsAndPosts) {
  run([] {
    const WebServer server(echoing());
    Client client;
    const ClientResponse got = client.get(server.url("/echo"));
    EXPECT_EQ(got.status, HttpStatus::OK);
    EXPECT_EQ(got.headers.find("x-method"), "GET");
    EXPECT_EQ(got.body, "");
    const ClientResponse posted = client.post(server.url("/echo"), "some\0thing", "text/plain");
    EXPECT_EQ(posted.headers.find("x-method"), "POST");
    EXPECT_EQ(posted.headers.find("x-got-content-type"), "text/plain");
    EXPECT_EQ(client.get(server.url("/nothing")).status, HttpStatus::NOT_FOUND) << "an answer of any status is one";
    for (const HttpMethod method :
         {HttpMethod::PUT, HttpMethod::PATCH, HttpMethod::DELETE, HttpMethod::HEAD, HttpMethod::OPTIONS}) {
      const bool has_body = method == HttpMethod::PUT || method == HttpMethod::PATCH;
      ClientRequest one{.method = method, .url = server.url("/echo"), .body = has_body ? "body" : ""};
      one.headers.add("x-own", "mine");
      const ClientResponse answer = client.request(one);
      if (method == HttpMethod::OPTIONS) continue;  // answered from the routes
      EXPECT_EQ(answer.headers.find("x-method"), http::HttpMethodToString(method));
      EXPECT_EQ(answer.headers.find("x-got-x-own"), "mine");
      EXPECT_EQ(answer.body, one.body);
      EXPECT_FALSE(answer.headers.find("x-got-content-type")) << "nobody has said one";
    }
  });
}

// WEB-25, CD-N6: one connection for requests after one another, as many as there are at once for those beside one another.
TEST_P(ClientTest, KeepsConnections) {
  run([] {
    const WebServer server(echoing());
    Client client;
    for (int i = 0; i < 10; ++i) (void)client.get(server.url("/echo"));
    EXPECT_EQ(server.connections(), 1u);
    (void)client.post(server.url("/echo"), "x", "text/plain");
    EXPECT_EQ(server.connections(), 2u) << "what may not be made twice gets a new one";
    ClientRequest keyed{.method = HttpMethod::POST, .url = server.url("/echo"), .body = "x"};
    keyed.headers.add("idempotency-key", "1");
    (void)client.request(keyed);
    EXPECT_EQ(server.connections(), 2u);
  });
}

TEST_P(ClientTest, FollowsRedirects) {
  run([] {
    const auto routes = echoing();
    for (const int status : {301, 302, 303, 307, 308}) {
      routes->handle("/from" + std::to_string(status), [status](http::HttpRequest&, http::HttpResponse& response) {
        response.redirect("echo?a#b", static_cast<HttpStatus>(status));
      });
    }
    routes->handle("/loop", [](http::HttpRequest&, http::HttpResponse& response) { response.redirect("/loop"); });
    routes->handle("/bad", [](http::HttpRequest&, http::HttpResponse& response) { response.redirect("file:///etc/passwd"); });
    const WebServer server(routes);
    Client client;
    const auto methodBehind = [&](int status, HttpMethod method) {
      ClientRequest one{.method = method, .url = server.url("/from" + std::to_string(status))};
      if (method != HttpMethod::GET) one.body = "body";
      const ClientResponse answer = client.request(one);
      EXPECT_EQ(answer.url, server.url("/echo?a"));
      return std::string(*answer.headers.find("x-method")) + ' ' + answer.body;
    };
    for (const int status : {301, 302, 303, 307, 308}) EXPECT_EQ(methodBehind(status, HttpMethod::GET), "GET ");
    for (const int status : {301, 302, 303}) EXPECT_EQ(methodBehind(status, HttpMethod::POST), "GET ");
    for (const int status : {307, 308}) EXPECT_EQ(methodBehind(status, HttpMethod::POST), "POST body");
    for (const int status : {301, 302, 307, 308}) EXPECT_EQ(methodBehind(status, HttpMethod::PUT), "PUT body");
    EXPECT_EQ(methodBehind(303, HttpMethod::PUT), "GET ");
    EXPECT_EQ(errorOf(client, {.url = server.url("/loop")}), "protocol");
    EXPECT_EQ(errorOf(client, {.url = server.url("/bad")}), "protocol");
    routes->handle("/dir/page", [](http::HttpRequest&, http::HttpResponse& response) { response.redirect("next"); });
    routes->handle("/dir/next", [](http::HttpRequest&, http::HttpResponse& response) { response.text("next"); });
    EXPECT_EQ(client.get(server.url("/dir/page#/a/fragment")).body, "next");
    Client first_only({.max_redirects = 0});
    EXPECT_EQ(first_only.get(server.url("/loop")).status, HttpStatus::FOUND);
  });
}

// WEB-28
TEST_P(ClientTest, TellsNoSecretToAnotherOrigin) {
  run([] {
    const WebServer other(echoing());
    const auto routes = echoing();
    routes->handle("/away", [&](http::HttpRequest&, http::HttpResponse& response) { response.redirect(other.url("/echo")); });
    routes->handle("/here", [](http::HttpRequest&, http::HttpResponse& response) { response.redirect("/echo"); });
    const WebServer server(routes);
    Client client;
    const auto told = [&](const std::string& path) {
      ClientRequest one{.url = server.url(path)};
      one.headers.add("authorization", "secret");
      one.headers.add("cookie", "secret=1");
      one.headers.add("host", "secret.test");
      const ClientResponse answer = client.request(one);
      return answer.headers.find("x-got-authorization").has_value() + 10 * answer.headers.find("x-got-cookie").has_value() +
             100 * (answer.headers.find("x-got-host") == "secret.test");
    };
    EXPECT_EQ(told("/echo"), 111);
    EXPECT_EQ(told("/here"), 111);
    EXPECT_EQ(told("/away"), 0);
    // The login of a URL is sent as far, and shown nowhere.
    const auto asked = [&](const std::string& path) {
      std::string url = server.url(path);
      url.insert(url.find("//") + 2, "user:secret@");
      const ClientResponse answer = client.get(url);
      EXPECT_EQ(answer.url.find("secret"), answer.url.npos);
      return answer.headers.find("x-got-authorization").has_value();
    };
    EXPECT_TRUE(asked("/echo"));
    EXPECT_TRUE(asked("/here"));
    EXPECT_FALSE(asked("/away"));
    try {
      (void)client.get("http://user:secret@name.invalid/");
      ADD_FAILURE();
    } catch (const ClientError& error) {
      EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos) << error.what();
    }
  });
}

// WEB-24, WEB-27
TEST_P(ClientTest, SaysWhyThereIsNoAnswer) {
  const Certificate certificate;
  run([&] {
    const WebServer server(echoing()), tls(echoing(), &certificate);
    const Socket::ptr nobody = heldPort();
    const std::string closed = "http://" + nobody->getLocalAddress()->toString() + "/";
    for (const char* const wrong : {"", "nonsense", "ftp://127.0.0.1/", "http://", "http://a b/", "file:///etc/passwd"})
      EXPECT_EQ(errorOf({}, wrong), "invalid") << wrong;
    EXPECT_EQ(errorOf({.timeout = 50ms}, server.url("/slow")), "timeout");
    EXPECT_EQ(errorOf({}, "http://name.invalid/"), "resolve");
    EXPECT_EQ(errorOf({}, closed), "connect");
    EXPECT_EQ(errorOf({}, tls.url("/echo")), "tls") << "nobody vouches for it";
    EXPECT_EQ(errorOf({.ca_file = certificate.path()}, tls.url("/echo")), "tls") << "it is not for this address";
    EXPECT_EQ(errorOf({.verify = false}, tls.url("/echo")), "none");
    EXPECT_EQ(errorOf({}, "https" + server.url("/echo").substr(4)), "tls") << "it speaks no TLS";
    EXPECT_EQ(errorOf({.proxy = closed}, server.url("/echo")), "connect");
    Client client;
    EXPECT_EQ(errorOf(client, {.url = server.url("/echo"), .body = "x"}), "invalid") << "GET has no body";
    for (const char* const name : {"content-length", "transfer-encoding"}) {
      ClientRequest framed{.method = HttpMethod::POST, .url = server.url("/echo"), .body = "x"};
      framed.headers.add(name, "5");
      EXPECT_EQ(errorOf(client, framed), "invalid");
    }
    ASSERT_EQ(::setenv("no_proxy", "*", 1), 0);
    EXPECT_EQ(errorOf({.proxy = closed}, server.url("/echo")), "connect") << "the environment says nothing";
    ::unsetenv("no_proxy");
    EXPECT_EQ(errorOf({.timeout = std::chrono::milliseconds::max()}, server.url("/echo")), "none");
    EXPECT_THROW(Client({.max_head = 1 << 20}), std::invalid_argument);
    EXPECT_THROW(Client({.timeout = 0ms}), std::invalid_argument);
  });
}

// SEC-37
TEST_P(ClientTest, RefusesBrokenAnswers) {
  run([] {
    const auto errorAt = [](const std::string& answer, const ClientOptions& options = {}) {
      const RawServer server({answer});
      return errorOf(options, server.url());
    };
    const std::string head = "HTTP/1.1 200 OK\r\n";
    EXPECT_EQ(errorAt(head + "content-length: 2\r\n\r\nok"), "none");
    EXPECT_EQ(errorAt(head + "content-length: 20\r\n\r\ncut"), "protocol");
    EXPECT_EQ(errorAt(head + "transfer-encoding: chunked\r\n\r\n5\r\ncut"), "protocol");
    EXPECT_EQ(errorAt(head + "transfer-encoding: chunked\r\n\r\nwhat\r\n"), "protocol");
    EXPECT_EQ(errorAt(head + "a b: c\r\ncontent-length: 0\r\n\r\n"), "protocol");
    EXPECT_EQ(errorAt(""), "protocol");
    EXPECT_EQ(errorAt("no http\r\n\r\n"), "protocol");
    EXPECT_EQ(errorAt(head + "content-length: 9\r\n\r\n123456789", {.max_body = 8}), "too large");
    EXPECT_EQ(errorAt(head + "content-length: 8\r\n\r\n12345678", {.max_body = 8}), "none");
    EXPECT_EQ(errorAt(head + "x: " + std::string(2000, 'x') + "\r\ncontent-length: 0\r\n\r\n", {.max_head = 1000}), "too large");
    EXPECT_EQ(errorAt(head + "x: " + std::string(150'000, 'x') + "\r\n\r\n"), "too large") << "a line that libcurl does not take";
  });
}

// WEB-29: a gzip of a mebibyte of zeros, of 1 KiB. gzip(1) has made it.
TEST_P(ClientTest, DecompressesWithinLimits) {
  run([] {
    std::string zipped;
    const std::unique_ptr<FILE, int (*)(FILE*)> gzip(::popen("head -c 1048576 /dev/zero | gzip -c", "r"), &::pclose);
    char buffer[4096];
    for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, gzip.get())) > 0;) zipped.append(buffer, n);
    ASSERT_LT(zipped.size(), 4096u);
    const auto routes = std::make_shared<Router>();
    routes->handle("/zeros", [&](http::HttpRequest&, http::HttpResponse& response) {
      response.setHeader("content-encoding", "gzip");
      response.setBody(zipped);
    });
    const WebServer server(routes);
    Client client;
    EXPECT_EQ(client.get(server.url("/zeros")).body, std::string(1 << 20, '\0'));
    EXPECT_EQ(errorOf({.max_body = 100'000}, server.url("/zeros")), "too large");
    ClientRequest raw{.url = server.url("/zeros")};
    raw.headers.add("accept-encoding", "gzip");
    EXPECT_EQ(client.request(raw).body, zipped) << "who says what he accepts gets it as it is";
  });
}

// WEB-26, WEB-D13: a server that closes kept connections without a word.
TEST_P(ClientTest, AsksAgainWhatMayBeAskedTwice) {
  run([] {
    const std::string kept = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    const RawServer server({kept, kept, kept});
    Client client;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(client.get(server.url()).body, "ok");
    EXPECT_EQ(server.accepted(), 3);
  });
}

// WEB-24: in a fiber, the deadline and the cancel of which hold here, too.
TEST(ClientInFiber, EndsWithItsFiber) {
  inFiber([] {
    const auto routes = std::make_shared<Router>();
    routes->handle("/slow", [](http::HttpRequest&, http::HttpResponse&) { ::usleep(500'000); });
    const WebServer server(routes);
    const auto kind = [&] {
      try {
        Client client;
        (void)client.get(server.url("/slow"));
        return "none";
      } catch (const ClientError& error) {
        return nameOf(error.kind());
      }
    };
    {
      const this_fiber::DeadlineScope scope(Deadline::after(30ms));
      EXPECT_STREQ(kind(), "timeout");
    }
    const auto fiber = std::make_shared<Fiber>([&] { EXPECT_STREQ(kind(), "cancelled"); });
    IOManager::GetThis()->schedule(fiber);
    EXPECT_TRUE(eventually([&] { return stateOf(*fiber) == FiberState::kParked; }));  // in whatever call of libcurl's
    fiber->cancel();
    fiber->join();
  });
}

// Fibers that run as their worker borrow a thread for the transfer.
TEST(ClientInFiber, ManyAtOnceOfOneWorker) {
  const Certificate certificate;
  for (const FiberIdentity identity : {FiberIdentity::kOwn, FiberIdentity::kWorker}) {
    const WebServer server(echoing()), tls(echoing(), &certificate);
    IOManager iom({.threads = 1, .use_caller = false, .name = "many", .identity = identity});
    Client client({.ca_file = certificate.path()});
    std::atomic<int> good{0}, refused{0};
    for (int i = 0; i < 100; ++i) {
      iom.schedule([&, i] {
        try {
          good += client.post(server.url("/echo"), std::to_string(i), "text/plain").body == std::to_string(i);
          (void)client.get(tls.url("/echo"));  // it is not for this address
        } catch (const ClientError& error) {
          refused += error.kind() == ClientError::Kind::kTls;
        }
      });
    }
    iom.stop();
    EXPECT_EQ(good, 100);
    EXPECT_EQ(refused, 100);
  }
}

}  // namespace
}  // namespace sylar::test
