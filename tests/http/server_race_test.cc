// Requests, changes of the routes and the end of the server, all at the same time.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/http/client.h"
#include "tests/support/fibers.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace sylar::http {
namespace {

using namespace std::chrono_literals;
using sylar::test::LeakCheck;
using sylar::test::scaled;
using test::Answer;
using test::Client;
using test::hello;
using Serving = test::Serving<>;

constexpr int kClients = 4;

// Every request sees the routes before or after a change, and what is always there always answers.
TEST(ServerRace, RoutesMayChangeWhileTheyServe) {
  const LeakCheck leaks;
  Serving server;
  server.on("/always", hello);
  std::atomic<bool> over{false};
  std::thread changer([&] {
    const ServletDispatch::ptr dispatch = server->getServletDispatch();
    while (!over) {
      dispatch->addServlet("/sometimes", hello);
      dispatch->addGlobServlet("/glob/*", hello);
      dispatch->delServlet("/sometimes");
      dispatch->delGlobServlet("/glob/*");
    }
  });
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      Client client(server.port());
      for (uint64_t round = scaled(200); round > 0; --round) {
        ASSERT_EQ(client.get("/always").status, 200);
        for (const char* path : {"/sometimes", "/glob/x"}) {
          const int status = client.get(path).status;
          ASSERT_TRUE(status == 200 || status == 404) << status;
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  over = true;
  changer.join();
}

// A port is free again when its server ends, and may be given to a server of another process: so every server has a path of its
// own, and every answer says whose it is.
std::string ownPath() {
  static std::atomic<int> servers{0};
  return "/hello-" + std::to_string(::getpid()) + '-' + std::to_string(++servers);
}

void serveAt(Serving& server, const std::string& path) {
  server.on(path, [path](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
    response->setHeader("x-server", path);
    response->setBody("hello");
    return 0;
  });
}

/// Whether another server has answered, with a whole head.
bool isForeign(Answer& answer, const Client& client, const std::string& path) {
  return answer.status != 0 && !client.hasEnded() && answer.headers["x-server"] != path;
}

/// Asks until the server ends; true if every answer that began was whole.
bool askUntilTheEnd(uint16_t port, const std::string& path, std::atomic<int>& answered) {
  while (true) {
    Client client(port);
    if (!client.isConnected()) return true;
    bool told = false;
    while (!told) {
      Answer answer = client.get(path);
      if (answer.status == 0) break;  // it ended between two requests
      if (isForeign(answer, client, path)) return true;
      if (answer.status != 200 || answer.body != "hello") return false;
      told = answer.headers.count("connection") != 0;
      ++answered;
    }
    // A client that was told that this is the last answer is not reset.
    if (told && (!client.rest().empty() || client.wasReset())) return false;
  }
}

// The end may come at any moment: an answer is whole or has not begun.
TEST(ServerRace, StopUnderLoadCutsNoAnswer) {
  std::mt19937 random(sylar::test::seed());
  for (uint64_t round = scaled(30); round > 0; --round) {
    const LeakCheck leaks;
    std::atomic<int> answered{0};
    std::vector<std::thread> clients;
    std::atomic<int> whole{0};
    const std::string path = ownPath();
    {
      Serving server;
      serveAt(server, path);
      for (int i = 0; i < kClients; ++i) {
        clients.emplace_back([&, port = server.port()] { whole += askUntilTheEnd(port, path, answered); });
      }
      const int enough = static_cast<int>(random() % 200);
      while (answered < enough) sched_yield();
      server->stop();
      EXPECT_TRUE(server->join(Deadline::after(20s)));
    }
    for (std::thread& client : clients) client.join();
    ASSERT_EQ(whole, kClients);
  }
}

/// A client that sends `pieces` as often as it is not told the end, and awaits as many answers as it sends requests.
struct KeptClient {
  std::vector<std::string> pieces;
  int answers;
};

/// Returns true if the server has ended the connection, so that a request that is sent now need not be answered.
bool wasTold(const Client& client) {
  pollfd one{client.fd(), POLLRDHUP, 0};
  return ::poll(&one, 1, 0) > 0;
}

/// Asks until the server says that it ends the connection. Returns how many answers are missing to requests that were sent before.
int askUntilTold(uint16_t port, const KeptClient& kept, std::atomic<int>& answered) {
  Client client(port);
  while (!wasTold(client)) {
    for (const std::string& piece : kept.pieces) client.say(piece);
    bool last = false;
    for (int i = 0; i < kept.answers; ++i) {
      Answer answer = client.read();
      if (answer.status != 200 || answer.body != "3") return kept.answers - i;
      last = answer.headers.count("connection") != 0;
      ++answered;
    }
    if (last) return client.rest().empty() && !client.wasReset() ? 0 : 1;
  }
  return 0;
}

// CD-N8
TEST(ServerRace, StopLosesNoAnswerOfAKeptConnection) {
  constexpr int kKept = 32;
  const std::string post = test::request("POST", "/size", "Content-Length: 3\r\n");
  std::string many;
  for (int i = 0; i < 20; ++i) many += post + "abc";  // more than is received at once
  const KeptClient kinds[] = {
      {{post + "abc"}, 1}, {{many}, 20}, {{post, "abc"}, 1}, {{post.substr(0, 9), post.substr(9) + "abc"}, 1}};
  HttpLimits limits;
  limits.kept_grace = 1min;  // so that a client that is held up is not idle
  for (uint64_t round = scaled(20); round > 0; --round) {
    std::atomic<int> answered{0}, lost{0};
    std::vector<std::thread> clients;
    {
      Serving server(true, limits);
      server.on("/size", test::sizeOfBody);
      for (int i = 0; i < kKept; ++i) {
        clients.emplace_back([&, port = server.port(), i] { lost += askUntilTold(port, kinds[i % std::size(kinds)], answered); });
      }
      while (answered < 100 || server->getCounts().open < kKept) sched_yield();
      server->stop();
      EXPECT_TRUE(server->join(Deadline::after(20s)));
    }
    for (std::thread& client : clients) client.join();
    ASSERT_EQ(lost, 0);
  }
}

// Connections that come while it stops are served, or ended, or were never made.
TEST(ServerRace, ConnectionsAndStopsMeet) {
  for (uint64_t round = scaled(50); round > 0; --round) {
    const LeakCheck leaks;
    std::vector<std::thread> clients;
    const std::string path = ownPath();
    {
      Serving server;
      serveAt(server, path);
      for (int i = 0; i < kClients; ++i) {
        clients.emplace_back([&path, port = server.port()] {
          while (true) {
            Client client(port);
            if (!client.isConnected()) return;
            Answer answer = client.get(path);
            if (isForeign(answer, client, path)) return;
            ASSERT_TRUE(answer.status == 0 || answer.body == "hello");
          }
        });
      }
      while (server->getCounts().accepted == 0) sched_yield();
      server->stop();
      EXPECT_TRUE(server->join(Deadline::after(20s)));
    }
    for (std::thread& client : clients) client.join();
  }
}

}  // namespace
}  // namespace sylar::http
